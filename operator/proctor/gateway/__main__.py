"""`python -m proctor.gateway`: configuration on standard input; when that closes, the gateway ends.

In a pod it is `python -m proctor.gateway --mounted DIR`: configuration from mounted files; SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from proctor.bootstrap.gateway_config import GatewayConfig, parse_gateway_config
from proctor.bootstrap.logging import set_up_logging
from proctor.errors import InvalidInput, ProctorError, Retryable

_MAX_CONFIG_BYTES = 64 * 1024 * 1024
_USAGE = 64
_RETRY = 75
"""sysexits' EX_TEMPFAIL: a store that is away may be back at the next start."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a gateway; return its exit code."""
    set_up_logging()
    parser = argparse.ArgumentParser(prog="python -m proctor.gateway", allow_abbrev=False)
    parser.add_argument("--mounted", type=Path, metavar="DIR", help="a pod's mounted configuration")
    mounted: Path | None = parser.parse_args(arguments).mounted
    # All sandboxes' connections end here; a soft limit is for programs that can't count beyond 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        if mounted is not None:
            from proctor.bootstrap.mounted_gateway import read_gateway_config

            asyncio.run(_run(read_gateway_config(mounted), watched=None))
        else:
            asyncio.run(_run(_read_config(sys.stdin.buffer), watched=sys.stdin.buffer))
    except InvalidInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - as above
        return _RETRY if isinstance(error, Retryable) else 1
    return 0


def _read_config(stdin: BinaryIO) -> GatewayConfig:
    line = stdin.readline(_MAX_CONFIG_BYTES)
    if len(line) >= _MAX_CONFIG_BYTES:
        raise InvalidInput(f"the gateway's configuration is longer than {_MAX_CONFIG_BYTES} bytes")
    return parse_gateway_config(line)


async def _run(config: GatewayConfig, *, watched: BinaryIO | None) -> None:
    from proctor.gateway.serving import serve

    ended = asyncio.Event()
    if watched is not None:
        loop = asyncio.get_running_loop()
        # A thread, because standard input may be a file or a terminal, which no event loop can watch; a daemon,
        # because it may still be reading when the gateway ends for another reason.
        threading.Thread(target=_watch, args=(watched, loop, ended), daemon=True).start()
    await serve(config, ended=ended)


def _watch(stdin: BinaryIO, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    # Whatever else arrives is dropped; only the end of the stream means something.
    while os.read(stdin.fileno(), 4096):
        pass
    if not loop.is_closed():
        loop.call_soon_threadsafe(ended.set)


if __name__ == "__main__":
    sys.exit(main())
