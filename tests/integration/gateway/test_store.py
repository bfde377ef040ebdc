"""The gateway's process with a real store, real tools and a real agent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse.results import ResultsStore
from proctor.core.digests import digest_bytes
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.events import EventKind
from proctor.core.trajectory.outcome import Outcome
from proctor.core.trajectory.trajectory_digest import digest_trajectory
from proctor.local.engine import Engine
from support.engines import SMALL, ask
from support.gateway import CELL, OPERATOR_TOKEN, RUN, RUN_KEY, make_suite
from support.gateway_process import GatewayProcess, start_gateway
from support.local_runs import SQL_SERVER
from support.messages_server import KEY, MODEL, Cut, MessagesServer, overloaded, reply_text, reply_tool, serve_messages

pytestmark = pytest.mark.engine

REAL_CELL = CellKey("error-root-cause", "sql", "real", 1)
REAL_KEY = AttemptKey(RUN, REAL_CELL, 1)
ANSWER = "The cart database ran out of connections: 8 failing checkouts. Ümläute 🚀"
QUERY = "SELECT 'canary-from-the-database'"
DATASET_PASSWORD = "dataset-password-7f3a"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root: Path = tmp_path_factory.mktemp("gateway-engine")
    async with Engine.start(root / "data", log=root / "engine.log", limits=SMALL) as engine:
        ask(engine.endpoint, f"SELECT 1 /* {DATASET_PASSWORD} */")
        yield engine


def play(body: dict[str, Any]) -> dict[str, Any]:
    """Call the tool once, then answer."""
    results = [
        block
        for message in body["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_result"
    ]
    if not results:
        return reply_tool(body["tools"][0]["name"], {"sql": QUERY}, text="I look first.")
    assert "canary-from-the-database" in json.dumps(results)
    return reply_text(ANSWER)


def make_real_suite(url: str) -> dict[str, Any]:
    model = {"model": MODEL, "secretKeyRef": {"name": "anthropic", "key": "api-key"}, "baseUrl": url}
    suite = make_suite(models=[{"name": "real", "anthropic": model}]).to_file()
    fields = ("HOST", "host"), ("PORT", "port"), ("USER", "user"), ("PASSWORD", "password"), ("NAME", "database")
    suite["servers"] = [
        {
            "name": "sql",
            "stdio": {"command": [sys.executable, str(SQL_SERVER)]},
            "env": [{"name": f"DB_{variable}", "dataset": name} for variable, name in fields],
            "allowedTools": ["query"],
        }
    ]
    return suite


class Setup:
    """A provider, and what a gateway needs to reach it and the store."""

    def __init__(self, engine: Engine, server: MessagesServer, spool: Path) -> None:
        self.engine = engine
        self.server = server
        self.suite = make_real_suite(server.url)
        endpoint = engine.endpoint
        login = {"host": endpoint.host, "port": endpoint.port, "user": endpoint.user, "password": endpoint.password}
        self.fields: dict[str, Any] = {
            "store": {**login, "database": "proctor_gateway"},
            "scenarios": {
                "error-root-cause": {
                    "brief": {"prompt": "Checkout has been failing for ten minutes. What is the cause?"},
                    "dataset": {**login, "database": "default"},
                }
            },
            "secrets": {"anthropic/api-key": KEY},
            "allowedHosts": [server.host],
            "spoolDir": str(spool),
        }

    def open_store(self) -> ResultsStore:
        return ResultsStore(self.engine.endpoint, "proctor_gateway")


@pytest.fixture
def setup(engine: Engine, tmp_path: Path) -> Iterator[Setup]:
    with serve_messages(play) as server:
        yield Setup(engine, server, tmp_path / "spool")
    ask(engine.endpoint, "DROP DATABASE IF EXISTS proctor_gateway")


def run_agent(gateway: GatewayProcess, cell: CellKey, *, stream: bool = True) -> dict[str, str]:
    """Run the builtin agent to its end, without a sandbox."""
    with gateway.control() as control:
        body = {"cell": str(cell), "attempt": 1, "deadlineSeconds": 120}
        opened: dict[str, str] = control.post("/runs/attempts", json=body).json()
        environment = {
            "PROCTOR_GATEWAY": f"unix:{opened['socket']}",
            "PROCTOR_TOKEN": opened["token"],
            "PROCTOR_STREAM": str(int(stream)),
        }
        agent = subprocess.run(
            [sys.executable, "-m", "proctor_agent"], env=environment, capture_output=True, check=False, timeout=120
        )
        end = {
            "cause": "exited",
            "exitCode": agent.returncode,
            "message": (agent.stdout + agent.stderr).decode()[-400:],
        }
        assert control.post(f"/runs/attempts/{opened['id']}/end", json=end).status_code == 204
    return opened


def list_ended(gateway: GatewayProcess) -> list[dict[str, Any]]:
    with gateway.control() as control:
        listed: list[dict[str, Any]] = control.get("/runs/attempts?after=0&wait=20").json()["attempts"]
        return listed


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("faults", [(), (overloaded("0"), Cut(after_events=1))], ids=["calm", "faults"])
async def test_an_agent_from_brief_to_stored_trajectory(setup: Setup, faults: tuple[Any, ...], *, stream: bool) -> None:
    """M-A8, M-B1, M-B2, P30: what the store has is the whole trajectory, every body, and the digest that seals it."""
    setup.server.faults.extend(faults)
    with start_gateway(setup.suite, **setup.fields) as gateway:
        opened = run_agent(gateway, REAL_CELL, stream=stream)
        (listed,) = list_ended(gateway)
        assert (listed["outcome"], listed["tool_calls"], listed["turns"]) == (Outcome.COMPLETED, 1, 2), listed["reason"]
        store = setup.open_store()
        # At this instant already: an attempt is listed only when the store has its rows.
        events = await store.events(REAL_KEY)
        blobs = await store.blobs(
            {digest for event in events for digest in (event.request_digest, event.result_digest)}
        )
        await store.close()
        assert gateway.stop() == 0
    assert [event.seq for event in events] == list(range(1, listed["events"] + 1))
    assert digest_trajectory(events) == listed["trajectory_digest"]
    assert blobs[listed["answer_digest"]].decode() == ANSWER
    wanted = {digest for event in events for digest in (event.request_digest, event.result_digest) if digest}
    assert set(blobs) == wanted
    assert all(digest_bytes(body) == digest for digest, body in blobs.items())
    kinds = [event.kind for event in events]
    assert [kind for kind in kinds if kind in {EventKind.MODEL_CALL, EventKind.TOOL_CALL, EventKind.ANSWER}] == [
        EventKind.MODEL_CALL,
        EventKind.TOOL_CALL,
        EventKind.MODEL_CALL,
        EventKind.ANSWER,
    ]
    check_logs(gateway.logs.decode(), opened["token"])
    check_secrecy(setup, blobs, opened["token"])


def check_logs(logs: str, token: str) -> None:
    """M-A8: no prompt, answer, key or token in logs — which are there, and JSON."""
    lines = [json.loads(line) for line in logs.splitlines()]
    assert {"gateway ready", "attempt opened", "attempt ended", "gateway ended"} <= {line["message"] for line in lines}
    for secret in (
        KEY,
        token,
        OPERATOR_TOKEN,
        RUN_KEY.decode(),
        "cart database",
        "Checkout",
        "canary",
        DATASET_PASSWORD,
    ):
        assert secret not in logs


def check_secrecy(setup: Setup, blobs: dict[str, bytes], token: str) -> None:
    """S15, S17: no key and no password in what the agent saw; no token at the provider."""
    record = b"\n".join(blobs.values())
    assert KEY.encode() not in record
    assert setup.engine.endpoint.password.encode() not in record
    for seen in setup.server.seen:
        assert token not in json.dumps([seen.headers, seen.body])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_gateway_that_was_killed_voids_what_was_open(setup: Setup) -> None:
    """M-D6, P8, P30: the next gateway lists what had ended, and never what was open; the number can't be used again."""
    with start_gateway(setup.suite, **setup.fields) as gateway:
        run_agent(gateway, REAL_CELL)
        list_ended(gateway)
        with gateway.control() as control:
            body = {"cell": str(CELL), "attempt": 1, "deadlineSeconds": 60}
            assert control.post("/runs/attempts", json=body).status_code == 201
        gateway.process.kill()
        gateway.process.wait()
    with start_gateway(setup.suite, **setup.fields) as gateway:
        (listed,) = list_ended(gateway)
        assert listed["cell"] == str(REAL_CELL)
        with gateway.control() as control:
            assert control.get("/runs/progress").json()["open"] == []
            again = control.post("/runs/attempts", json={"cell": str(REAL_CELL), "attempt": 1, "deadlineSeconds": 60})
            assert again.status_code == 400
        assert gateway.stop() == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_missing_key_is_told_before_anything_starts(setup: Setup) -> None:
    """S15: the message names the secret and the model; a host that is not allowed gets no key."""
    with pytest.raises(AssertionError, match="secret anthropic/api-key is not given"):
        start_gateway(setup.suite, **{**setup.fields, "secrets": {}}).__enter__()
    with pytest.raises(AssertionError, match="is not allowed to get a key"):
        start_gateway(setup.suite, **{**setup.fields, "allowedHosts": ["api.anthropic.com"]}).__enter__()
