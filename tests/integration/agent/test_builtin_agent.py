"""The builtin agent where it belongs: in a sandbox, with a socket as its only way out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.spec import Isolation
from proctor.core.trajectory.outcome import ExitCause
from support.fake_gateway import FakeGateway, error, run_gateway, say, use
from support.sandbox import needs_sandbox, short_folder

pytestmark = needs_sandbox


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


def _conversation() -> FakeGateway:
    return FakeGateway([use(("run_query", {"q": 1}), text="Look."), say("The pool \x1b[31m\x00.")])


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("stream", [True, False])
async def test_an_investigation_from_inside(folder: Path, *, stream: bool, isolation: Isolation) -> None:
    """M-A5, M-A7: a whole conversation over the one socket; the same without a sandbox."""
    with run_gateway(folder, _conversation()) as gateway:
        spec = agent_spec(folder / "gateway.sock", "tok", stream=stream, isolation=isolation)
        ended = await (await launch(spec, deadline=60)).wait()
    assert (ended.cause, ended.exit_code) == (ExitCause.EXITED, 0), ended.message
    assert gateway.answer == "The pool \x1b[31m\x00."
    assert gateway.asked[0]["stream"] is stream


async def test_a_refusal_is_an_exit_code_and_a_line(folder: Path) -> None:
    """P6, P27: what ends it without an answer is told by code and one harmless line."""
    with run_gateway(folder, FakeGateway([(403, error("proctor_ended\x1b[2J", "over"))])):
        ended = await (await launch(agent_spec(folder / "gateway.sock", "tok"), deadline=60)).wait()
    assert (ended.cause, ended.exit_code) == (ExitCause.EXITED, 11)
    assert ended.message == "Refused: 403 proctor_ended [2J: over"


async def test_without_its_environment_it_says_what_is_missing(folder: Path) -> None:
    """Bad usage has its own exit code."""
    with run_gateway(folder, FakeGateway([])):
        spec = replace(agent_spec(folder / "gateway.sock", "tok"), environment={})
        ended = await (await launch(spec, deadline=60)).wait()
    assert ended.exit_code == 64
    assert "PROCTOR_GATEWAY" in ended.message


async def test_it_imports_nothing_heavy() -> None:
    """It starts once per attempt: no HTTP library, no TLS, nothing that isn't the standard library's core."""
    code = "import proctor_agent.__main__, sys; print(*sys.modules)"
    operator = Path(__file__).parents[3] / "operator"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-ISE", "-c", f"import sys; sys.path.insert(0, {str(operator)!r}); {code}"),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    loaded = set(output.decode().split())
    assert "proctor_agent.wire" in loaded
    heavy = {"http.client", "ssl", "urllib.request", "email", "asyncio", "subprocess", "logging", "inspect", "typing"}
    assert loaded & heavy == set()
    assert not any(name == "proctor" or name.startswith("proctor.") for name in loaded)
