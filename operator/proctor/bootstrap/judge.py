"""Wiring of the judge: `judge.anthropic` becomes a model to ask, prompts, and names to take out of answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from proctor.adapters.models.asking import ModelAsker
from proctor.adapters.models.hosts import check_provider_url
from proctor.adapters.models.messages_client import ProviderAddress
from proctor.api.model import Judge, Model
from proctor.api.server import Server
from proctor.core.digests import digest_json
from proctor.core.gatewaypolicy.pricing import TokenPrice
from proctor.core.grading.blinding import Blind, SuiteNames, brand_parts, digest_names
from proctor.core.grading.judge_prompt import JudgePrompt, build_judge_prompt
from proctor.core.grading.judge_votes import APART
from proctor.core.grading.planted import Planted, choose_planted
from proctor.core.scenarios.answer import AnswerKey
from proctor.core.scenarios.brief import Brief
from proctor.errors import InvalidInput

_IDLE_SECONDS = 180.0
"""A reply of at most 4,000 tokens is there long before; a provider that is silent for longer is gone."""

_SOURCE_WORDS = ("SOURCE", "CONNECTION", "DATABASE", "DATASET", "TEAM")
_NAMING_WORDS = 2
"""Words of a command that name a program: itself, and what an interpreter or a package runner is told to run."""


class Asker(Protocol):
    """What answers a request for marks."""

    async def ask(self, body: bytes) -> bytes:
        """Return the body of the reply.

        Raises:
            Retryable: there was none for as long as was waited.
            Terminal: there will be none.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class JudgedScenario:
    """What judging the answers of one scenario takes.

    Attributes:
        prompt: what is asked about each.
        planted: answers whose order is known.
        blind: takes names out.
        digest: of all that decides a judgement beside the answer and the model.
    """

    prompt: JudgePrompt
    planted: Planted
    blind: Blind
    digest: str


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """The judge of a run.

    Attributes:
        model: the provider's name of it.
        votes: how often each answer is judged.
        asker: asks it.
        scenarios: by name.
        digest: of the model and all prompts.
        price: of its tokens; None where the suite names none.
    """

    model: str
    votes: int
    asker: Asker
    scenarios: dict[str, JudgedScenario]
    digest: str
    price: TokenPrice | None = None


@dataclass(frozen=True, slots=True)
class ScenarioKey:
    """What the judge is told of a scenario.

    Attributes:
        answer: its answer key.
        brief: its brief.
        facts: its facts in the run's dataset, as text.
    """

    answer: AnswerKey
    brief: Brief
    facts: Mapping[str, str]


def build_judge(
    judge: Judge,
    keys: Mapping[str, ScenarioKey],
    *,
    names: SuiteNames,
    run: str,
    secrets: Mapping[str, str],
    allowed_hosts: Iterable[str],
) -> JudgeParts | None:
    """Make a judge; None where nobody judges.

    Args:
        judge: as the suite names it.
        keys: of every scenario that it judges.
        names: what to take out of answers.
        run: the run's uid.
        secrets: values by ``name/key``.
        allowed_hosts: hosts that may get a key.

    Raises:
        InvalidInput: the key is missing, its host is not allowed, or a scenario has no answers to plant.
    """
    told = judge.anthropic
    if told is None:
        return None
    name = f"{told.secret_key_ref.name}/{told.secret_key_ref.key}"
    if name not in secrets:
        raise InvalidInput(f"spec.judge.anthropic.secretKeyRef: secret {name} is not given")
    url = check_provider_url(told.url, allowed_hosts)
    scenarios = {
        scenario: _build_scenario(scenario, key, names, run=run, votes=judge.vote_count)
        for scenario, key in keys.items()
    }
    return JudgeParts(
        model=told.model,
        votes=judge.vote_count,
        asker=ModelAsker(ProviderAddress(url, secrets[name], idle_seconds=_IDLE_SECONDS)),
        scenarios=scenarios,
        digest=digest_json(
            {"model": told.model, "url": url, "prompts": {name: each.digest for name, each in scenarios.items()}}
        ),
        price=None if judge.price is None else judge.price.tokens,
    )


def collect_names(servers: Iterable[Server], models: Iterable[Model] = ()) -> SuiteNames:
    """Return the names that could give an arm away; an answer may say which model wrote it."""
    providers = [model.anthropic.model for model in models if model.anthropic is not None]
    every = tuple(servers)
    return SuiteNames(
        servers=tuple(server.name for server in every),
        tools=frozenset(tool for server in every for tool in _list_tools(server)),
        brands=brand_parts([*providers, *(text for server in every for text in _list_programs(server))]),
        sources=frozenset(
            variable.value
            for server in every
            for variable in server.env
            if variable.value and any(word in variable.name.upper() for word in _SOURCE_WORDS)
        ),
    )


def _build_scenario(name: str, key: ScenarioKey, names: SuiteNames, *, run: str, votes: int) -> JudgedScenario:
    prompt = build_judge_prompt(key.answer, key.facts, question=key.brief.prompt)
    try:
        planted = choose_planted(key.answer, key.facts)
    except InvalidInput as error:
        raise InvalidInput(f"answer key of scenario {name}: {error}") from error
    digest = digest_json({"prompt": prompt.digest, "votes": votes, "apart": APART, "names": digest_names(names)})
    return JudgedScenario(prompt, planted, Blind(names, salt=run, kept=prompt.system), digest)


def _list_tools(server: Server) -> Iterator[str]:
    yield from server.allowed_tools or ()
    yield from server.denied_tools or ()
    if server.sql_tool is not None:
        yield server.sql_tool.name


def _list_programs(server: Server) -> Iterator[str]:
    for transport in (server.stdio, server.http):
        if transport is None:
            continue
        words = [word for word in transport.command or () if not word.startswith("-")]
        yield from words[:_NAMING_WORDS]
        if transport.image:
            yield transport.image
    if server.http is not None and server.http.url is not None:
        yield urlsplit(server.http.url).hostname or ""
