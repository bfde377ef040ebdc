"""Models that misbehave, each an arm of one run: the right outcome for each, and no arm suffers from another's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from support.local_runs import Machine, adopt_orphans, make_suite
from support.messages_server import (
    KEY,
    Cut,
    Failing,
    FailingInStream,
    Fault,
    Message,
    Raw,
    overloaded,
    rate_limited,
    reply_text,
    reply_tool,
    serve_messages,
)

_LOOK = {"sql": "SELECT 1"}
_HOSTILE = "\x1b[2J\x1b]0;title\x07The root\x00 cause is \u202eunknown\x9b31m"
_EVENT_STREAM = (("content-type", "text/event-stream"),)
_MAX_CALLS = 30
_FIRST_TWO = 3
"""Messages of a conversation whose first reply called a tool."""
_ODD_BYTES = b'data: {"\xff\xfe": 1}\n\n'


@dataclass(frozen=True)
class Odd:
    """A model: what it says once it has called a tool, what goes wrong on the way, and what becomes of its cell.

    Attributes:
        say: its reply to every request after the first, which is a tool call.
        faults: taken by its requests after the first, one each; the last for ever if `always`.
        reason: words of the cell's reason.
        check: looks at the cell.
    """

    outcome: str
    say: Callable[[Message], Message] = lambda _: reply_text("I found nothing.")
    faults: tuple[Fault, ...] = ()
    always: bool = False
    reason: str = ""
    check: Callable[[dict[str, Any]], bool] = lambda _: True


def _call_many(body: Message) -> Message:
    """A thousand tool calls in one turn."""
    message = reply_tool("query", _LOOK)
    message["content"] = [{**message["content"][0], "id": f"toolu_{len(body['messages'])}_{n}"} for n in range(1000)]
    return message


def _call_again(body: Message) -> Message:
    """A tool call in every turn, for ever."""
    return reply_tool("query", _LOOK, id_=f"toolu_{len(body['messages'])}")


def _call_unknown(body: Message) -> Message:
    """A tool that nobody offers; then it gives up."""
    return (
        reply_text("No such tool.") if len(body["messages"]) > 3 else reply_tool("rm_rf", {"path": "/"}, id_="toolu_x")
    )


def _score_is_nothing(cell: dict[str, Any]) -> bool:
    return Decimal(cell["score"]) == 0


def _waited(cell: dict[str, Any]) -> bool:
    return Decimal(cell["waitedSeconds"]) > 0


ODD = {
    "empty": Odd("gave_up", lambda _: {**reply_text(""), "content": []}, check=_score_is_nothing),
    "unknown-tool": Odd("completed", _call_unknown, check=lambda cell: cell["toolErrors"]["agent"] == 1),
    "many-at-once": Odd("budget_limit", _call_many, check=lambda cell: cell["toolCalls"] == _MAX_CALLS),
    "many-in-turn": Odd("turn_limit", _call_again, check=lambda cell: cell["turns"] == 10),
    "hostile-text": Odd("completed", lambda _: reply_text(_HOSTILE), check=_score_is_nothing),
    "refusal": Odd("completed", lambda _: reply_text("I can't help.", stop_reason="refusal"), check=_score_is_nothing),
    "always-cut": Odd("completed", lambda _: reply_text("and so", stop_reason="max_tokens"), check=_score_is_nothing),
    "always-paused": Odd("turn_limit", lambda _: reply_text("hold on", stop_reason="pause_turn")),
    "refused-key": Odd(
        "infra_error", faults=(Failing(401, "authentication_error", "invalid x-api-key"),), always=True,
        reason="refused the key",
    ),
    "hour-long-pause": Odd(
        "infra_error", faults=(rate_limited("3600"),), always=True, reason="was not there within 600 s"
    ),
    "overloaded": Odd("completed", faults=(overloaded("0"), overloaded("0")), check=_waited),
    "overloaded-in-stream": Odd("completed", faults=(FailingInStream(),), check=_waited),
    "cut-at-once": Odd("completed", faults=(Cut(1),), check=_waited),
    "cut-later": Odd("infra_error", faults=(Cut(3),), always=True, reason="broke off a stream"),
    "no-utf-8": Odd("completed", faults=(Raw(headers=_EVENT_STREAM, body=_ODD_BYTES),), check=_waited),
    "huge": Odd("completed", faults=(Raw(headers=_EVENT_STREAM, body=b"data: " + b"x" * (40 << 20)),), check=_waited),
}  # fmt: skip


@dataclass
class Cast:
    """The models, and which of their faults were taken already."""

    taken: dict[str, int] = field(default_factory=dict)

    def play(self, body: Message) -> Message:
        if len(body["messages"]) == 1:
            return reply_tool("query", _LOOK)
        return ODD[body["model"]].say(body)

    def fault_of(self, body: Message) -> Fault | None:
        odd = ODD.get(body.get("model", ""))
        if odd is None or len(body["messages"]) == 1 or not odd.faults:
            return None
        number = self.taken.get(body["model"], 0)
        self.taken[body["model"]] = number + 1
        if number < len(odd.faults):
            return odd.faults[number]
        return odd.faults[-1] if odd.always else None


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    adopt_orphans()
    return Machine(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module")
def document(machine: Machine) -> Iterator[dict[str, Any]]:
    cast = Cast()
    with serve_messages(cast.play, models=frozenset(ODD)) as provider:
        provider.fault_of = cast.fault_of
        # Each has a secret of its own: what a provider asks one key to wait holds for all that use it.
        models = [
            {"name": name, "anthropic": {"model": name, "baseUrl": provider.url,
                                         "secretKeyRef": {"name": name, "key": "k"}}}
            for name in ODD
        ]  # fmt: skip
        suite = make_suite(
            "odd-models",
            models=models,
            replicates=1,
            agent={"deadlineSeconds": 200, "maxTurns": 10, "maxToolCalls": _MAX_CALLS},
            limits={"infraRetries": 0},
            gate={"enforcement": "Audit", "minimum": "0", "maxInfraErroredPercent": 100},
        )
        secrets = {f"PROCTOR_SECRET_{name.upper().replace('-', '_')}_K": KEY for name in ODD}
        with_keys = Machine(machine.root, secrets)
        finished = with_keys.call("run", str(with_keys.write_suite(suite)), "--allow-host", provider.host, "--json")
        assert finished.returncode in {1, 2}, finished.stderr
        yield json.loads(finished.stdout)


def test_nothing_is_lost_and_nothing_is_counted_twice(document: dict[str, Any]) -> None:
    """P29: every cell is in one count, and whoever failed is in none of the scores."""
    status = document["run"]["status"]
    counts = status["cells"]
    assert counts["total"] == len(ODD) + 2
    assert counts["infraErrored"] == sum(odd.outcome == "infra_error" for odd in ODD.values())
    assert counts["graded"] == counts["total"] - counts["infraErrored"]
    assert status["verdict"] != "Pass"


@pytest.mark.parametrize("name", ODD)
def test_each_model_gets_the_outcome_that_it_earned(document: dict[str, Any], name: str) -> None:
    """Faults, a model that …; P18, P23, P24, P27: agent's faults are graded, a provider's are infrastructure's."""
    (cell,) = [cell for cell in document["cells"] if cell["model"] == name]
    odd = ODD[name]
    if odd.outcome == "infra_error":
        assert (cell["state"], cell.get("score")) == ("infraErrored", None), cell
        assert odd.reason in cell["reason"]
    else:
        assert (cell["state"], cell["outcome"]) == ("graded", odd.outcome), cell
        assert cell["score"] is not None
        assert odd.check(cell), cell


def test_p45_a_query_off_every_beaten_path_is_answered(document: dict[str, Any]) -> None:
    """P45: tools are the real server over real rows; no recording decides what may be asked."""
    for name in ("refusal", "many-in-turn"):
        (cell,) = [cell for cell in document["cells"] if cell["model"] == name]
        assert cell["toolCalls"] > 0
        assert set(cell["toolErrors"].values()) == {0}


def test_hostile_text_of_a_model_is_inert_wherever_it_is_shown(machine: Machine, document: dict[str, Any]) -> None:
    """S21, S33: escape sequences, NUL and marks of direction never reach the terminal or the report as they are."""
    assert document
    for words in (("show", "last"), ("show", "last", "hostile-text", "--full")):
        shown = machine.call(*words)
        assert shown.returncode == 0, shown.stderr
        assert not set("\x1b\x00\x07\x9b\u202e") & set(shown.stdout)
    assert "cause is" in shown.stdout
