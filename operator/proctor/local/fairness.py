"""Whether a scenario is fair on its own rows: facts that are there, an oracle that finds out, impostors that don't."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.adapters.clickhouse.artifact_rows import DatasetRows
from proctor.adapters.clickhouse.datasets import compute_facts
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.agents.playing import first_request, play
from proctor.core.agents.prompt import PromptLimits, neutral_prompt, told_text
from proctor.core.agents.scripted import REFERENCE_SQL, GeneralPolicy, ScriptContext
from proctor.core.grading.artifacts import grade_by_rubric
from proctor.core.grading.facts import check_facts, fill_text
from proctor.core.grading.marks import Programmatic, Ungraded
from proctor.core.grading.rows import RowSource
from proctor.core.grading.rubric import Rubric, compile_rubric
from proctor.core.scenarios.answer import AnswerKey, Band
from proctor.core.scenarios.folder import Scenario
from proctor.core.scenarios.policies import POLICIES_FILE
from proctor.core.scenarios.reference import REFERENCE_FILE, Reference
from proctor.core.seeding.facts import FactValue
from proctor.core.seeding.identity import ANSWER_FILE
from proctor.errors import InvalidInput, Terminal
from proctor.local.dataset_files import SeedRequest, datasets_dir, engine_dir
from proctor.local.datasets import ensure_dataset
from proctor.local.staging import stage_folder

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress
    from proctor.core.fairness.folder import Draft
    from proctor.core.scenarios.document import Fault
    from proctor.core.seeding.record import DatasetRecord

CONTROLS: Mapping[str, Band] = {
    GeneralPolicy.ORACLE: Band(low=Decimal("0.95"), high=Decimal(1)),
    GeneralPolicy.NOOP: Band(low=Decimal(0), high=Decimal(0)),
}
"""What every scenario must hold to, whatever its key says."""

_LIMITS = PromptLimits(max_turns=25, max_tool_calls=40)
_ONE_VALUE = "let it return one row with one value that is not empty: an aggregate, such as count() or any(…)"


@dataclass(frozen=True, slots=True)
class Score:
    """What a scripted model scored.

    Attributes:
        band: where it must lie.
        score: where it lies.
        answer: what the model said.
    """

    band: Band
    score: Decimal
    answer: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What a scenario's own rows say of it.

    Attributes:
        record: the dataset.
        faults: what is wrong.
        scores: what the scripted models scored, by policy; empty where facts are at fault.
    """

    record: DatasetRecord
    faults: tuple[Fault, ...]
    scores: Mapping[str, Score]


async def try_scenario(
    draft: Draft, request: SeedRequest, *, data_dir: Path, on_progress: OnProgress | None = None
) -> Trial:
    """Seed a scenario whose files are all right, ask its facts, and play its scripted models.

    Raises:
        Retryable: the engine went away.
        Terminal: the dataset can't be built here.
    """
    record = await ensure_dataset(request, data_dir=data_dir, on_progress=on_progress)
    scenario, reference = draft.scenario()
    async with _serve(record, data_dir) as (own, agents):
        facts, faults = await _ask_facts(draft, scenario.answer, own, record.database)
        if faults:
            return Trial(record, tuple(faults), {})
        if record.volume == Decimal(reference.volume) and record.seed == reference.seed:
            faults = _compare(draft, reference, facts)
        rubric, rows = compile_rubric(scenario.answer, facts, told=told_text(scenario.brief)), DatasetRows(agents)
        scores = await _play(scenario, record, rubric, session=agents, rows=rows)
        faults += await _try_answers(draft, scenario, rubric, rows)
    faults += [_out_of_band(draft, policy, one) for policy, one in scores.items() if not one.band.holds(one.score)]
    return Trial(record, tuple(faults), scores)


