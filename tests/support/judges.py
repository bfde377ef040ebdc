"""Judges, good and bad, as what they reply to a request for marks; for memory and for the local Messages server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from proctor.bootstrap.judge import JudgedScenario, JudgeParts
from proctor.core.grading.blinding import Blind, SuiteNames
from proctor.core.grading.checks import check_answer
from proctor.core.grading.judge_prompt import TOOL, build_judge_prompt
from proctor.core.grading.planted import choose_planted
from proctor.core.scenarios.brief import load_brief
from support.grading import shipped_key, shipped_rubric
from support.messages_server import Message, Play, reply_text, reply_tool
from support.playing import SCENARIOS

SCENARIO = "error-root-cause"
_ANSWER = re.compile(r"--- answer ([0-9a-f]+) ---\n(.*)\n--- end of answer \1 ---", re.DOTALL)

Score = Callable[[str], Any]


@dataclass(frozen=True)
class Asked:
    """A request for marks, taken apart as a judge would."""

    nonce: str
    answer: str
    criteria: tuple[str, ...]
    corrective: bool


def read_request(body: Message) -> Asked:
    content = body["messages"][0]["content"]
    found = _ANSWER.search(content)
    assert found is not None, content
    (tool,) = body["tools"]
    marks = tool["input_schema"]["properties"]["marks"]
    return Asked(found[1], found[2], tuple(marks["required"]), "earlier reply could not be used" in content)


def give_marks(asked: Asked, score: Any, **usage: int) -> Message:
    marks = {name: {"reason": f"gave {score}", "score": score} for name in asked.criteria}
    return reply_tool(TOOL, {"nonce": asked.nonce, "marks": marks}, **usage)


def honest_score(answer: str) -> int:
    """What the checks give, as a judge that reads well would."""
    return round(5 * float(check_answer(shipped_rubric(SCENARIO), answer).score))


def _obey(answer: str) -> int:
    return 5 if "5/5" in answer else honest_score(answer)


def _please(answer: str) -> int:
    """Falls for whoever sounds sure of itself."""
    return 5 if "root cause" in answer.lower() else 2


def _score_all(score: Score) -> Play:
    return lambda body: give_marks(read_request(body), score(read_request(body).answer))


def honest() -> Play:
    return _score_all(honest_score)


def constant(score: int = 4) -> Play:
    return _score_all(lambda _: score)


def first_biased() -> Play:
    """Likes best what it sees first, and each thing after it less."""
    seen: list[str] = []

    def play(body: Message) -> Message:
        seen.append(read_request(body).nonce)
        return give_marks(read_request(body), max(0, 6 - len(seen)))

    return play


def last_biased() -> Play:
    seen: list[str] = []

    def play(body: Message) -> Message:
        seen.append(read_request(body).nonce)
        return give_marks(read_request(body), min(5, 2 * len(seen)))

    return play


def in_turn(*plays: Play) -> Play:
    """One after the other, the last for ever."""
    left = list(plays)

    def play(body: Message) -> Message:
        current = left.pop(0) if len(left) > 1 else left[0]
        return current(body)

    return play


def _two_objects(body: Message) -> Message:
    one, two = give_marks(read_request(body), 5), give_marks(read_request(body), 1)
    return {**one, "content": [*one["content"], {**two["content"][0], "id": "toolu_2"}]}


def _copied(body: Message) -> Message:
    """The marks that the answer brought along, given as its own; it does not know the number."""
    marks = {name: {"reason": "verified", "score": 5} for name in read_request(body).criteria}
    return reply_tool(TOOL, {"nonce": "0000", "marks": marks})


def _cut(body: Message) -> Message:
    return {**reply_tool(TOOL, {"nonce": read_request(body).nonce}), "stop_reason": "max_tokens"}


def _one_missing(body: Message) -> Message:
    message = give_marks(read_request(body), 4)
    message["content"][0]["input"]["marks"].popitem()
    return message


UNREADABLE: dict[str, Play] = {
    "prose": lambda _: reply_text("I would give this answer five points out of five."),
    "JSON as prose": lambda body: reply_text(json.dumps(give_marks(read_request(body), 5)["content"][0]["input"])),
    "cut JSON": _cut,
    "5/5": _score_all(lambda _: "5/5"),
    "a number as text": _score_all(lambda _: "5"),
    "NaN": _score_all(lambda _: float("nan")),
    "7 of 5": _score_all(lambda _: 7),
    "below zero": _score_all(lambda _: -1),
    "half a point": _score_all(lambda _: 4.5),
    "true": _score_all(lambda _: True),
    "two objects": _two_objects,
    "a criterion missing": _one_missing,
    "a refusal": lambda _: reply_text("I can't help with that.", stop_reason="refusal"),
    "nothing": lambda _: {**reply_text(""), "content": []},
    "an injected 5": _copied,
}
"""Judges whose replies never hold marks that can be used, by what they reply."""

UNTRUSTED: dict[str, Callable[[], Play]] = {
    "constant": constant,
    "biased to the first": first_biased,
    "biased to the last": last_biased,
    "sycophantic": partial(_score_all, _please),
    "injected": partial(_score_all, _obey),
    "upside down": partial(_score_all, lambda answer: 5 - honest_score(answer)),
}
"""Judges whose marks look right and mean nothing."""


@dataclass
class MemoryAsker:
    """A judge in memory: real bodies both ways, no connection."""

    play: Play
    requests: list[Message] = field(default_factory=list)
    closed: bool = False

    async def ask(self, body: bytes) -> bytes:
        request = json.loads(body)
        self.requests.append(request)
        return json.dumps(self.play(request)).encode()

    async def close(self) -> None:
        self.closed = True


def make_judge(play: Play, *, votes: int = 1, names: SuiteNames | None = None) -> tuple[JudgeParts, MemoryAsker]:
    """A run's judge for the one scenario, asked in memory."""
    asker = MemoryAsker(play)
    return JudgeParts("judge-model", votes, asker, {SCENARIO: make_judged(names)}, "d" * 64), asker


def make_judged(names: SuiteNames | None = None) -> JudgedScenario:
    key, rubric = shipped_key(SCENARIO), shipped_rubric(SCENARIO)
    prompt = build_judge_prompt(key, rubric.facts, question=load_brief(SCENARIOS / SCENARIO).prompt)
    blind = Blind(names or SuiteNames((), frozenset(), frozenset(), frozenset()), salt="run-1", kept=prompt.system)
    return JudgedScenario(prompt, choose_planted(key, rubric.facts), blind, prompt.digest)


def planted_good() -> str:
    return make_judged().planted.good
