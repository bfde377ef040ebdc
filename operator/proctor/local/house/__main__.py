"""`python -m proctor.local.house`: settings from the environment; SIGTERM ends it, and a restart serves the same."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from proctor.bootstrap.logging import set_up_logging
from proctor.errors import InvalidInput, ProctorError, Terminal
from proctor.local.house.doors import build_app
from proctor.local.house.house import House
from proctor.local.house.settings import PASSWORD_VARIABLE, HouseSettings, read_settings

logger = logging.getLogger("proctor.local.house")

_USAGE = 64
_CLOSE_SECONDS = 5


class _Server(uvicorn.Server):
    """A server that leaves signals to the process: engines are ended in order after it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


def main() -> int:
    """Keep house; return the exit code."""
    set_up_logging()
    os.umask(0o077)
    try:
        settings = read_settings()
        # No child needs it.
        os.environ.pop(PASSWORD_VARIABLE, None)
        asyncio.run(_run(settings))
    except InvalidInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - as above
        return 1
    return 0


async def _run(settings: HouseSettings) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    house = House(settings)
    async with house.living():
        server = _Server(
            uvicorn.Config(
                build_app(house, settings.admin.password),
                host=settings.listen,
                port=settings.control_port,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_CLOSE_SECONDS,
            )
        )
        serving = asyncio.create_task(server.serve())
        failing = asyncio.create_task(house.failed())
        ending = asyncio.create_task(ended.wait())
        logger.info("the house is open")
        await asyncio.wait({serving, failing, ending}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        ending.cancel()
        await asyncio.wait({serving})
        if failing.done():
            raise Terminal(failing.result())
        failing.cancel()
        if not ended.is_set():
            raise Terminal(f"the control port {settings.control_port} can't be opened")
    logger.info("the house is closed")


if __name__ == "__main__":
    sys.exit(main())
