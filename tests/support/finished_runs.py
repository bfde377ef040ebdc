"""A maker of finished runs: their files as `proctor run` leaves them, and the rows that the store has of them."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from proctor.adapters.clickhouse.results import GradeRow, RecordBatch, ResultsStore
from proctor.api.fields import NameRef
from proctor.api.run import EvalRun, EvalRunSpec
from proctor.api.suite import EvalSuiteSpec, Metadata
from proctor.core.digests import canonical_json, digest_bytes, digest_json, preview
from proctor.core.ids import AttemptKey, CellKey, Control
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AttemptRecord, Outcome
from proctor.core.trajectory.trajectory_digest import digest_trajectory
from proctor.local.engine import Engine
from proctor.local.rundir import RunDir
from proctor.reconcile.cells import expand_cells
from proctor.reconcile.decide import decide
from proctor.reconcile.observed import DatasetSeen, GraderSeen, GraderState, GradeSeen, ProbeSeen, Readiness
from proctor.reconcile.run_cells import render_cells
from support.runs import NOW, RUBRIC, TOOLS, make_prepared, make_record, make_run, make_suite

CHECKS = ("names-the-service", "names-the-change", "counts-the-failures", "blames-no-decoy")
_CELLS_PER_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class Played:
    """What one cell does: everything about it that a test may want to choose.

    Attributes:
        score: of its checks; one quarter of the checks for each 0.25.
        tools: the tools it calls, in order, each with how the call ended.
        latency_ms: of each call.
        texts: said by the server in each result.
    """

    score: Decimal = Decimal("0.75")
    outcome: Outcome = Outcome.COMPLETED
    tools: tuple[tuple[str, Status], ...] = (("run_query", Status.OK),) * 5
    latency_ms: int = 20
    texts: str = "12 rows"
    usd: Decimal | None = None


Play = Callable[[CellKey, random.Random], Played]


def play_alike(_cell: CellKey, chance: random.Random) -> Played:
    """Every arm is as good as every other."""
    return Played(score=Decimal(chance.choice(["0.5", "0.75", "0.75", "1"])))


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over.

    Attributes:
        directory: its files.
        run: as run.json has it.
        records: its attempts.
        play: what its cells did.
    """

    directory: RunDir
    run: EvalRun
    suite: EvalSuiteSpec
    records: tuple[AttemptRecord, ...]
    cells: tuple[dict[str, Any], ...]
    play: Play = field(repr=False)
    seed: int = 0

    @property
    def uid(self) -> str:
        return self.run.metadata.uid or ""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the store's rows, some cells at a time."""
        for start in range(0, len(self.records), _CELLS_PER_BATCH):
            page = self.records[start : start + _CELLS_PER_BATCH]
            made = {record.key: _make_events(record, _played(self.play, record.key.cell, self.seed)) for record in page}
            yield RecordBatch(
                events=tuple((key, event) for key, (events, _) in made.items() for event in events),
                blobs={digest: body for _, blobs in made.values() for digest, body in blobs.items()},
                attempts=page,
            )

    def grades(self) -> tuple[GradeRow, ...]:
        scores = {cell["cell"]: cell for cell in self.cells}
        return tuple(
            GradeRow(
                key=record.key,
                rubric_digest=RUBRIC,
                score=Decimal(scores[str(record.key.cell)]["score"]),
                payload=json.dumps(scores[str(record.key.cell)]["programmatic"]),
            )
            for record in self.records
            if record.outcome is not Outcome.INFRA_ERROR
        )


