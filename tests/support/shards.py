"""Two engines that know each other as a cluster, for as long as a block lasts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.errors import Retryable

CLUSTER = "pair"
_PROGRAM = Path(__file__).with_name("sharded_engine.py")


@asynccontextmanager
async def run_pair(root: Path) -> AsyncIterator[Shards]:
    """Start both under a folder, and give them once they answer."""
    http, tcp = _free_ports(2), _free_ports(2)
    with contextlib.ExitStack() as stack:
        pair = [stack.enter_context(_run(root / str(n), CLUSTER, http[n], tcp[n], *tcp)) for n in range(2)]
        await asyncio.gather(*map(_await_session, pair))
        yield Shards(pair, CLUSTER)


@contextlib.contextmanager
def _run(folder: Path, cluster: str, http: int, *tcp: int) -> Iterator[HttpSession]:
    command = [sys.executable, str(_PROGRAM), str(folder), cluster, str(http), *map(str, tcp)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield HttpSession(Endpoint("127.0.0.1", http, "default", ""))
        finally:
            process.kill()


async def _await_session(session: HttpSession) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Retryable):
                return await session.run("SELECT 1")
            await asyncio.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
