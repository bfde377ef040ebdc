"""Wiring of the grader: its configuration becomes a store, rubrics, weights and a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from proctor.adapters.clickhouse.artifact_rows import DatasetRows
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.results import GradeRow, ResultsStore
from proctor.adapters.clickhouse.session import HttpSession
from proctor.api.suite import EvalSuiteSpec
from proctor.bootstrap.judge import JudgeParts, ScenarioKey, build_judge, collect_names
from proctor.core.agents.prompt import told_text
from proctor.core.grading.attempts import digest_rubrics
from proctor.core.grading.facts import FactValues
from proctor.core.grading.marks import Weights
from proctor.core.grading.rows import RowSource
from proctor.core.grading.rubric import Rubric, compile_rubric
from proctor.core.ids import AttemptKey
from proctor.core.scenarios.answer import load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import InvalidInput

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Fact = int | Annotated[str, StringConstraints(max_length=2000)]


class _Section(BaseModel):
    """Closed and immutable; input never shows up in an error, for it holds secrets."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class StoreLogin(_Section):
    """The results store."""

    host: _Text
    port: int = Field(ge=1, le=65_535)
    user: _Text
    password: SecretStr
    database: _Text = "proctor"
    secure: bool = False


class ScenarioSource(_Section):
    """What the grader holds of a scenario.

    Attributes:
        directory: the scenario's folder; brief and answer key are read from it.
        facts: the values of the key's facts in the run's dataset.
        dataset: the dataset, as its restricted user; needed where answers are artifacts.
    """

    directory: Path
    facts: dict[str, _Fact]
    dataset: StoreLogin | None = None


class GraderConfig(_Section):
    """What a grader is told when it starts.

    Attributes:
        run: the EvalRun's uid.
        suite: the frozen suite's spec.
        store: where attempts and answers are, and grades go.
        scenarios: by name.
        secrets: values by ``name/key``, for the judge.
        allowed_hosts: provider hosts that may be spoken to.
        summary: the file to replace whenever something was graded.
    """

    run: _Text
    suite: EvalSuiteSpec
    store: StoreLogin
    scenarios: dict[str, ScenarioSource] = Field(min_length=1)
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    allowed_hosts: tuple[str, ...] = ()
    summary: Path


class GradeStore(Protocol):
    """What the grader needs of the results store; every method may raise `Retryable` while it is away."""

    async def attempts(self, run: str, *, since: datetime | None = None) -> tuple[AttemptRecord, ...]:
        """Return a run's ended attempts; with an instant, those that ended then or later."""
        ...

    async def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return the bodies of these digests that there are."""
        ...

    async def events(self, key: AttemptKey) -> tuple[Event, ...]:
        """Return an attempt's trajectory."""
        ...

    async def grades(self, run: str) -> tuple[GradeRow, ...]:
        """Return a run's grades."""
        ...

    async def write_grades(self, grades: Sequence[GradeRow]) -> None:
        """Store grades; writing them again changes nothing."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class GraderParts:
    """What the grading job works with.

    Attributes:
        run: the EvalRun's uid.
        store: where attempts and answers are, and grades go.
        rubrics: ready ones, by scenario.
        rubric_digest: one digest for them all.
        weights: the suite's.
        summary: the file to replace whenever something was graded.
        judge: None for a suite that is graded by checks alone.
        rows: by scenario, what asks its dataset for an artifact's rows.
    """

    run: str
    store: GradeStore
    rubrics: dict[str, Rubric]
    rubric_digest: str
    weights: Weights
    summary: Path
    judge: JudgeParts | None = None
    rows: Mapping[str, RowSource] = field(default_factory=dict)


def parse_grader_config(line: bytes) -> GraderConfig:
    """Read the configuration.

    Raises:
        InvalidInput: it is none; the message names the field, never a value.
    """
    try:
        return GraderConfig.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InvalidInput(f"grader's configuration: {field}: {first['msg']}") from None


def build_grader(config: GraderConfig) -> GraderParts:
    """Make a configuration's parts.

    Raises:
        InvalidInput: a brief or an answer key is at fault, a fact is missing, or the judge can't be asked.
    """
    seeds = {ref.name: ref.seed for ref in config.suite.scenarios}
    keys = {name: _load_key(name, source, seeds[name]) for name, source in config.scenarios.items()}
    rubrics = {name: _build_rubric(name, key, config.scenarios[name].facts) for name, key in keys.items()}
    judge = build_judge(
        config.suite.judge,
        {name: ScenarioKey(key.answer, key.brief, rubrics[name].facts) for name, key in keys.items()},
        names=collect_names(config.suite.servers, config.suite.models),
        run=config.run,
        secrets={name: secret.get_secret_value() for name, secret in config.secrets.items()},
        allowed_hosts=config.allowed_hosts,
    )
    told = config.suite.weights
    return GraderParts(
        run=config.run,
        store=ResultsStore(_build_endpoint(config.store), config.store.database),
        rubrics=rubrics,
        rubric_digest=digest_rubrics({name: rubric.digest for name, rubric in rubrics.items()}),
        weights=Weights(told.programmatic, told.judge, told.error_penalty_cap),
        judge=judge,
        summary=config.summary,
        rows={
            name: DatasetRows(HttpSession(_build_endpoint(source.dataset).in_database(source.dataset.database)))
            for name, source in config.scenarios.items()
            if source.dataset is not None
        },
    )


def _build_endpoint(login: StoreLogin) -> Endpoint:
    told: dict[str, Any] = login.model_dump(exclude={"password", "database"})
    return Endpoint(**told, password=login.password.get_secret_value())


def _load_key(name: str, source: ScenarioSource, seed: int) -> ScenarioKey:
    try:
        return ScenarioKey(load_answer(source.directory, seed), load_brief(source.directory, seed), {})
    except InvalidInput as error:
        raise InvalidInput(f"scenario {name}: {error}") from error


def _build_rubric(name: str, key: ScenarioKey, facts: FactValues) -> Rubric:
    try:
        return compile_rubric(key.answer, facts, told=told_text(key.brief))
    except InvalidInput as error:
        raise InvalidInput(f"rubric of scenario {name}: {error}") from error