@asynccontextmanager
async def _serve(record: DatasetRecord, data_dir: Path) -> AsyncIterator[tuple[HttpSession, HttpSession]]:
    """Serve a throw-away clone to ourselves, and to the user that agents are: what they may not ask, no policy may."""
    from proctor.local.engine import Access, Engine, clone_dataset

    with stage_folder(datasets_dir(data_dir), record.hash) as staging:
        clone = staging / "engine"
        clone_dataset(engine_dir(data_dir, record.hash), clone)
        async with Engine.start(clone, log=staging / "engine.log", access=Access(record.database)) as engine:
            if engine.agent_endpoint is None:
                raise AssertionError("asked for an agent's user")
            yield HttpSession(engine.endpoint), HttpSession(engine.agent_endpoint)


async def _ask_facts(
    draft: Draft, key: AnswerKey, session: HttpSession, database: str
) -> tuple[dict[str, FactValue], list[Fault]]:
    facts: dict[str, FactValue] = {}
    faults = []
    for name, fact in key.facts.items():
        place = ("facts", name, "sql")
        try:
            facts |= await compute_facts(session, {name: fact}, database)
            check_facts(key.model_copy(update={"facts": {name: fact}}), facts)
        except InvalidInput as error:
            faults.append(draft.fault(ANSWER_FILE, place, str(error), _ONE_VALUE))
        except Terminal as error:
            faults.append(draft.fault(ANSWER_FILE, place, str(error), "correct the query"))
    return facts, faults


def _compare(draft: Draft, reference: Reference, facts: Mapping[str, FactValue]) -> list[Fault]:
    return [
        draft.fault(
            REFERENCE_FILE, ("facts", name), f"is {told!r}, but the rows say {facts[name]!r}", "copy the latter"
        )
        for name, told in reference.facts.items()
        if facts[name] != told
    ]


async def _play(
    scenario: Scenario, record: DatasetRecord, rubric: Rubric, *, session: HttpSession, rows: RowSource
) -> dict[str, Score]:
    context = ScriptContext(sql_tool=REFERENCE_SQL, policies=scenario.policies)

    async def run_sql(_: str, arguments: dict[str, Any]) -> str:
        try:
            rows = await session.fetch(arguments[REFERENCE_SQL.argument])
        except Terminal as error:
            return str(error)  # as a server would say it; the model then misses its markers
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)

    bands: dict[str, Band] = {**CONTROLS, **scenario.answer.impostors}
    scores = {}
    for policy, band in bands.items():
        body = first_request(neutral_prompt(scenario.brief, record.anchor, _LIMITS), REFERENCE_SQL.name)
        played = await play(policy, context, body, run_sql)
        scores[policy] = Score(band, (await _grade(rubric, played.answer, rows)).score, played.answer)
    return scores


async def _grade(rubric: Rubric, answer: str, rows: RowSource) -> Programmatic:
    graded = await grade_by_rubric(rubric, answer.encode("utf-8", "replace"), rows)
    if isinstance(graded, Ungraded):
        raise Terminal(f"grading an artifact: {graded.reason}")
    return graded


async def _try_answers(draft: Draft, scenario: Scenario, rubric: Rubric, rows: RowSource) -> list[Fault]:
    """Grade whole answers that are artifacts, which takes the rows; others were graded with the files."""
    if rubric.artifact is None:
        return []
    faults = []
    for answer in scenario.answer.answers:
        graded = await _grade(rubric, fill_text(answer.text, rubric.facts), rows)
        if not answer.holds(graded.score):
            message = f"scores {graded.score}, outside {answer.low} to {answer.high}"
            faults.append(draft.fault(ANSWER_FILE, ("answers", answer.id), message, "correct the checks, or the band"))
    return faults


def _out_of_band(draft: Draft, policy: str, one: Score) -> Fault:
    said = " ".join(one.answer.split())
    message = f"`{policy}` scores {one.score}, not {one.band.low} to {one.band.high}; it says: {said[:300]}"
    if policy in CONTROLS:
        return draft.fault(POLICIES_FILE, (policy,), message, "correct its queries, or the rubric")
    return draft.fault(ANSWER_FILE, ("impostors", policy), message, "correct the rubric, the policy, or the band")
