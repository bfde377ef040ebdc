"""Scripted models against real MCP servers over a real engine with seeded rows."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.core.agents.prompt import told_text
from proctor.core.agents.scripted import ScriptContext, SqlTool
from proctor.core.grading.checks import check_answer
from proctor.core.grading.marks import Programmatic
from proctor.core.grading.rubric import compile_rubric
from proctor.core.scenarios.answer import load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.policies import load_policies
from proctor.core.scenarios.reference import load_reference
from proctor.core.seeding.record import DatasetRecord
from proctor.local.dataset_files import SeedRequest, engine_dir
from proctor.local.datasets import ensure_dataset
from proctor.local.engine import Access, Engine, clone_dataset
from support.playing import ANCHOR, SCENARIOS, Played, make_body, play

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

FOLDER = SCENARIOS / "error-root-cause"
SERVERS = {
    "mcp-clickhouse": SqlTool("run_query", "query"),
    "clickscope": SqlTool("run_select_query", "sql"),
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


BANDS = {
    "oracle": ("0.95", "1"),
    "noop": ("0", "0"),
    "newest": ("0.6", "1"),
    "loudest": ("0", "0.39"),
    "strongest-decoy": ("0", "0.1"),
    "names-everything": ("0", "0.1"),
    "wrong-evidence": ("0.1", "0.5"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def record(data_dir: Path) -> DatasetRecord:
    reference = load_reference(FOLDER)
    request = SeedRequest(FOLDER, seed=reference.seed, anchor=reference.anchor, volume=Decimal(reference.volume))
    return await ensure_dataset(request, data_dir=data_dir)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint(record: DatasetRecord, data_dir: Path) -> AsyncIterator[Endpoint]:
    clone = data_dir / "clone"
    clone_dataset(engine_dir(data_dir, record.hash), clone)
    async with Engine.start(clone, log=data_dir / "clone.log", access=Access(record.database)) as engine:
        assert engine.agent_endpoint is not None
        yield engine.agent_endpoint


@asynccontextmanager
async def connect(server: str, endpoint: Endpoint) -> AsyncIterator[Client]:
    environment = {
        "PATH": os.environ["PATH"],
        "CLICKHOUSE_HOST": endpoint.host,
        "CLICKHOUSE_PORT": str(endpoint.port),
        "CLICKHOUSE_USER": endpoint.user,
        "CLICKHOUSE_PASSWORD": endpoint.password,
        "CLICKHOUSE_DATABASE": endpoint.database,
        "CLICKHOUSE_SECURE": "false",
    }
    command = str(Path(sys.executable).with_name(server))
    async with Client(StdioServerParameters(command=command, env=environment)) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(endpoint: Endpoint) -> dict[tuple[str, str], Played]:
    """Every policy through every server; a server is started once, for starting one costs seconds."""
    found = {}
    for server, tool in SERVERS.items():
        context = ScriptContext(sql_tool=tool, policies=load_policies(FOLDER))
        async with connect(server, endpoint) as client:

            async def call_tool(name: str, arguments: dict[str, str], client: Client = client) -> str:
                result = await client.call_tool(name, arguments)
                return "\n".join(getattr(block, "text", "") for block in result.content)

            for policy in BANDS:
                body = make_body(FOLDER.name, tool.name, anchor=ANCHOR)
                found[server, policy] = await play(policy, context, body, call_tool)
    return found


def grade(answer: str, record: DatasetRecord) -> Programmatic:
    key = load_answer(FOLDER)
    rubric = compile_rubric(key, record.facts[key.facts_digest], told=told_text(load_brief(FOLDER)))
    return check_answer(rubric, answer)


async def test_the_reference_record_is_what_a_fresh_dataset_says(record: DatasetRecord) -> None:
    """Issue, part 8: the reference record shipped with the scenario is checked; architecture: truth is computed."""
    assert record.facts[load_answer(FOLDER).facts_digest] == load_reference(FOLDER).facts


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("policy", BANDS)
async def test_policies_land_in_their_band(
    server: str, policy: str, record: DatasetRecord, played: dict[tuple[str, str], Played]
) -> None:
    """Done means: oracle >= 0.95, noop 0, newest >= 0.6, loudest < 0.4, through both servers; impostors in band."""
    low, high = BANDS[policy]
    graded = grade(played[server, policy].answer, record)
    assert Decimal(low) <= graded.score <= Decimal(high), (played[server, policy], graded)


@pytest.mark.parametrize("policy", ["oracle", "newest", "loudest"])
async def test_both_servers_lead_to_the_same_words(policy: str, played: dict[tuple[str, str], Played]) -> None:
    """Manifest, controls: what a scripted model answers depends on the rows, not on how a server wraps them."""
    assert len({played[server, policy].answer for server in SERVERS}) == 1
