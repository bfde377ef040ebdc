"""Makers of runs and of what is seen of them, and a cluster that exists only in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, assert_never

from proctor.api.run import EvalRunStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.core.ids import AttemptKey, CellKey, Control
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, ExitCause, Outcome, ProcessExit
from proctor.reconcile.cells import expand_cells
from proctor.reconcile.decide import decide
from proctor.reconcile.observed import (
    AttemptSeen,
    AttemptState,
    DatasetSeen,
    FaultSeen,
    GatewaySeen,
    GraderSeen,
    GraderState,
    GradeSeen,
    Isolation,
    Observed,
    ProbeSeen,
    Readiness,
)
from proctor.reconcile.plan import (
    Action,
    EndAttempt,
    FinishGrading,
    Plan,
    PrepareDataset,
    ProbeServers,
    ProveIsolation,
    ReleaseChildren,
    ServeDataset,
    StartAttempt,
    StartGateway,
    StartGrader,
    StopAttempt,
)
from proctor.reconcile.snapshot import RunSnapshot

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
UID = "4f1c"
DIGEST = "ab" * 32
TOOLS = "cd" * 32
RUBRIC = "ef" * 32


def make_suite(**changes: Any) -> EvalSuiteSpec:
    spec: dict[str, Any] = {
        "scenarios": [{"name": "error-root-cause", "volume": "0.001"}],
        "anchor": "2026-11-30T12:00:00Z",
        "servers": [
            {"name": "left", "stdio": {"command": ["left"]}, "deniedTools": []},
            {"name": "right", "stdio": {"command": ["right"]}, "deniedTools": []},
        ],
        "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
        "replicates": 3,
        "parallelism": 2,
        "judge": {"none": True},
        "gate": {"enforcement": "Enforce", "baseline": {"server": "left"}, "maxDrop": "0.05"},
    }
    return EvalSuiteSpec.model_validate(spec | changes)


def make_run(suite: EvalSuiteSpec | None = None, **changes: Any) -> RunSnapshot:
    run = RunSnapshot(
        name="quick-1",
        uid=UID,
        generation=1,
        suite=suite or make_suite(),
        suite_digest=DIGEST,
        active_since=NOW,
        status=EvalRunStatus(),
    )
    return replace(run, **changes)


def make_record(cell: CellKey, attempt: int = 1, outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> AttemptRecord:
    record = AttemptRecord(
        key=AttemptKey(UID, cell, attempt),
        outcome=outcome,
        reason="",
        opened=NOW,
        ended=NOW + timedelta(seconds=5),
        requests=0 if outcome is Outcome.INFRA_ERROR else 12,
        turns=6,
        tool_calls=5,
        agent_tool_errors=0,
        server_tool_errors=0,
        infra_tool_errors=0,
        denied=0,
        input_tokens=1000,
        output_tokens=100,
        usd=None,
        waited_us=0,
        limit=None,
        answer_source=AnswerSource.PUT,
        answer_digest=DIGEST,
        tools_digest=TOOLS,
        trajectory_digest=DIGEST,
        events=12,
    )
    return replace(record, **changes)


def make_attempt(
    cell: CellKey, attempt: int = 1, state: AttemptState = AttemptState.RUNNING, **changes: Any
) -> AttemptSeen:
    seen = AttemptSeen(
        key=AttemptKey(UID, cell, attempt),
        state=state,
        created=NOW,
        running=None if state is AttemptState.STARTING else NOW,
        exit=ProcessExit(ExitCause.EXITED, 0) if state in {AttemptState.EXITED, AttemptState.ENDING} else None,
    )
    return replace(seen, **changes)


def make_prepared(suite: EvalSuiteSpec, **changes: Any) -> Observed:
    """Everything stands, no cell has started."""
    scenarios = [scenario.name for scenario in suite.scenarios]
    observed = Observed(
        datasets={
            name: DatasetSeen(prepared=Readiness.READY, served=Readiness.READY, digest=DIGEST) for name in scenarios
        },
        isolation=Isolation.ENFORCED,
        gateway=GatewaySeen(state=Readiness.READY, starts=1),
        probes=tuple(
            ProbeSeen(server=server.name, scenario=name, tools_digest=TOOLS)
            for server in suite.servers
            for name in scenarios
        ),
        grader=GraderSeen(state=GraderState.RUNNING, starts=1, rubric_digest=RUBRIC),
    )
    observed = replace(observed, **changes)
    check_possible(observed)
    return observed


def check_possible(observed: Observed) -> None:
    """Refuse states that no executor can be in, so that no table tests what can't happen."""
    keys = [attempt.key for attempt in observed.attempts]
    assert len(keys) == len(set(keys)), "an attempt is seen twice"
    assert not {record.key for record in observed.ended} & set(keys), "an attempt is both open and ended"
    for attempt in observed.attempts:
        if attempt.state in {AttemptState.EXITED, AttemptState.ENDING}:
            assert attempt.exit is not None, "its process is gone, so its exit is known"
        if attempt.state in {AttemptState.STARTING, AttemptState.RUNNING}:
            assert attempt.exit is None, "its process is there, so it has no exit"
    if observed.probes is not None:
        assert observed.gateway.starts > 0, "servers are probed by a gateway"


