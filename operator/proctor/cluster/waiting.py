"""Waiting for a verdict: the object is read anew again and again, so there is no watch that could drop unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from proctor.adapters.kube.kinds import EVAL_RUN, EVAL_SUITE, Kind
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.reconcile.answers import Answer, answer_run, answer_suite

POLL_SECONDS = 2.0
LOOKS_FOR_ABSENT = 15
"""So often an object that nobody has made yet is looked for: half a minute, then its name is taken for wrong."""


class Reader(Protocol):
    """What reads one object."""

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object; None if there is none.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whose verdict is waited for.

    Attributes:
        suite: it is an EvalSuite's gate; else an EvalRun.
    """

    namespace: str
    name: str
    suite: bool = False

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return EVAL_SUITE if self.suite else EVAL_RUN

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


async def await_verdict(
    kube: Reader,
    target: Target,
    say: Callable[[str], None],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Answer:
    """Return the answer once its verdict is final.

    Args:
        kube: the API server.
        target: whose.
        say: told each new line about how it goes.
        sleep: passes time between two looks.

    Raises:
        InvalidInput: there is no such object, or it has no verdict to wait for.
        Terminal: it was deleted before its verdict, or may not be read.
    """
    said = ""
    absences = 0
    seen = False
    while True:
        try:
            body = await kube.get(target.kind, target.namespace, target.name)
        except Retryable as error:
            line, delay = f"{error}; trying again", max(error.delay, POLL_SECONDS)
        else:
            delay = POLL_SECONDS
            if body is None:
                absences += 1
                line = _describe_absence(target, absences, seen=seen)
            else:
                seen = True
                answer = answer_suite(body) if target.suite else answer_run(body)
                if answer.verdict.terminal:
                    return answer
                line = answer.summary
        if line and line != said:
            say(line)
            said = line
        await sleep(delay)


def _describe_absence(target: Target, absences: int, *, seen: bool) -> str:
    if seen:
        raise Terminal(f"{target} was deleted before its verdict")
    if absences >= LOOKS_FOR_ABSENT:
        raise InvalidInput(f"{target}: there is none; check the name and --namespace")
    return f"{target} is not there yet"
