"""Any ClickHouse by URL: results and datasets there, servers under test as a user that reads one database."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.restricted import build_user
from proctor.local.engine import Access, Engine
from proctor.local.engine.config import EngineLimits
from support.local_runs import Machine, make_suite, scores_of


def url_of(endpoint: Endpoint) -> str:
    return f"http://{endpoint.user}:{endpoint.password}@{endpoint.host}:{endpoint.port}/default"


async def test_a_run_on_a_clickhouse_by_url(machine: Machine, reference: dict[str, str | None], tmp_path: Path) -> None:
    """The same suite on a ClickHouse that was there before: the same scores; a user that may too much is refused."""
    suite = str(machine.write_suite(make_suite("remote")))
    limits = EngineLimits(memory_bytes=3 << 30)
    async with Engine.start(tmp_path / "engine", log=tmp_path / "log", limits=limits) as engine:
        url = url_of(engine.endpoint)
        refused = await asyncio.to_thread(
            machine.call, "run", suite, "--clickhouse-url", url, "--agent-url", url, "--json"
        )
    status = json.loads(refused.stdout)["run"]["status"]
    assert (refused.returncode, status["reason"]) == (3, "DatasetUnavailable")
    assert "may create tables" in status["summary"]

    [database] = [path.stem for path in (tmp_path / "engine" / "metadata").glob("ds_*.sql")]
    access = Access(agent_database=database)
    async with Engine.start(tmp_path / "engine", log=tmp_path / "log", access=access, limits=limits) as engine:
        assert engine.agent_endpoint is not None
        urls = ("--clickhouse-url", url_of(engine.endpoint), "--agent-url", url_of(engine.agent_endpoint))
        finished = await asyncio.to_thread(machine.call, "run", suite, *urls, "--json")
    assert finished.returncode == 0, finished.stderr
    assert scores_of(json.loads(finished.stdout)) == reference


def test_the_user_for_a_dataset_reads_one_database_within_bounds() -> None:
    """architecture: SELECT and SHOW on one database and nothing else; no readonly, which servers send themselves."""
    endpoint = Endpoint("db", 8123, "proctor_x", "pa'ss", "default")
    from proctor.adapters.clickhouse.restricted import AgentLimits

    create, grant = build_user(endpoint, "ds_1", AgentLimits())
    assert grant == "GRANT SELECT, SHOW ON ds_1.* TO proctor_x"
    assert "readonly" not in create
    assert r"pa\'ss" in create
    assert "max_execution_time = 30 MIN 1 MAX 30" in create
