"""What a sandbox costs: its start, the agent's start inside, and a whole trivial conversation.

    .venv/bin/python bench/sandbox.py [--rounds 30]

Each figure is the median of the rounds, and a ratio to starting the same Python without any sandbox.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "operator"), str(ROOT / "tests")]

from proctor.adapters.sandbox.agents import agent_spec  # noqa: E402 - the path must be set first
from proctor.adapters.sandbox.places import base_interpreter  # noqa: E402
from proctor.adapters.sandbox.sandboxed import launch  # noqa: E402
from proctor.adapters.sandbox.serverprocess import launch_server  # noqa: E402
from proctor.adapters.sandbox.servers import ServerRequest, server_spec  # noqa: E402
from proctor.adapters.sandbox.spec import Isolation, SandboxSpec  # noqa: E402
from support.fake_gateway import FakeGateway, run_gateway, say, use  # noqa: E402

BARE = [str(base_interpreter()), "-ISE", "-c", "pass"]


async def median_ms(rounds: int, once: Callable[[], Awaitable[object]]) -> float:
    await once()
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        await once()
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent)


async def run_bare() -> None:
    await (await asyncio.create_subprocess_exec(*BARE)).wait()


def run_spec(spec: SandboxSpec) -> Callable[[], Awaitable[object]]:
    async def once() -> None:
        ended = await (await launch(spec)).wait()
        assert ended.exit_code == 0, ended

    return once


async def measure(rounds: int, folder: Path) -> None:
    bare = await median_ms(rounds, run_bare)

    def report(name: str, spent: float) -> None:
        print(f"{name:<58} {spent:7.1f} ms   {spent / bare:5.1f}x a bare Python")

    report("python -ISE -c pass", bare)
    gateway = FakeGateway([])
    with run_gateway(folder, gateway):
        spec = agent_spec(folder / "gateway.sock", "token")
        nothing = replace(spec, command=("/bin/true",))
        report("sandbox around /bin/true: start, end, nothing left", await median_ms(rounds, run_spec(nothing)))
        python = replace(spec, command=tuple(BARE))
        report("sandbox around python -ISE -c pass", await median_ms(rounds, run_spec(python)))
        for isolation in Isolation:
            whole = agent_spec(folder / "gateway.sock", "token", isolation=isolation)

            async def converse(whole: SandboxSpec = whole) -> None:
                gateway.replies[:] = [use(("run_query", {"q": "1"})), say("done")]
                await run_spec(whole)()

            report(f"builtin agent, 2 turns and 1 call, sandbox {isolation}", await median_ms(rounds, converse))

    async def serve() -> None:
        request = ServerRequest(command=("/bin/cat",), environment={}, search_path="/usr/bin:/bin")
        server = await launch_server(server_spec(request))
        server.writer.write(b"hello\n")
        await server.reader.readline()
        await server.terminate()

    report("server (cat): start, one line there and back, end", await median_ms(rounds, serve))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")
    subprocess.run(BARE, check=True)
    with tempfile.TemporaryDirectory(prefix="pb-") as folder:
        asyncio.run(measure(rounds, Path(folder)))


if __name__ == "__main__":
    main()
