"""Seed, gateway and grader as the processes that they are in pods: mounted files, TCP, a ConfigMap, and a house."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.manifests.names import RunNames
from support.houses import House, keep_house
from support.mounted import (
    ADMIN_PASSWORD,
    DATASET_PASSWORD,
    OPERATOR_TOKEN,
    RUN,
    RUN_KEY,
    StandIn,
    make_children,
    make_suite,
    stand_in,
    write_mount,
)
from support.toolboxes import listen_lines

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = "error-root-cause"
USER, OTHER = "pr_0123456789_0", "pr_9876543210_0"
SQL_SERVER = ROOT / "tests" / "support" / "mcp_servers" / "sql_server.py"
SUITE = make_suite(
    servers=[
        {
            "name": "sql",
            "stdio": {"command": ["sql-server"]},
            "allowedTools": ["query"],
            "sqlTool": {"name": "query", "argument": "sql"},
        }
    ]
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with keep_house(tmp_path_factory.mktemp("h")) as running:
        yield running


async def start(*arguments: str, env: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *arguments,
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def seed_arguments(house: House, mount: Path, log: Path, *more: str, control: int | None = None) -> list[str]:
    results, port, _ = house.ports
    return [
        "proctor.jobs.seed",
        *("--mounted", str(mount), "--scenario", SCENARIO, "--clickhouse-kind", "Embedded", "--host", "127.0.0.1"),
        *("--port", str(results), "--control-port", str(control or port), "--user-name", USER),
        *("--termination-log", str(log), *more),
    ]


@pytest.fixture(scope="module")
def place(house: House, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The last words of a seeding Job."""
    folder = tmp_path_factory.mktemp("seed")
    mount = write_mount(folder / "mount", suite=SUITE)

    async def seed() -> int:
        process = await start(*seed_arguments(house, mount, folder / "log"))
        out, errors = await process.communicate()
        assert DATASET_PASSWORD.encode() not in out + errors
        return process.returncode or 0

    assert asyncio.run(seed()) == 0, (folder / "log").read_text()
    return dict(json.loads((folder / "log").read_bytes()))


def children(house: House, place: Mapping[str, Any], toolbox: int) -> dict[str, Any]:
    return make_children(
        store={"host": "127.0.0.1", "port": house.ports[0]},
        datasets={SCENARIO: place},
        toolboxes=[{"server": "sql", "scenario": SCENARIO, "host": "127.0.0.1", "port": toolbox}],
        hostNames=["127.0.0.1:8080"],
    )


