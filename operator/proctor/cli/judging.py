"""A judge for one text, outside of any run: tried on planted answers first, as in a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.errors import InvalidInput, Terminal

if TYPE_CHECKING:
    from proctor.bootstrap.judge import JudgeParts, ScenarioKey
    from proctor.core.grading.judge_votes import Judgement

_SECRET = {"name": "anthropic", "key": "api-key"}


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The judge that a person asks for.

    Attributes:
        model: the provider's name of it.
        votes: how often the text is judged.
        base_url: where the model is, if not at the provider's own host.
        allowed_hosts: further hosts that may get the key.
        secrets: folder with secrets as NAME/KEY files.
    """

    model: str
    votes: int
    base_url: str | None
    allowed_hosts: tuple[str, ...]
    secrets: Path | None


def judge_text(choice: JudgeChoice, scenario: str, key: ScenarioKey, answer: bytes) -> Judgement:
    """Have a text judged as the answer to a scenario.

    Raises:
        InvalidInput: there is no key, or its host is not allowed.
        Terminal: the judge is not to be trusted, or gives no marks.
    """
    return asyncio.run(_judge(_build(choice, scenario, key), scenario, answer))


def _build(choice: JudgeChoice, scenario: str, key: ScenarioKey) -> JudgeParts:
    from pydantic import ValidationError

    from proctor.api.model import Judge
    from proctor.bootstrap.gateway_config import DEFAULT_ALLOWED_HOSTS
    from proctor.bootstrap.judge import build_judge, collect_names
    from proctor.local.secrets import read_model_key

    model = {"model": choice.model, "secretKeyRef": _SECRET, "baseUrl": choice.base_url}
    try:
        judge = Judge.model_validate({"anthropic": model, "votes": choice.votes})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(f"--judge {choice.model}: {first['loc'][-1]}: {first['msg']}") from error
    assert judge.anthropic is not None  # noqa: S101 - given above
    name = f"{_SECRET['name']}/{_SECRET['key']}"
    parts = build_judge(
        judge,
        {scenario: key},
        names=collect_names(()),
        run="",
        secrets={name: read_model_key(judge.anthropic.secret_key_ref, choice.secrets, field="--judge")},
        allowed_hosts=(*DEFAULT_ALLOWED_HOSTS, *choice.allowed_hosts),
    )
    assert parts is not None  # noqa: S101 - it is none only without a model
    return parts


async def _judge(parts: JudgeParts, scenario: str, answer: bytes) -> Judgement:
    from proctor.core.grading.marks import Ungraded
    from proctor.jobs.judging import JudgePanel

    panel = JudgePanel(parts)
    try:
        distrust = await panel.find_distrust()
        if distrust:
            raise Terminal(distrust)
        judged = await panel.judge(scenario, answer)
    finally:
        await panel.close()
    if isinstance(judged, Ungraded):
        raise Terminal(f"ungraded: {judged.reason}")
    return judged
