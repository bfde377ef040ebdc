"""`python -m proctor.gateway`: configuration on standard input; when that closes, the gateway ends."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from typing import BinaryIO

from proctor.bootstrap.gateway_config import GatewayConfig, parse_gateway_config
from proctor.bootstrap.logging import set_up_logging
from proctor.errors import InvalidInput, ProctorError

_MAX_CONFIG_BYTES = 64 * 1024 * 1024
_USAGE = 64


def main() -> int:
    """Run a gateway; return its exit code."""
    set_up_logging()
    # All sandboxes' connections end here; a soft limit is for programs that can't count beyond 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        config = _read_config(sys.stdin.buffer)
        asyncio.run(_run(config))
    except InvalidInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - as above
        return 1
    return 0


def _read_config(stdin: BinaryIO) -> GatewayConfig:
    line = stdin.readline(_MAX_CONFIG_BYTES)
    if len(line) >= _MAX_CONFIG_BYTES:
        raise InvalidInput(f"the gateway's configuration is longer than {_MAX_CONFIG_BYTES} bytes")
    return parse_gateway_config(line)


async def _run(config: GatewayConfig) -> None:
    from proctor.gateway.serving import serve

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # A thread, because standard input may be a file or a terminal, which no event loop can watch; a daemon, because
    # it may still be reading when the gateway ends for another reason.
    threading.Thread(target=_watch, args=(sys.stdin.buffer, loop, ended), daemon=True).start()
    await serve(config, ended=ended)


def _watch(stdin: BinaryIO, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    # Whatever else arrives is dropped; only the end of the stream means something.
    while os.read(stdin.fileno(), 4096):
        pass
    if not loop.is_closed():
        loop.call_soon_threadsafe(ended.set)


if __name__ == "__main__":
    sys.exit(main())
