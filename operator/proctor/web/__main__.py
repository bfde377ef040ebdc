"""`python -m proctor.web`: the page of an installation, from the files that the chart mounts."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import uvicorn

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.kube.connecting import open_kube
from proctor.bootstrap.logging import set_up_logging
from proctor.bootstrap.mounted import Mount
from proctor.bootstrap.operator_settings import read_settings
from proctor.errors import InvalidInput, ProctorError
from proctor.web.app import build_app
from proctor.web.reports import Reports

MOUNTED = Path("/etc/proctor")
LISTEN_VARIABLE = "PROCTOR_LISTEN"
SETTINGS_FILE = "operator.json"
MOUNTED_VARIABLE = "PROCTOR_MOUNTED"
_DEFAULT_LISTEN = "0.0.0.0:8080"
_LEAST_TOKEN = 16
_USAGE = 64
_MOST_AT_ONCE = 64


def read_token(path: Path) -> str:
    """Return the token that requests have to bear.

    Raises:
        InvalidInput: there is none, or one that is easily guessed; the message never quotes it.
    """
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: no token can be read: mount the chart's Secret there") from error
    if len(token) < _LEAST_TOKEN:
        raise InvalidInput(f"{path}: shorter than {_LEAST_TOKEN} characters: draw it with `openssl rand -hex 32`")
    return token


def read_store(mounted: Path) -> Endpoint:
    """Return where results are, and as whom they are read.

    Raises:
        InvalidInput: the settings or the login can't be read; the message never quotes it.
    """
    place = read_settings(mounted / SETTINGS_FILE).clickhouse
    return Mount(mounted).clickhouse(place.host, place.port, secure=place.secure)


async def serve(mounted: Path, listen: str) -> None:
    """Serve until a signal comes.

    Raises:
        InvalidInput: what is mounted can't be used.
        Terminal: there is no way to an API server.
    """
    host, _, port = listen.rpartition(":")
    token = read_token(mounted / "web" / "token")
    store = read_store(mounted)
    async with open_kube() as kube:
        config = uvicorn.Config(
            build_app(kube, token, Reports(kube, store).render),
            host=host,
            port=int(port),
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_AT_ONCE,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=5,
        )
        await uvicorn.Server(config).serve()


def main() -> int:
    """Run the process; return its exit code."""
    set_up_logging()
    mounted = Path(os.environ.get(MOUNTED_VARIABLE, MOUNTED))
    try:
        asyncio.run(serve(mounted, os.environ.get(LISTEN_VARIABLE, _DEFAULT_LISTEN)))
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE if isinstance(error, InvalidInput) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
