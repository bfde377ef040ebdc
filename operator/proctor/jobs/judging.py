"""The judge at work: votes on an answer, and the trial that comes before any of them counts."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable

from proctor.bootstrap.judge import JudgedScenario, JudgeParts
from proctor.core.digests import canonical_json
from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.grading.answer_text import MAX_ANSWER_BYTES, normalise_text
from proctor.core.grading.judge_prompt import build_request
from proctor.core.grading.judge_reply import Vote, parse_judge_reply
from proctor.core.grading.judge_votes import Judgement, add_usage, combine_votes, is_borderline
from proctor.core.grading.marks import Ungraded
from proctor.core.grading.planted import PlantedScores, find_distrust
from proctor.errors import Retryable, Terminal

_AT_ONCE = 4
_NONCE_BYTES = 12
_ROUNDS = 2
"""Of votes: the second only where the first left the marks open."""

_REQUESTS = 2
"""The first, and one that says what was wrong with its reply."""


class JudgePanel:
    """Has answers judged.

    Args:
        parts: the run's judge.
    """

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.usage = Usage()
        """Tokens of all requests so far; those count too that gave no marks."""

    async def judge(self, scenario: str, answer: bytes | str, *, tools: Iterable[str] = ()) -> Judgement | Ungraded:
        """Have an answer judged, as often as the suite says, and as often again where these votes lie far apart.

        Args:
            scenario: whose answer it is.
            answer: as the agent gave it.
            tools: the tools that it called; their names are taken out of the answer.

        Returns:
            What the votes amount to; ungraded if any of them could not be had.
        """
        return await self._judge(scenario, answer, votes=self._parts.votes, tools=tools)

    async def find_distrust(self) -> str:
        """Have the planted answers judged; say why the judge can't be trusted, empty if it can."""
        names = sorted(self._parts.scenarios)
        for name, why in zip(names, await asyncio.gather(*map(self._try_scenario, names)), strict=True):
            if why:
                return f"judge {self._parts.model}, tried on planted answers of {name}: {why}"
        return ""

    async def close(self) -> None:
        """Close connections."""
        await self._parts.asker.close()

    async def _try_scenario(self, name: str) -> str:
        """Plant in both orders, so that a judge that favours what it sees first, or last, is seen."""
        rounds: list[PlantedScores] = []
        for order in (("bad", "good", "injected"), ("injected", "good", "bad")):
            scores = {}
            for which in order:
                text = getattr(self._parts.scenarios[name].planted, which)
                judged = await self._judge(name, text, votes=1)
                if isinstance(judged, Ungraded):
                    return f"no marks for the {which} answer: {judged.reason}"
                scores[which] = judged.score
            rounds.append(PlantedScores(**scores))
        return find_distrust(rounds)

    async def _judge(
        self, scenario: str, answer: bytes | str, *, votes: int, tools: Iterable[str] = ()
    ) -> Judgement | Ungraded:
        judged = self._parts.scenarios[scenario]
        body = answer.encode("utf-8", "replace") if isinstance(answer, str) else answer
        text = judged.blind.hide(normalise_text(body[:MAX_ANSWER_BYTES].decode("utf-8", "replace")), tools=tools)
        given: list[Vote] = []
        usage = Usage()
        for _ in range(_ROUNDS):
            for outcome in await asyncio.gather(*(self._vote(judged, text) for _ in range(votes))):
                if isinstance(outcome, Ungraded):
                    # A median over fewer votes than the suite asks for would be another measure.
                    return outcome
                given.append(outcome[0])
                usage = add_usage(usage, outcome[1])
            if not is_borderline(given):
                break
        return combine_votes(judged.prompt.criteria, given, usage)

    async def _vote(self, judged: JudgedScenario, text: str) -> tuple[Vote, Usage] | Ungraded:
        usage, defect = Usage(), ""
        for _ in range(_REQUESTS):
            nonce = _draw_nonce(text)
            request = build_request(judged.prompt, answer=text, nonce=nonce, model=self._parts.model, defect=defect)
            try:
                async with self._places:
                    body = await self._parts.asker.ask(canonical_json(request))
            except (Retryable, Terminal) as error:
                return Ungraded(f"the judge could not be asked: {error}")
            reply = parse_judge_reply(body, judged.prompt.criteria, nonce=nonce)
            usage, defect = add_usage(usage, reply.usage), reply.defect
            self.usage = add_usage(self.usage, reply.usage)
            if reply.vote is not None:
                return reply.vote, usage
        return Ungraded(f"the judge's reply can't be used, asked again: {defect}")


def _draw_nonce(text: str) -> str:
    while True:
        nonce = secrets.token_hex(_NONCE_BYTES)
        if nonce not in text:
            return nonce
