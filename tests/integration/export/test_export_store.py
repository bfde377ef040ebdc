"""`proctor export` over a real store: every event, every attempt, bounded memory."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.core.export.formats import Format, Subject
from proctor.core.ids import CellKey
from proctor.core.trajectory.events import Status
from proctor.core.trajectory.outcome import Outcome
from proctor.local.exporting import ExportSource, export_run
from support.finished_runs import Played, make_finished_run, serve_runs, suite_of
from support.otlp import attributes_of, parse_trace_request

pytestmark = pytest.mark.engine


def play(cell: CellKey, _chance: random.Random) -> Played:
    lost = cell.replicate == 3
    return Played(
        outcome=Outcome.INFRA_ERROR if lost else Outcome.COMPLETED,
        tools=(("run_query", Status.OK), ("\ud800tool", Status.AGENT_ERROR)),
        texts="\x00\u2028\ud800",
    )


async def test_events_and_spans_of_a_stored_run(tmp_path: Path) -> None:
    """M-A8, M-C2: every event of every attempt once, in order; one trace per attempt, marks with the counting one."""
    made = make_finished_run(tmp_path, suite=suite_of(12), play=play)
    source = ExportSource(directory=made.directory, data_dir=tmp_path)
    events: list[str] = []
    traces: list[str] = []
    async with serve_runs(tmp_path, made):
        await export_run(source, Format.JSONL, Subject.EVENTS, events.append)
        await export_run(source, Format.OTLP, Subject.CELLS, traces.append)
    assert len(events) == sum(record.events for record in made.records)
    by_attempt: dict[str, list[int]] = {}
    for line in events:
        event = json.loads(line)
        name = "/".join(str(event[part]) for part in ("scenario", "server", "model", "replicate", "attempt"))
        by_attempt.setdefault(name, []).append(event["seq"])
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_attempt.values())
    assert len(traces) == len(made.records)
    for line in traces:
        root, *calls = parse_trace_request(line).resource_spans[0].scope_spans[0].spans
        values = attributes_of(root)
        is_lost = values["proctor.outcome"] == "infra_error"
        assert values["proctor.counts"] is not is_lost
        assert any(event.name == "gen_ai.evaluation.result" for event in root.events) is not is_lost
        assert {call.parent_span_id for call in calls} == {root.span_id}


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path) -> None:
    """`proctor export … | head` ends quietly."""
    made = make_finished_run(tmp_path, suite=suite_of(200))
    command = [sys.executable, "-m", "proctor", "export", made.directory.name, "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
