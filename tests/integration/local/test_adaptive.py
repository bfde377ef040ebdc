"""Adaptive replicates on one machine: a run that is settled early, and one that takes all it may, killed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from proctor.settings import shipped_scenarios_dir
from support.local_runs import Machine, kill, make_suite, sql_server
from support.messages_server import KEY, MODEL, MessagesServer, play_policy, serve_messages

pytestmark = pytest.mark.drill

LEAST, MOST = 2, 8
"""Five looks: at 2, 4, 5, 7 and 8 replicates, so that the second block has a middle."""


@pytest.fixture
def provider() -> Iterator[MessagesServer]:
    scenario = shipped_scenarios_dir() / "error-root-cause"
    with serve_messages(play=play_policy(scenario, "newest", {"query": "sql"}), key=KEY) as server:
        yield server


def adaptive_suite(name: str, **changes: Any) -> dict[str, Any]:
    return make_suite(name, replicates=LEAST, adaptive={"maxReplicates": MOST}, **changes)


def test_a_run_that_is_settled_takes_no_more_cells(machine: Machine, undisturbed: dict[str, Any]) -> None:
    """Adaptive replicates: scripted scores that do not vary are settled by the first block; status and table say so."""
    assert undisturbed
    path = machine.write_suite(adaptive_suite("settled"))
    finished = machine.call("run", str(path), "--new")
    assert finished.returncode == 0, finished.stderr
    document = machine.last_run()
    status = document["run"]["status"]
    assert status["adaptive"] == {
        "replicates": LEAST, "maxReplicates": MOST, "block": 1, "blocks": 5, "stopped": "Settled",
    }  # fmt: skip
    assert status["cells"]["total"] == status["cells"]["graded"] == len(document["cells"])
    assert f"{LEAST} of at most {MOST} replicates, then the verdict was settled" in " ".join(finished.stdout.split())


def test_a_run_that_is_killed_in_a_later_block_goes_on_to_its_cap(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """Adaptive, resuming: kill -9 in the middle of the second block; what was finished is kept, nothing is repeated.

    A real model whose few scores are alike proves little, so all replicates are used and the verdict stays open.
    """
    score = Decimal(reference["error-root-cause/sql/newest/1"] or "0")
    gate = {"enforcement": "Audit", "minimum": f"{score * Decimal('0.95'):.2f}"}
    slow = [sql_server("sql", "--slow", "0.3")]
    path = machine.write_suite(adaptive_suite("open", servers=slow, gate=gate, parallelism=1))
    with_key = Machine(machine.root, {"ANTHROPIC_API_KEY": KEY})
    host = provider.url.removeprefix("http://")
    command = ("run", str(path), "--model", MODEL, "--base-url", provider.url, "--allow-host", host)
    process = with_key.start(*command, "--new")
    killed = wait_for_second_block(process, machine.data_dir / "runs", "open")
    kill(process.pid)
    process.communicate()
    assert killed["run"]["status"]["adaptive"]["block"] == 2
    resumed = with_key.call(*command)
    assert resumed.returncode == 2, resumed.stderr  # Inconclusive
    document = machine.last_run()
    assert document["run"]["metadata"]["uid"] == killed["run"]["metadata"]["uid"]
    check_cap(document)
    check_kept(killed, document)


def check_cap(document: dict[str, Any]) -> None:
    status = document["run"]["status"]
    assert (status["verdict"], status["reason"]) == ("Inconclusive", "IntervalTooWide")
    assert status["adaptive"] == {
        "replicates": MOST, "maxReplicates": MOST, "block": 5, "blocks": 5, "stopped": "MaxReplicates",
    }  # fmt: skip
    cells = status["cells"]
    assert cells["total"] == cells["graded"] == len(document["cells"]) == MOST + 2
    replicates = sorted(cell["replicate"] for cell in document["cells"] if cell["model"] == MODEL)
    assert replicates == list(range(1, MOST + 1))


def check_kept(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Finished cells keep their attempt, its trajectory and its score; the suite stays what it was."""
    found = {cell["cell"]: cell for cell in after["cells"]}
    finished = [cell for cell in before["cells"] if cell["state"] == "graded"]
    assert len(finished) >= LEAST + 2
    for cell in finished:
        same = ("attempt", "attempts", "trajectoryDigest", "score")
        assert [found[cell["cell"]][key] for key in same] == [cell[key] for key in same]
    assert before["run"]["status"]["digests"] == after["run"]["status"]["digests"]


def wait_for_second_block(process: Any, runs: Path, name: str, *, seconds: float = 120.0) -> dict[str, Any]:
    """Wait until a run has begun its second block and has a cell of it open."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and process.poll() is None:
        for path in runs.glob(f"{name}-*/run.json"):
            document: dict[str, Any] = json.loads(path.read_text())
            status = document["run"]["status"]
            if status.get("adaptive", {}).get("block") == 2 and status["cells"].get("running"):
                return document
        time.sleep(0.02)
    process.kill()
    out, err = process.communicate()
    raise AssertionError(f"no second block: {out}\n{err}")
