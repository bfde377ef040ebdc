"""The page of a run of a cluster over HTTP: the same as `proctor report` makes of the same run."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.adapters.clickhouse.results import ResultsStore
from proctor.core.reports.page import render_page
from proctor.local.engine import Engine
from proctor.web.app import build_app
from proctor.web.reports import Reports
from support.engines import SMALL
from support.finished_runs import FinishedRun, make_finished_run, play_alike, store_runs, suite_of
from support.readers import TOKEN, MemoryReader
from support.reports import gather, read_page

pytestmark = pytest.mark.engine

PATH = "/v1/evals/evalruns/made/report"


def body_of(run: FinishedRun) -> dict[str, Any]:
    values: dict[str, Any] = run.run.to_file()
    values["metadata"] |= {"namespace": "evals", "uid": run.uid}
    return values


def summary_of(run: FinishedRun) -> str:
    grades = {
        cell["cell"]: {"attempt": 1, "score": cell["score"]} for cell in run.cells if cell.get("score") is not None
    }
    return json.dumps({"grades": grades, "rubricDigest": run.run.status.digests.rubric, "judgeDigest": "", "fault": ""})


async def ask(run: FinishedRun, engine: Engine, *, summary: str) -> httpx.Response:
    suite = {"data": {"suite.json": json.dumps(run.suite.to_file())}}
    reader = MemoryReader([body_of(run), suite, {"data": {"summary": summary}}])
    app = build_app(reader, TOKEN, Reports(reader, engine.endpoint).render)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://web", timeout=60) as client:
        reply = await client.get(PATH, headers={"Authorization": f"Bearer {TOKEN}"})
    assert [kind for kind, _, _ in reader.asked] == ["EvalRun", "ConfigMap", "ConfigMap"][: len(reader.asked)]
    return reply


async def test_the_page_is_the_one_that_one_machine_makes(tmp_path: Path) -> None:
    """D5: verdict, scores, marks and trajectories of a run, from its EvalRun and the store; nobody's later grades."""
    run = make_finished_run(tmp_path, suite=suite_of(12), play=play_alike)
    async with Engine.start(tmp_path / "engine", log=tmp_path / "engine.log", limits=SMALL) as engine:
        store = ResultsStore(engine.endpoint)
        await store_runs(store, run)
        marks = {cell["cell"]: {"programmatic": cell["programmatic"], "penalty": "0"} for cell in run.cells}
        mine = [replace(grade, payload=json.dumps(marks[str(grade.key.cell)])) for grade in run.grades()]
        await store.write_grades(mine)
        await store.write_grades([replace(mine[0], rubric_digest="01" * 32, score=Decimal("0.123"), payload="{}")])
        await store.close()
        reply = await ask(run, engine, summary=summary_of(run))
    assert reply.status_code == 200, reply.text
    told, local = read_page(reply.text), read_page(render_page(gather(run)))
    assert told.cells == local.cells
    for tag in ("h1", "td", "th"):
        assert told.texts(tag) == local.texts(tag)


async def test_a_run_that_has_not_begun_has_no_page(tmp_path: Path) -> None:
    """It is refused before the store is asked."""
    run = make_finished_run(tmp_path, suite=suite_of(12), play=play_alike)
    status = run.run.status.model_copy(update={"started": None})
    early = replace(run, run=run.run.model_copy(update={"status": status}))
    reader = MemoryReader([body_of(early)])
    app = build_app(reader, TOKEN, Reports(reader, store=None).render)  # type: ignore[arg-type] # never asked
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as client:
        reply = await client.get(PATH, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (reply.status_code, "has not begun" in reply.json()["error"]) == (409, True)
