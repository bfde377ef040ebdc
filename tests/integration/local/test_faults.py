"""Whatever dies, nothing is left and nothing is lost; whatever is wrong, the message says so."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from support.local_runs import (
    Machine,
    find_engine,
    find_process,
    kill,
    list_descendants,
    make_suite,
    odd_server,
    scores_of,
    sql_server,
    wait_until_gone,
)

# Two kills, drawn once: early (engines and gateway come up), and while cells run.
_DRAW = random.Random(20261130)  # noqa: S311 - moments that can be repeated, not secrets
_MOMENTS = [_DRAW.uniform(*window) for window in ((0.5, 3.0), (5.0, 9.0))]


@pytest.mark.drill
@pytest.mark.parametrize("moment", _MOMENTS, ids=lambda moment: f"{moment:.1f}s")
def test_kill_nine_leaves_no_process_and_the_same_table_follows(
    machine: Machine, reference: dict[str, str | None], moment: float
) -> None:
    """P30, M-D6: `kill -9` at any point leaves no process and no half-written cell; the resumed table is the same."""
    suite = machine.write_suite(make_suite(f"killed-{round(moment * 1000)}"))
    process = machine.start("run", str(suite))
    # The moment counts from when the run's folder is there: an interpreter's start says nothing.
    known = len(machine.runs())
    while process.poll() is None and len(machine.runs()) == known:
        time.sleep(0.05)
    limit = time.monotonic() + moment
    left: set[int] = set()
    while time.monotonic() < limit and process.poll() is None:
        left |= set(list_descendants(process.pid))
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert wait_until_gone(left) == {}
    before = machine.last_run()
    finished = {cell["cell"]: cell["attempt"] for cell in before["cells"] if cell.get("score")}

    resumed = machine.call("run", str(suite))
    assert resumed.returncode == 0, resumed.stderr
    after = machine.last_run()
    assert scores_of(after) == reference
    assert {cell["cell"]: cell["attempt"] for cell in after["cells"] if cell["cell"] in finished} == finished


def kill_program(process: Popen[str], *modules: str) -> None:
    for module in modules:
        kill(find_process(process, module))


def kill_engines(process: Popen[str], *folders: str) -> None:
    for folder in folders:
        kill(find_engine(process, folder))


@pytest.mark.drill
@pytest.mark.parametrize(
    ("kill_parts", "parts"),
    [(kill_program, ("proctor.jobs.grade", "proctor.gateway")), (kill_engines, ("engines/results", "/clones/"))],
    ids=["grader and gateway", "results and dataset engines"],
)
def test_parts_that_die_while_cells_run_cost_nothing(
    machine: Machine, reference: dict[str, str | None], kill_parts: Callable[..., None], parts: tuple[str, ...]
) -> None:
    """M-D6: ClickHouse killed while recording and grading, gateway and grader killed: the same table all the same."""
    server = sql_server("sql", "--slow", "0.3")
    suite = machine.write_suite(make_suite(f"parts-{kill_parts.__name__.replace('_', '-')}", servers=[server]))
    process = machine.start("run", str(suite))
    find_process(process, "proctor_agent")
    kill_parts(process, *parts)
    _, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    assert scores_of(machine.last_run()) == reference


@pytest.mark.drill
def test_an_engine_that_dies_while_it_is_filled_is_filled_anew(machine: Machine) -> None:
    """ClickHouse killed while seeding: started again from nothing, so no row is doubled, and no litter is left."""
    scenario = {"name": "error-root-cause", "volume": "0.005", "seed": 8}
    suite = machine.write_suite(make_suite("seeding", scenarios=[scenario], replicates=2))
    process = machine.start("run", str(suite))
    kill(find_engine(process, ".staging-"))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not [path for path in (machine.data_dir / "datasets").iterdir() if path.name.startswith(".staging-")]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (odd_server("odd", "--start", "exit"), "odd"),
        (odd_server("odd", "--start", "no-tools"), "lists no tools"),
        (odd_server("odd", deniedTools=None, allowedTools=["die"]), "its tool 'die' gives no answer"),
    ],
    ids=["exits", "no tools", "answers no call"],
)
def test_a_server_that_is_not_ready_ends_the_run_before_any_agent(
    machine: Machine, reference: dict[str, str | None], server: dict[str, Any], words: str
) -> None:
    """P26, P27: verdict Error, ServerNotReady, the server's own words, and no attempt was started."""
    assert reference
    suite = machine.write_suite(make_suite("not-ready", servers=[server]))
    finished = machine.call("run", str(suite), "--new")
    assert finished.returncode == 3, finished.stderr
    status = machine.last_run()["run"]["status"]
    assert (status["verdict"], status["reason"]) == ("Error", "ServerNotReady")
    assert words in status["summary"]
    assert not (machine.runs()[-1].parent / "attempts.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenarios": [{"name": "no-such-scenario"}]}, "no-such-scenario"),
        ({"servers": [odd_server("gone") | {"stdio": {"command": ["no-such-program"]}}]}, "no-such-program"),
        ({"servers": [odd_server("odd") | {"env": [
            {"name": "KEY", "secretKeyRef": {"name": "none", "key": "key"}}
        ]}]}, "none/key"),
        ({"models": [{"name": "m", "anthropic": {"model": "claude-x", "baseUrl": "https://evil.example",
                                                 "secretKeyRef": {"name": "anthropic", "key": "api-key"}}}]},
         "--allow-host evil.example"),
    ],
    ids=["scenario", "command", "secret", "host"],
)  # fmt: skip
def test_what_can_be_refused_is_refused_before_anything_starts(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    """Exit 64, the message names it and how to mend it, and nothing was made."""
    machine = Machine(tmp_path, {"PROCTOR_SECRET_ANTHROPIC_API_KEY": "k"})
    finished = machine.call("run", str(machine.write_suite(make_suite("refused", **change))))
    assert finished.returncode == 64, finished.stderr
    assert words in finished.stderr
    assert not machine.data_dir.exists()
