"""The official conformance suite of MCP, as it comes from npm: its own list of scenarios, and what they find."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.mcp import SERVERS, Cell

_BIN = Path(sys.executable).parent
_SUITE = _BIN.parent / "npm/node_modules/@modelcontextprotocol/conformance/dist/index.js"
_CLIENT = Path(__file__).with_name("conformance_client.py")
_LISTED = re.compile(r"^  - (\S+) \[", re.MULTILINE)
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
_SECONDS = 150
_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Findings:
    """What one scenario found.

    Attributes:
        checks: its checks that decide, with their status; what was told for information only is left out.
        errors: what the suite says of those that failed.
        said: standard error of the client under test, where there is one.
    """

    checks: dict[str, str]
    errors: tuple[str, ...]
    said: str

    @property
    def passed(self) -> bool:
        return "FAILURE" not in self.checks.values()

    @property
    def shown(self) -> frozenset[str]:
        """The checks that succeeded."""
        return frozenset(name for name, status in self.checks.items() if status == "SUCCESS")


async def list_scenarios(kind: str) -> tuple[str, ...]:
    """Return the names that the suite itself gives, for `server` or `client`."""
    return tuple(_LISTED.findall(await _run("list", f"--{kind}")))


async def try_server(url: str, folder: Path) -> dict[str, Findings]:
    """Run every server scenario against an endpoint."""
    await _run("server", "--url", url, "--suite", "all", "--output-dir", str(folder))
    return {_STAMP.sub("", path.parent.name).removeprefix("server-"): _read(path) for path in _find(folder)}


async def try_client(scenario: str, folder: Path) -> Findings:
    """Run one client scenario against the gateway's own client."""
    command = f"{sys.executable} {_CLIENT}"
    await _run("client", "--command", command, "--scenario", scenario, "--output-dir", str(folder))
    (path,) = _find(folder)
    return _read(path)


@asynccontextmanager
async def run_everything() -> AsyncIterator[str]:
    """The server that shows everything, on a free port; its endpoint."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(SERVERS / "everything_http.py"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def knock_with_token(cell: Cell) -> AsyncIterator[str]:
    """A port of this machine behind which is a cell's door, and every request brings the cell's token."""
    credential = f"\r\nauthorization: Bearer {cell.opened.token}\r\n".encode()
    open_now: set[asyncio.Task[None]] = set()

    async def serve(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        door, far = await asyncio.open_unix_connection(cell.opened.socket)
        answers = asyncio.create_task(_copy(door, back))
        open_now.add(answers)
        try:
            while head := await _read_head(near):
                line, _, rest = head.partition(b"\r\n")
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                far.write(line + credential + rest + await near.readexactly(int(length[1]) if length else 0))
        finally:
            far.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1_000_000)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    finally:
        listener.close()
        await asyncio.gather(*open_now, return_exceptions=True)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(_HEAD_END)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _run(*arguments: str) -> str:
    """Run the suite; that a scenario fails is not its failure."""
    process = await asyncio.create_subprocess_exec(
        str(_BIN / "node"), str(_SUITE), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode()


def _find(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/checks.json"))


def _read(path: Path) -> Findings:
    checks = [check for check in json.loads(path.read_text()) if check["status"] != "INFO"]
    # One check may be made more than once: what failed once has failed.
    by_status = sorted(checks, key=lambda check: ("SUCCESS", "WARNING", "FAILURE").index(check["status"]))
    errors = tuple(str(check.get("errorMessage", "")) for check in checks if check["status"] == "FAILURE")
    said = path.with_name("stderr.txt")
    return Findings(
        {check["id"]: check["status"] for check in by_status}, errors, said.read_text() if said.exists() else ""
    )
