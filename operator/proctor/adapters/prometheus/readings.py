"""From statuses to readings: what each series says of a run or a suite, and nothing where nothing is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from proctor.adapters.prometheus import catalogue
from proctor.adapters.prometheus.catalogue import VERDICT_VALUES, Series
from proctor.api.run import ArmStatus, ComparisonStatus, ConditionStatus, ConditionType, EvalRunStatus, JudgeStatus
from proctor.api.suite_status import EvalSuiteStatus

_Known = Decimal | float | int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one series.

    Attributes:
        labels: values of the series' labels after `namespace` and `suite`.
    """

    series: Series
    value: float
    labels: tuple[str, ...] = ()


def read_finished(status: EvalRunStatus) -> tuple[Reading, ...]:
    """Return what a run with a verdict says of its suite."""
    readings = [
        *_read(catalogue.VERDICT, VERDICT_VALUES[status.verdict]),
        *_read(catalogue.SUITE_INFO, 1, *_digests(status)),
        *_read_times(status),
        *_read_words(catalogue.CELLS, status.cells.model_dump()),
        *_read_words(catalogue.OUTCOMES, status.outcomes.model_dump()),
        *_read_words(catalogue.CONTROL_SCORE, status.controls.model_dump()),
        *_read_judge(status.judge),
    ]
    for arm in status.arms:
        readings += _read_arm(arm)
    for comparison in status.comparisons:
        readings += _read_comparison(comparison)
    return tuple(readings)


def read_active(statuses: Iterable[EvalRunStatus]) -> Iterator[Reading]:
    """Yield what the runs of one suite that have no verdict say together."""
    runs = tuple(statuses)
    pending = sum(run.cells.pending for run in runs)
    running = sum(run.cells.running for run in runs)
    states = {"pending": pending, "running": running, "done": sum(run.cells.total for run in runs) - pending - running}
    yield from _read(catalogue.ACTIVE_RUNS, len(runs))
    yield from _read_words(catalogue.ACTIVE_CELLS, states)
    started = [run.started for run in runs if run.started is not None]
    yield from _read(catalogue.ACTIVE_SINCE, min(started).timestamp() if started else None)


def read_suite(status: EvalSuiteStatus) -> tuple[Reading, ...]:
    """Return what a suite says of itself."""
    gate = None if status.gate is None else VERDICT_VALUES.get(status.gate.verdict)
    readings = [*_read(catalogue.GATE_VERDICT, gate)]
    if status.schedule is not None:
        interval = status.schedule.next - status.schedule.since
        readings += _read(catalogue.NEXT_RUN, status.schedule.next.timestamp())
        readings += _read(catalogue.SCHEDULE_INTERVAL, interval.total_seconds())
    return tuple(readings)


def _read(series: Series, value: _Known, *labels: str) -> Iterator[Reading]:
    """Yield a reading; none where the value is not known, for a series is never NaN."""
    if value is not None:
        yield Reading(series, float(value), labels)


def _read_words(series: Series, values: Mapping[str, _Known]) -> Iterator[Reading]:
    for word in series.words:
        yield from _read(series, values[word], word)


def _digests(status: EvalRunStatus) -> tuple[str, ...]:
    fixed = status.digests
    return tuple(digest or "" for digest in (fixed.suite, fixed.gate, fixed.rubric, fixed.judge))


def _read_times(status: EvalRunStatus) -> Iterator[Reading]:
    started, ended = status.started, status.ended
    if ended is None:
        return
    yield from _read(catalogue.LAST_COMPLETED, ended.timestamp())
    if started is None:
        return
    yield from _read(catalogue.RUN_DURATION, (ended - started).total_seconds())
    for phase, begun, over in _phases(status, started, ended):
        yield from _read(catalogue.PHASE_DURATION, max((over - begun).total_seconds(), 0.0), phase)


def _phases(status: EvalRunStatus, started: datetime, ended: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    """Yield the phases that a run came through, as its conditions tell: so a restart of the operator loses none."""
    reached = {
        condition.type: condition.last_transition_time
        for condition in status.conditions
        if condition.status is ConditionStatus.TRUE
    }
    seeded = reached.get(ConditionType.SEEDED)
    if seeded is None:
        return
    yield "Seeding", started, seeded
    enforced = reached.get(ConditionType.NETWORK_ENFORCED)
    if enforced is None:
        return
    yield "Enforcing", seeded, enforced
    yield "Running", max(seeded, enforced), ended


def _read_judge(judge: JudgeStatus | None) -> Iterator[Reading]:
    if judge is None:
        return
    yield from _read_words(catalogue.JUDGE_TOKENS, {"input": judge.input_tokens, "output": judge.output_tokens})
    yield from _read(catalogue.JUDGE_COST, judge.usd)
    yield from _read(catalogue.JUDGE_AGREEMENT, judge.agreement)


def _read_arm(arm: ArmStatus) -> Iterator[Reading]:
    names = (arm.server, arm.model)
    if arm.score is not None:
        yield from _read(catalogue.SCORE, arm.score.mean, *names)
        yield from _read(catalogue.SCORE_LOW, arm.score.low, *names)
        yield from _read(catalogue.SCORE_HIGH, arm.score.high, *names)
    yield from _read(catalogue.ARM_GRADED, arm.graded, *names)
    yield from _read(catalogue.ARM_COST, arm.usd, *names)
    yield from _read(catalogue.ARM_TOKENS, arm.tokens, *names)
    yield from _read(catalogue.ARM_TOOL_CALLS, _decimal(arm.tool_calls), *names)
    yield from _read(catalogue.ARM_CELL_SECONDS, _decimal(arm.seconds), *names)
    yield from _read(catalogue.ARM_CONSISTENCY, arm.consistency, *names)
    if arm.tool_errors is not None:
        for word, count in arm.tool_errors.model_dump().items():
            yield from _read(catalogue.ARM_TOOL_ERRORS, count, *names, word)


def _read_comparison(each: ComparisonStatus) -> Iterator[Reading]:
    # Of servers, the candidate is one and the model is common; of models, the other way round.
    names = (each.candidate, each.model) if each.model is not None else (each.server or "", each.candidate)
    yield from _read(catalogue.DELTA, each.delta, *names)
    yield from _read(catalogue.DELTA_LOW, each.low, *names)
    yield from _read(catalogue.DELTA_HIGH, each.high, *names)
    yield from _read(catalogue.PAIRS, each.pairs, *names)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