def make_finished_run(
    data_dir: Path,
    *,
    name: str = "made-261130-120000-0001",
    suite: EvalSuiteSpec | None = None,
    play: Play = play_alike,
    seed: int = 1,
    datasets: str = "da" * 32,
    rubric: str = RUBRIC,
    tools: str = TOOLS,
    now: datetime = NOW,
) -> FinishedRun:
    """Write the files of a run that has just ended; its verdict is what `decide` makes of it."""
    frozen = suite or make_suite()
    digest = digest_json(frozen.to_file())
    uid = digest_bytes(name.encode())[:32]
    snapshot = make_run(frozen, name=name, uid=uid, suite_digest=digest, active_since=now)
    cells = expand_cells(frozen)
    played = {cell: _played(play, cell, seed) for cell in cells}
    records = tuple(_make_record(AttemptKey(uid, cell, 1), played[cell], now) for cell in cells)
    seen = make_prepared(frozen)
    seen = replace(
        seen,
        datasets={
            one: DatasetSeen(prepared=Readiness.READY, served=Readiness.READY, digest=datasets) for one in seen.datasets
        },
        probes=tuple(
            ProbeSeen(server=probe.server, scenario=probe.scenario, tools_digest=tools) for probe in seen.probes or ()
        ),
        grader=GraderSeen(state=GraderState.RUNNING, starts=1, rubric_digest=rubric),
    )
    fixed = replace(snapshot, status=decide(snapshot, seen, now).status)
    grades = {cell: GradeSeen(attempt=1, score=_score_of(cell, one)) for cell, one in played.items()}
    over = replace(
        seen, ended=records, grader=replace(seen.grader, state=GraderState.FINISHED, finishing=True, grades=grades)
    )
    status = decide(fixed, over, now + timedelta(minutes=20)).status
    marks = {str(cell): _make_marks(cell, one) for cell, one in played.items()}
    lines = render_cells(replace(fixed, status=status), over, marks)
    run = EvalRun(
        metadata=Metadata(name=name, uid=uid, generation=1),
        spec=EvalRunSpec(suite_ref=NameRef(name=name.split("-", maxsplit=1)[0])),
        status=status,
    )
    directory = RunDir(data_dir / "runs" / name)
    (directory.path / "logs").mkdir(parents=True)
    directory.suite_file.write_text(json.dumps(frozen.to_file()))
    directory.write_run(run, lines)
    return FinishedRun(directory, run, frozen, records, lines, play, seed)


async def store_runs(store: ResultsStore, *runs: FinishedRun) -> None:
    """Write the rows of runs."""
    await store.migrate()
    for run in runs:
        for batch in run.batches():
            await store.write(batch)
        await store.write_grades(run.grades())


@asynccontextmanager
async def serve_runs(data_dir: Path, *runs: FinishedRun) -> AsyncIterator[ResultsStore]:
    """Start the results engine of a data dir with the rows of runs in it."""
    async with Engine.start(data_dir / "engines" / "results", log=data_dir / "engines" / "results.log") as engine:
        store = ResultsStore(engine.endpoint)
        try:
            await store_runs(store, *runs)
            yield store
        finally:
            await store.close()