@asynccontextmanager
async def open_gateway(mount: Path, state: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    """Start a gateway; give it with a client that is the operator's."""
    process = await start(
        "proctor.gateway",
        *("--mounted", str(mount)),
        env={"PROCTOR_LISTEN": "127.0.0.1:0", "PROCTOR_STATE_DIR": str(state)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = await process.stdout.readline()
    assert line, await process.stderr.read()
    host, port = json.loads(line)["listen"]
    headers = {"authorization": f"Bearer {OPERATOR_TOKEN}"}
    try:
        async with httpx.AsyncClient(
            base_url=f"http://{host}:{port}", headers=headers, timeout=120, trust_env=False
        ) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def play(client: httpx.AsyncClient, cell: str) -> None:
    """Run one cell as the operator and a sandbox would."""
    order = {"cell": cell, "attempt": 1, "deadlineSeconds": 120}
    opened = (await client.post("/runs/attempts", json=order)).json()
    assert (await client.post("/runs/attempts", json=order)).json() == opened
    agent = await start(
        "proctor_agent", env={"PROCTOR_GATEWAY": str(client.base_url).rstrip("/"), "PROCTOR_TOKEN": opened["token"]}
    )
    assert await agent.wait() == 0, await agent.communicate()
    ended = await client.post(f"/runs/attempts/{opened['id']}/end", json={"cause": "exited", "exitCode": 0})
    assert ended.status_code == httpx.codes.NO_CONTENT


@asynccontextmanager
async def open_toolbox(place: Mapping[str, Any]) -> AsyncIterator[int]:
    env = {
        "DB_HOST": str(place["host"]),
        "DB_PORT": str(place["port"]),
        "DB_NAME": str(place["database"]),
        "DB_USER": str(place["user"]),
        "DB_PASSWORD": DATASET_PASSWORD,
    }
    async with listen_lines([sys.executable, str(SQL_SERVER)], env) as port:
        yield port


def open_api(tmp_path: Path) -> Any:
    return stand_in(tmp_path / "account", RunNames.of(RUN).grades)


def grade(mount: Path, api: StandIn, state: Path) -> Any:
    env = {**api.environment, "PROCTOR_STATE_DIR": str(state)}
    return start("proctor.jobs.grade", "--mounted", str(mount), env=env)


async def test_a_grader_may_be_first(house: House, place: dict[str, Any], tmp_path: Path) -> None:
    """issue, Faults: started before any gateway made the store's tables, it waits for cells as at any other time."""
    store = {"host": "127.0.0.1", "port": house.ports[0], "database": "another_namespace"}
    mount = write_mount(tmp_path / "mount", suite=SUITE, children={**children(house, place, 9), "store": store})
    with open_api(tmp_path) as api:
        api.data["finish"] = "true"
        grader = await grade(mount, api, tmp_path / "grader")
        _, errors = await grader.communicate()
        assert grader.returncode == 0, errors
        assert json.loads(api.data["summary"])["grades"] == {}


async def test_cells_are_played_recorded_and_graded_without_a_pipe(
    house: House, place: dict[str, Any], tmp_path: Path
) -> None:
    """issue, Children: the same scores as on one machine, through TCP, a house and a ConfigMap."""
    async with open_toolbox(place) as port:
        mount = write_mount(tmp_path / "mount", suite=SUITE, children=children(house, place, port))
        async with open_gateway(mount, tmp_path / "state") as (gateway, client):
            probed = (await client.post("/runs/probe")).json()["servers"]
            assert [(server["tools"], server["error"]) for server in probed] == [(["query"], "")]
            with open_api(tmp_path) as api:
                api.failures += [500, 409, 429, 403]
                grader = await grade(mount, api, tmp_path / "grader")
                await play(client, f"{SCENARIO}/sql/~oracle/1")
                await play(client, f"{SCENARIO}/sql/newest/1")
                summary = await asyncio.to_thread(api.wait_for_summary, 2)
                api.data["finish"] = "true"
                out, errors = await grader.communicate()
                assert (grader.returncode, api.refused) == (0, []), errors
            gateway.send_signal(signal.SIGTERM)
            said, logged = await gateway.communicate()
            assert gateway.returncode == 0, logged
    scores = {cell: grade["score"] for cell, grade in summary["grades"].items()}
    assert scores[f"{SCENARIO}/sql/~oracle/1"] == "1.0000"
    assert scores[f"{SCENARIO}/sql/newest/1"] == "0.8333"
    told = out + errors + said + logged
    assert not any(secret.encode() in told for secret in (RUN_KEY, OPERATOR_TOKEN, DATASET_PASSWORD, ADMIN_PASSWORD))


async def test_a_grader_whose_configmap_is_gone_ends_for_good(
    house: House, place: dict[str, Any], tmp_path: Path
) -> None:
    """issue, Faults: the run was deleted; a Job that is tried again would find it no more."""
    mount = write_mount(tmp_path / "mount", suite=SUITE, children=children(house, place, 9))
    with open_api(tmp_path) as api:
        api.failures.append(404)
        grader = await grade(mount, api, tmp_path / "grader")
        _, errors = await grader.communicate()
        assert (grader.returncode, b"404" in errors) == (1, True)


async def test_a_grader_lets_the_datasets_go(house: House, place: dict[str, Any], tmp_path: Path) -> None:
    """S31: a house has room for so many datasets; one that nobody needs any more makes room for the next run's."""
    served = house.serve(place["hash"], OTHER).json()
    own = {**place, "user": OTHER, "port": served["port"]}
    store = {"host": "127.0.0.1", "port": house.ports[0], "controlPort": house.ports[1]}
    mount = write_mount(tmp_path / "mount", suite=SUITE, children={**children(house, own, 9), "store": store})
    with open_api(tmp_path) as api:
        api.data["finish"] = "true"
        grader = await grade(mount, api, tmp_path / "grader")
        _, errors = await grader.communicate()
    assert grader.returncode == 0, errors
    assert [(house.directory / "served" / user).exists() for user in (USER, OTHER)] == [True, False]


async def test_a_house_that_is_away_is_asked_again(house: House, tmp_path: Path) -> None:
    """issue, Faults: ClickHouse down in seeding; the Job is tried again, and says why in its last words."""
    mount = write_mount(tmp_path / "mount", suite=SUITE)
    process = await start(*seed_arguments(house, mount, tmp_path / "log", "--patience=2", control=9))
    await process.communicate()
    words = json.loads((tmp_path / "log").read_bytes())
    assert (process.returncode, words["retryable"]) == (75, True)


async def test_a_gateway_waits_for_its_store(house: House, place: dict[str, Any], tmp_path: Path) -> None:
    """issue, Faults: ClickHouse down when a gateway starts; its pod is not restarted for it."""
    mount = write_mount(tmp_path / "mount", suite=SUITE, children=children(house, place, 9))
    env = {"PROCTOR_LISTEN": "127.0.0.1:0", "PROCTOR_STATE_DIR": str(tmp_path / "state")}
    house.end()
    process = await start("proctor.gateway", "--mounted", str(mount), env=env)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert b"the store is away" in await process.stderr.readline()
    finally:
        await asyncio.to_thread(house.start)
    assert json.loads(await process.stdout.readline())["ready"] is True
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    assert process.returncode == 0


async def test_a_house_that_comes_back_is_waited_for(house: House, tmp_path: Path) -> None:
    """issue, Faults: ClickHouse down in seeding; one that restarts costs no try of the Job."""
    mount = write_mount(tmp_path / "mount", suite=SUITE)
    house.end()
    process = await start(*seed_arguments(house, mount, tmp_path / "log"))
    assert process.stdout is not None
    try:
        assert "waiting" in json.loads(await process.stdout.readline())
    finally:
        await asyncio.to_thread(house.start)
    await process.communicate()
    assert process.returncode == 0, (tmp_path / "log").read_text()


async def test_a_wrong_password_is_final(house: House, tmp_path: Path) -> None:
    """architecture: what no retry can mend ends the Job at once, without the password in its words."""
    mount = write_mount(tmp_path / "mount", suite=SUITE)
    (mount / "clickhouse" / "password").write_text("another-password-of-a-house")
    process = await start(*seed_arguments(house, mount, tmp_path / "log"))
    await process.communicate()
    words = json.loads((tmp_path / "log").read_bytes())
    assert (process.returncode, words["retryable"]) == (1, False)
    assert "another-password" not in json.dumps(words)
