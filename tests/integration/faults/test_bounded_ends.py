"""Whatever a program leaves in its pipes, its end is an end: nothing waits for ever for what nobody reads."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from proctor.adapters.sandbox.serverprocess import launch_server
from proctor.adapters.sandbox.servers import ServerRequest, server_spec

_PRINT_FOR_EVER = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
_PRINT_AND_END = "import sys; sys.stdout.write('x' * 400_000); sys.stdout.flush()"
_LINE = 4096
"""Twice as much, unread, and asyncio reads no more of a pipe; from then on it doesn't see the pipe's end either."""


@pytest.mark.parametrize("code", [_PRINT_FOR_EVER, _PRINT_AND_END], ids=["for ever", "and ends"])
async def test_a_server_whose_output_nobody_reads_can_be_ended(code: str) -> None:
    """Faults, a server that prints for ever: its end does not depend on who reads it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    request = ServerRequest(command=(sys.executable, "-c", code), environment={}, search_path=path)
    server = await launch_server(server_spec(request), line_bytes=_LINE, grace=1.0)
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.LimitOverrunError):
            await server.reader.readuntil(b"\n")  # one that never comes: what was printed stays unread
        await server.terminate()
    assert server.exit_code() is not None