def suite_of(cells: int, *, models: tuple[str, ...] = ("loudest", "newest"), **changes: Any) -> EvalSuiteSpec:
    """A suite of about so many judged cells: scenarios × two servers × models × replicates."""
    replicates = max(3, min(100, cells // (2 * len(models))))
    scenarios = max(1, round(cells / (2 * len(models) * replicates)))
    return make_suite(
        scenarios=[{"name": f"scenario-{number}", "volume": "0.001"} for number in range(1, scenarios + 1)],
        models=[{"name": model, "scripted": {"policy": "newest"}} for model in models],
        replicates=replicates,
        **changes,
    )


def _played(play: Play, cell: CellKey, seed: int) -> Played:
    match cell.control:
        case Control.ORACLE:
            return Played(score=Decimal(1))
        case Control.NOOP:
            return Played(score=Decimal(0), tools=(("run_query", Status.OK),))
        case None:
            return play(cell, random.Random(f"{seed} {cell}"))  # noqa: S311 - a game that can be played again


def _score_of(_cell: CellKey, played: Played) -> Decimal:
    return played.score.quantize(Decimal("0.0001"))


def _make_record(key: AttemptKey, played: Played, now: datetime) -> AttemptRecord:
    statuses = [status for _, status in played.tools]
    bare = make_record(key.cell, outcome=played.outcome)
    answer = _answer_of(key)
    record = replace(
        bare,
        key=key,
        reason="the agent answered",
        opened=now + timedelta(seconds=key.cell.replicate),
        ended=now + timedelta(seconds=key.cell.replicate + 6),
        turns=len(played.tools) + 1,
        tool_calls=len(played.tools),
        agent_tool_errors=statuses.count(Status.AGENT_ERROR),
        server_tool_errors=statuses.count(Status.SERVER_ERROR),
        input_tokens=1000 * (len(played.tools) + 1),
        output_tokens=50 * (len(played.tools) + 1),
        usd=played.usd,
        answer_digest=digest_bytes(answer),
    )
    events, _ = _make_events(record, played)
    return replace(record, events=len(events), trajectory_digest=digest_trajectory(events))


def _answer_of(key: AttemptKey) -> bytes:
    return f"cart-service fails since its last release ({key.cell})".encode()


def _make_marks(cell: CellKey, played: Played) -> dict[str, Any]:
    satisfied = int(played.score * len(CHECKS))
    # Which checks are met is the cell's own, so that marks differ between cells of one score.
    shift = int(digest_bytes(str(cell).encode())[:4], 16) % len(CHECKS)
    met = {CHECKS[(shift + place) % len(CHECKS)] for place in range(satisfied)}
    return {
        "programmatic": {
            "score": str(_score_of(cell, played)),
            "remark": "",
            "checks": [
                {"id": name, "weight": 2, "polarity": "positive", "satisfied": name in met, "why": f"line 1: {name}"}
                for name in CHECKS
            ],
        },
        "penalty": "0",
    }


def _make_events(record: AttemptRecord, played: Played) -> tuple[tuple[Event, ...], dict[str, bytes]]:
    """A whole trajectory: what it read, a model call before and after each tool call, and its answer."""
    trace = digest_bytes(str(record.key).encode() + record.key.run.encode())[:32]
    blobs: dict[str, bytes] = {}
    events: list[Event] = []

    def add(kind: EventKind, *, request: bytes = b"", result: bytes = b"", **changes: Any) -> None:
        seq = len(events) + 1
        blobs.update({digest_bytes(body): body for body in (request, result) if body})
        events.append(
            Event(
                seq=seq,
                ts=record.opened + timedelta(milliseconds=100 * seq),
                kind=kind,
                span_id=digest_bytes(f"{trace} {seq}".encode())[:16],
                trace_id=trace,
                request_digest=digest_bytes(request) if request else "",
                request_bytes=len(request),
                request_preview=preview(request),
                result_digest=digest_bytes(result) if result else "",
                result_bytes=len(result),
                result_preview=preview(result),
                **changes,
            )
        )

    model = record.key.cell.model
    tokens = {"input_tokens": 1000, "output_tokens": 50, "latency_us": 40_000, "name": model}
    add(EventKind.ATTEMPT_OPENED)
    add(EventKind.BRIEF_READ, result=b"Something is wrong in the shop; find out what.")
    add(EventKind.TOOLS_LISTED, result=b'{"tools": [{"name": "run_query"}]}')
    for number, (tool, status) in enumerate(played.tools, 1):
        arguments = canonical_json({"query": f"count what {record.key} asks for, {number}"})
        use = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": {"query": f"SELECT {number}"}}
        reply = canonical_json({"content": [{"type": "text", "text": f"Looking, {number}."}, use]})
        add(EventKind.MODEL_CALL, request=b'{"messages": []}', result=reply, **tokens)
        result = canonical_json({"content": [{"type": "text", "text": f"{played.texts} ({record.key}, {number})"}]})
        wrong = "" if status is Status.OK else "tool_error"
        add(
            EventKind.TOOL_CALL,
            name=tool,
            status=status,
            error_class=wrong,
            latency_us=1000 * (played.latency_ms + number),
            request=arguments,
            result=result,
        )
    said = canonical_json({"content": [{"type": "text", "text": "Done."}]})
    add(EventKind.MODEL_CALL, request=b'{"messages": []}', result=said, **tokens)
    add(EventKind.ANSWER, request=_answer_of(record.key))
    add(EventKind.ATTEMPT_ENDED)
    return tuple(events), blobs
