"""Agents that misbehave, each an arm of one run: the right outcome for each, with its reason, and no arm suffers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.local.reading import Trajectory, open_stored_run
from support.evil_agent import BEHAVIOURS
from support.local_runs import Machine, adopt_orphans, list_descendants, make_suite
from support.messages_server import KEY, reply_text, serve_messages
from support.sandbox import needs_sandbox

pytestmark = [pytest.mark.engine, pytest.mark.drill, *needs_sandbox]

_PROGRAM = Path(__file__).parents[2] / "support" / "evil_agent.py"
_DEADLINE_SECONDS = 12


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What becomes of an agent.

    Attributes:
        outcome: of its attempt.
        reason: words of the cell's reason.
        answer: tells whether its answer, which says what it got, is right.
        denied: codes of the refusals in its record, in order.
        tool_calls: those that it made.
    """

    outcome: str
    reason: str = ""
    answer: Callable[[str], bool] = lambda _: True
    denied: tuple[str, ...] = ()
    tool_calls: int = 1


_OWN_VARIABLES = {
    *("HOME", "TMPDIR", "LANG", "PWD", "PATH", "LC_CTYPE"),
    *("PROCTOR_GATEWAY", "PROCTOR_SOCKET", "PROCTOR_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}

FAULTS = {
    "behave": Fault(outcome="completed"),
    "fork-for-ever": Fault(outcome="time_limit", reason="deadline"),
    "ignore-term": Fault(outcome="time_limit", reason="deadline"),
    "fill-scratch": Fault(outcome="agent_error", reason="No space left on device"),
    "make-files": Fault(outcome="agent_error", reason="it made more than 16384 files"),
    "print-for-ever": Fault(outcome="agent_error", reason="bytes of output"),
    "dial-out": Fault(
        outcome="completed", answer=lambda text: set(text.split()) <= {"ENETUNREACH", "ECONNREFUSED"}
    ),
    "forge": Fault(
        outcome="gave_up", reason="without one tool call", tool_calls=0, answer=lambda text: text == "200 403 403 403",
        denied=("proctor_path_refused",) * 3,
    ),
    "read-environments": Fault(outcome="completed", answer=lambda text: set(text.split()) <= _OWN_VARIABLES),
    "use-other-token": Fault(
        outcome="completed", answer=lambda text: text == "401 401 401", denied=("proctor_token_refused",) * 3
    ),
    "ask-other-model": Fault(
        outcome="completed", answer=lambda text: text == "403 403 403 403", denied=("proctor_model_refused",) * 4
    ),
    "use-provider-tools": Fault(
        outcome="completed", answer=lambda text: set(text.split()) == {"403"}, denied=("proctor_body_refused",) * 6
    ),
    "follow-words-in-logs": Fault(
        outcome="completed", answer=lambda text: text == "200 403 403 403 403 403", tool_calls=2,
        denied=("proctor_token_told",) * 5,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    adopt_orphans()
    return Machine(tmp_path_factory.mktemp("evil"))


@pytest.fixture(scope="module")
def document(machine: Machine) -> Iterator[dict[str, Any]]:
    (machine.root / "agent").mkdir()
    (machine.root / "agent" / "main.py").write_text(_PROGRAM.read_text())
    with serve_messages(lambda _: reply_text("I look."), models=frozenset(FAULTS)) as provider:
        key = {"name": "provider", "key": "k"}
        suite = make_suite(
            "evil-agents",
            models=[
                {"name": name, "anthropic": {"model": name, "baseUrl": provider.url, "secretKeyRef": key}}
                for name in FAULTS
            ],
            replicates=1,
            agent={
                "runtime": "Command",
                "command": {"command": [sys.executable, "./agent/main.py"]},
                "deadlineSeconds": _DEADLINE_SECONDS,
            },
            limits={"infraRetries": 0},
            gate={"enforcement": "Audit", "minimum": "0", "maxInfraErroredPercent": 100},
        )
        with_key = Machine(machine.root, {"PROCTOR_SECRET_PROVIDER_K": KEY})
        finished = with_key.call("run", str(with_key.write_suite(suite)), "--allow-host", provider.host, "--json")
        assert finished.stdout, finished.stderr
        yield json.loads(finished.stdout)


def test_every_behaviour_has_an_outcome() -> None:
    """Faults: none is left out."""
    assert set(FAULTS) == set(BEHAVIOURS)


def test_nothing_is_lost(document: dict[str, Any]) -> None:
    """Faults, S24, S25: every cell ended and was graded, none by infrastructure's fault; no process is left."""
    counts = document["run"]["status"]["cells"]
    assert counts["total"] == counts["graded"] == len(FAULTS) + 2, document["cells"]
    assert [words for words in list_descendants(os.getpid()).values() if "agent/main.py" in words] == []


@pytest.mark.parametrize("name", FAULTS)
def test_each_agent_gets_the_outcome_that_it_earned(document: dict[str, Any], name: str) -> None:
    """Faults, an agent that …; S22, S23, S24, S25: the outcome and the reason, and never infrastructure's."""
    (cell,) = [cell for cell in document["cells"] if cell["model"] == name]
    assert (cell["state"], cell["outcome"]) == ("graded", FAULTS[name].outcome), cell
    assert FAULTS[name].reason in cell["reason"]
    assert cell["toolCalls"] == FAULTS[name].tool_calls, cell


@pytest.fixture(scope="module")
def stored(machine: Machine, document: dict[str, Any]) -> dict[str, Trajectory]:
    """What the store holds, by the model's name."""
    run = document["run"]["metadata"]

    async def read() -> dict[str, Trajectory]:
        async with open_stored_run(machine.data_dir, run["uid"]) as found:
            return {
                record.key.cell.model: Trajectory(
                    record, events, {digest: body async for digest, body in found.bodies(_digests(events))}
                )
                async for record, events in found.trajectories()
            }

    return asyncio.run(read())


def _digests(events: tuple[Event, ...]) -> set[str]:
    return {digest for event in events for digest in (event.request_digest, event.result_digest) if digest}


@pytest.mark.parametrize("name", FAULTS)
def test_the_record_of_each_is_complete(stored: dict[str, Trajectory], name: str) -> None:
    """Faults, S15, S16, S22, S30, S32: events without gaps, every body and refusal, the answer as it was sent."""
    found, fault = stored[name], FAULTS[name]
    assert [event.seq for event in found.events] == list(range(1, found.record.events + 1))
    assert found.events[-1].kind is EventKind.ATTEMPT_ENDED
    assert set(found.bodies) == _digests(found.events)
    refusals = [event.error_class for event in found.events if event.status is Status.DENIED]
    assert tuple(refusals) == fault.denied
    assert found.record.denied == len(refusals)
    assert fault.answer(found.bodies.get(found.record.answer_digest, b"").decode())


def test_s30_what_follows_words_in_telemetry_is_contained_and_counted(stored: dict[str, Trajectory]) -> None:
    """S30: a tool that nobody offers is the agent's error; each telling of the token is refused."""
    found = stored["follow-words-in-logs"]
    assert (found.record.denied, found.record.agent_tool_errors) == (5, 1)
    texts = [repr(event) for event in found.events] + [
        body.decode("utf-8", "replace") for body in found.bodies.values()
    ]
    assert not [text for text in texts if re.search(r"pct1\.[0-9a-f]+\.[0-9]+\.[0-9a-f]{64}", text)]
    assert not [text for text in texts if re.search(r"pct1\.\w+\.\d+\.(?!\[token\])", text)]


def test_s22_a_forged_call_is_in_no_count(stored: dict[str, Trajectory]) -> None:
    """S22: what an agent prints, sends to doors that are none, or writes into a conversation is no event of a tool."""
    found = stored["forge"]
    assert (found.record.turns, found.record.tool_calls) == (1, 0)
    assert EventKind.TOOL_CALL not in {event.kind for event in found.events}
