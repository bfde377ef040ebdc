"""`python -m proctor.gateway`: configuration on standard input; when that closes, the gateway ends."""

from __future__ import annotations

import asyncio
import logging
import sys

from proctor.bootstrap.gateway_config import GatewayConfig, parse_gateway_config
from proctor.bootstrap.logging import set_up_logging
from proctor.errors import InvalidInput

logger = logging.getLogger("proctor.gateway")

_MAX_CONFIG_BYTES = 64 * 1024 * 1024
_USAGE = 64


async def _read_config(stdin: asyncio.StreamReader) -> GatewayConfig:
    try:
        line = await stdin.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        line = error.partial
    except asyncio.LimitOverrunError as error:
        raise InvalidInput(f"the gateway's configuration is longer than {_MAX_CONFIG_BYTES} bytes") from error
    return parse_gateway_config(line)


async def _open_stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_MAX_CONFIG_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _run() -> None:
    from proctor.gateway.serving import serve

    stdin = await _open_stdin()
    config = await _read_config(stdin)
    await serve(config, until=_wait_for_end(stdin))


async def _wait_for_end(stdin: asyncio.StreamReader) -> None:
    # Whatever else arrives is dropped; only the end of the stream means something.
    while await stdin.read(4096):
        pass


def main() -> int:
    """Run a gateway; return its exit code."""
    set_up_logging()
    try:
        asyncio.run(_run())
    except InvalidInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - whoever starts the process reads why it did not run
        return _USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