def score_of(cell: CellKey) -> Decimal | None:
    match cell.control:
        case Control.ORACLE:
            return Decimal(1)
        case Control.NOOP:
            return Decimal(0)
        case None:
            return Decimal("0.8")


@dataclass
class FakeCluster:
    """Brings plans about in memory, one step of every child per tick; the state is all that a look shows."""

    suite: EvalSuiteSpec
    score: Callable[[CellKey], Decimal | None] = score_of
    outcome: Callable[[AttemptKey], Outcome] = lambda _key: Outcome.COMPLETED
    now: datetime = NOW
    observed: Observed = field(default_factory=Observed)
    started: list[AttemptKey] = field(default_factory=list)
    most_open: int = 0

    def copy(self) -> FakeCluster:
        """Return a cluster in the same state, which goes its own way."""
        return replace(self, started=list(self.started))

    def tick(self) -> None:
        """Let every child move one step."""
        self.now += timedelta(seconds=1)
        seen = self.observed
        datasets = {name: self._step_dataset(dataset) for name, dataset in seen.datasets.items()}
        gateway = seen.gateway
        if gateway.state is Readiness.STARTING:
            gateway = replace(gateway, state=Readiness.READY)
        ended = list(seen.ended)
        attempts = []
        for attempt in seen.attempts:
            moved = self._step_attempt(attempt)
            if isinstance(moved, AttemptRecord):
                ended.append(moved)
            else:
                attempts.append(moved)
        self.observed = replace(seen, datasets=datasets, gateway=gateway, attempts=tuple(attempts), ended=tuple(ended))
        self._grade()

    def apply(self, plan: Plan) -> None:
        for action in plan.actions:
            self.apply_one(action)
        self.most_open = max(self.most_open, len(self.observed.attempts))
        check_possible(self.observed)

    def crash_gateway(self) -> None:
        """The gateway dies: open attempts are void, probes have to be made anew."""
        self.observed = replace(
            self.observed,
            gateway=replace(self.observed.gateway, state=Readiness.ABSENT),
            probes=None,
            attempts=tuple(replace(attempt, state=AttemptState.LOST) for attempt in self.observed.attempts),
        )

    def crash_executor(self) -> None:
        """One machine's executor is killed: everything of it dies, what is on the disk stays."""
        seen = self.observed
        self.observed = Observed(
            datasets={
                name: replace(dataset, served=Readiness.ABSENT)
                for name, dataset in seen.datasets.items()
                if dataset.prepared is Readiness.READY
            },
            ended=seen.ended,
            withdrawn=seen.withdrawn | {attempt.key for attempt in seen.attempts},
            grader=replace(seen.grader, state=GraderState.ABSENT, starts=0, finishing=False),
        )

    def _step_dataset(self, dataset: DatasetSeen) -> DatasetSeen:
        if dataset.prepared is Readiness.STARTING:
            return replace(dataset, prepared=Readiness.READY, digest=DIGEST)
        if dataset.served is Readiness.STARTING:
            return replace(dataset, served=Readiness.READY)
        return dataset

    def _step_attempt(self, attempt: AttemptSeen) -> AttemptSeen | AttemptRecord:
        match attempt.state:
            case AttemptState.STARTING:
                return replace(attempt, state=AttemptState.RUNNING, running=self.now)
            case AttemptState.RUNNING:
                return replace(attempt, state=AttemptState.EXITED, exit=ProcessExit(ExitCause.EXITED, 0))
            case AttemptState.EXITED | AttemptState.LOST:
                return attempt
            case AttemptState.ENDING:
                outcome = self.outcome(attempt.key)
                reason = "the node went away" if outcome is Outcome.INFRA_ERROR else ""
                return make_record(attempt.key.cell, attempt.key.attempt, outcome, reason=reason)
            case _:
                assert_never(attempt.state)

    def _grade(self) -> None:
        grader = self.observed.grader
        if grader.state is not GraderState.RUNNING:
            return
        grades = dict(grader.grades)
        for record in self.observed.ended:
            if record.outcome is not Outcome.INFRA_ERROR:
                grades.setdefault(
                    record.key.cell, GradeSeen(attempt=record.key.attempt, score=self.score(record.key.cell))
                )
        state = GraderState.FINISHED if grader.finishing else GraderState.RUNNING
        self.observed = replace(self.observed, grader=replace(grader, grades=grades, state=state, rubric_digest=RUBRIC))

    def apply_one(self, action: Action) -> None:
        seen = self.observed
        match action:
            case PrepareDataset(scenario):
                self.observed = replace(
                    seen, datasets={**seen.datasets, scenario: DatasetSeen(prepared=Readiness.STARTING)}
                )
            case ServeDataset(scenario):
                dataset = replace(seen.datasets[scenario], served=Readiness.STARTING)
                self.observed = replace(seen, datasets={**seen.datasets, scenario: dataset})
            case ProveIsolation():
                self.observed = replace(seen, isolation=Isolation.ENFORCED)
            case StartGateway():
                starts = seen.gateway.starts + 1
                self.observed = replace(seen, gateway=GatewaySeen(state=Readiness.STARTING, starts=starts))
            case ProbeServers():
                self.observed = replace(seen, probes=make_prepared(self.suite).probes)
            case StartGrader():
                grader = replace(seen.grader, state=GraderState.RUNNING, starts=seen.grader.starts + 1)
                self.observed = replace(seen, grader=replace(grader, finishing=False))
            case FinishGrading():
                self.observed = replace(seen, grader=replace(seen.grader, finishing=True))
            case StartAttempt() | StopAttempt() | EndAttempt():
                self._apply_to_attempt(action)
            case ReleaseChildren():
                self.observed = replace(
                    seen,
                    datasets={name: replace(d, served=Readiness.ABSENT) for name, d in seen.datasets.items()},
                    gateway=replace(seen.gateway, state=Readiness.ABSENT),
                    grader=replace(seen.grader, state=GraderState.FINISHED),
                    attempts=(),
                )
            case _:
                assert_never(action)

    def _apply_to_attempt(self, action: StartAttempt | StopAttempt | EndAttempt) -> None:
        seen = self.observed
        if isinstance(action, StartAttempt):
            if action.key in {attempt.key for attempt in seen.attempts}:
                return  # a name that exists: creating it again changes nothing
            self.started.append(action.key)
            attempt = AttemptSeen(key=action.key, state=AttemptState.STARTING, created=self.now)
            self.observed = replace(seen, attempts=(*seen.attempts, attempt))
            return
        attempts = []
        for attempt in seen.attempts:
            if attempt.key != action.key:
                attempts.append(attempt)
            elif isinstance(action, EndAttempt):
                attempts.append(replace(attempt, state=AttemptState.ENDING))
            elif attempt.state is AttemptState.LOST:
                attempts.append(replace(attempt, exit=ProcessExit(action.cause)))
            else:
                attempts.append(replace(attempt, state=AttemptState.EXITED, exit=ProcessExit(action.cause)))
        self.observed = replace(seen, attempts=tuple(attempts))


def list_states(cluster: FakeCluster, *, most_passes: int) -> list[tuple[RunSnapshot, FakeCluster]]:
    """Every state between two effects of a run, with the status that was last written."""
    found = []
    run = make_run(cluster.suite)
    for _ in range(most_passes):
        plan = decide(run, cluster.observed, cluster.now)
        for action in plan.actions:
            cluster.apply_one(action)
            found.append((run, cluster.copy()))  # killed after this effect, before the status was written
        run = replace(run, status=plan.status)
        found.append((run, cluster.copy()))
        if run.status.terminal and plan.empty:
            break
        cluster.tick()
    return found


def cells_of(suite: EvalSuiteSpec) -> tuple[CellKey, ...]:
    return expand_cells(suite)


def make_fault(reason: str = "InfrastructureFailed", message: str = "no engine") -> FaultSeen:
    return FaultSeen(reason, message)
