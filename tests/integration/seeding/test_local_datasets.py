"""Datasets on one machine: built once, committed whole, reused, and never half there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.adapters.clickhouse.datasets import Progress
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.scenarios.answer import load_answer
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.local.dataset_files import SeedRequest, find_dataset, list_datasets
from proctor.local.datasets import ensure_dataset, remove_dataset, verify_dataset
from proctor.local.engine import ADMIN_ONLY, Engine
from proctor.local.staging import sweep_staging
from support.seeding import ANCHOR, EVERYTHING, SHIPPED

pytestmark = [pytest.mark.engine]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A small recipe, and the fact queries of the shipped answer key."""
    folder = tmp_path / "scenarios" / "small"
    shutil.copytree(EVERYTHING, folder)
    shutil.copy(SHIPPED / "answer.yaml", folder)
    return folder


@pytest.fixture
def request_(scenario: Path) -> SeedRequest:
    return SeedRequest(scenario=scenario, seed=1, anchor=ANCHOR, volume=Decimal("0.02"))


def _hidden(data_dir: Path) -> list[str]:
    return [path.name for path in (data_dir / "datasets").iterdir() if path.name.startswith(".staging")]


async def test_two_at_once_build_it_once(request_: SeedRequest, tmp_path: Path) -> None:
    """M-A4: both get the one dataset; nothing else is left."""
    stages: list[str] = []

    async def ensure() -> DatasetRecord:
        return await ensure_dataset(request_, data_dir=tmp_path, on_progress=lambda one: stages.append(one.stage))

    first, second = await asyncio.gather(ensure(), ensure())
    assert first == second
    assert stages.count("verifying") == 1
    assert [record.hash for record in list_datasets(tmp_path)] == [request_.hash]
    assert _hidden(tmp_path) == []
    assert {path.name for path in (tmp_path / "datasets" / request_.hash).iterdir()} == {"engine", "record.json"}


async def test_facts_are_kept_with_the_dataset_and_edited_ones_asked_anew(
    request_: SeedRequest, tmp_path: Path
) -> None:
    """Architecture: facts are keyed by their queries; an edit needs no new rows."""
    record = await ensure_dataset(request_, data_dir=tmp_path)
    answer = load_answer(request_.scenario)
    assert record.facts[answer.facts_digest].keys() == answer.facts.keys()
    path = request_.scenario / "answer.yaml"
    name, fact = next((name, fact) for name, fact in answer.facts.items() if fact.type == "integer")
    first_line = fact.sql.split("\n")[0].split(" FROM ")[0]
    text = path.read_text()
    assert first_line in text
    path.write_text(text.replace(first_line, "SELECT 4711 + 0 * count()", 1))
    assert find_dataset(request_, data_dir=tmp_path) is None
    grown = await ensure_dataset(request_, data_dir=tmp_path)
    assert grown.tables == record.tables
    assert len(grown.facts) == 2
    assert grown.facts[load_answer(request_.scenario).facts_digest][name] == 4711
    path.write_text(path.read_text() + "# a comment\n")
    assert await ensure_dataset(request_, data_dir=tmp_path) != grown
    assert find_dataset(request_, data_dir=tmp_path) is not None


async def test_a_fact_that_is_no_number_is_refused(request_: SeedRequest, tmp_path: Path) -> None:
    """M-A9: a fact of another shape or type never gets into a record, and the dataset is not committed."""
    path = request_.scenario / "answer.yaml"
    answer = load_answer(request_.scenario)
    fact = next(fact for fact in answer.facts.values() if fact.type == "integer")
    text = path.read_text()
    first_line = fact.sql.split("\n")[0].split(" FROM ")[0]
    path.write_text(text.replace(first_line, "SELECT concat('many', toString(count()))", 1))
    with pytest.raises(InvalidInput, match="'many0' is no integer"):
        await ensure_dataset(request_, data_dir=tmp_path)
    assert list_datasets(tmp_path) == ()
    assert _hidden(tmp_path) == []


async def test_an_answer_key_at_fault_ends_the_build(request_: SeedRequest, tmp_path: Path) -> None:
    """M-A9: the key is read beside the load; its fault is told, and nothing of the dataset stays."""
    path = request_.scenario / "answer.yaml"
    path.write_text(path.read_text() + "surprise: 1\n")
    with pytest.raises(InvalidInput, match="surprise"):
        await ensure_dataset(request_, data_dir=tmp_path)
    assert list_datasets(tmp_path) == ()
    assert _hidden(tmp_path) == []


async def test_tampering_is_found(request_: SeedRequest, tmp_path: Path) -> None:
    """M-A4: one changed row changes the digest; an untouched dataset verifies."""
    record = await ensure_dataset(request_, data_dir=tmp_path)
    assert await verify_dataset(record, tmp_path) == []
    folder = tmp_path / "datasets" / record.hash / "engine"
    async with Engine.start(folder, access=ADMIN_ONLY, log=tmp_path / "log" / "engine.log") as engine:
        await HttpSession(engine.endpoint).run(
            f"ALTER TABLE `{record.database}`.otel_logs UPDATE Body = 'x' WHERE Body = (SELECT min(Body)"
            f" FROM `{record.database}`.otel_logs)",
            {"mutations_sync": 2},
        )
    (difference,) = await verify_dataset(record, tmp_path)
    assert difference.startswith("otel_logs: ")


async def test_a_record_of_other_inputs_is_refused(request_: SeedRequest, tmp_path: Path) -> None:
    """Scenarios: a run refuses a mismatch; damage is said, not worked around."""
    record = await ensure_dataset(replace(request_, with_facts=False), data_dir=tmp_path)
    path = tmp_path / "datasets" / record.hash / "record.json"
    path.write_text(record.model_copy(update={"seed": 2}).model_dump_json())
    with pytest.raises(Terminal, match="made from other inputs"):
        find_dataset(request_, data_dir=tmp_path)
    path.write_text("{")
    with pytest.raises(Terminal, match="can't be read"):
        find_dataset(request_, data_dir=tmp_path)


async def test_removed_is_gone(request_: SeedRequest, tmp_path: Path) -> None:
    """M-A4: removing is whole, and removing twice is an error."""
    record = await ensure_dataset(replace(request_, with_facts=False), data_dir=tmp_path)
    await remove_dataset(tmp_path, record.hash)
    assert list_datasets(tmp_path) == ()
    assert _hidden(tmp_path) == []
    with pytest.raises(InvalidInput, match="there is none"):
        await remove_dataset(tmp_path, record.hash)


def _command(tmp_path: Path, scenario: Path, *options: str) -> list[str]:
    place = ["--data-dir", str(tmp_path), "--scenarios", str(scenario.parent)]
    return [sys.executable, "-m", "proctor", "dataset", "seed", scenario.name, *place, *options]


def test_a_killed_seeding_leaves_nothing(scenario: Path, tmp_path: Path) -> None:
    """P39, M-A4: `kill -9` leaves nothing visible, no process, and no litter after the next command."""
    process = subprocess.Popen(_command(tmp_path, scenario, "--volume", "40"), start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("datasets/.staging-*/engine/store/*/*/*/*.bin")) and not list(
        tmp_path.glob("datasets/.staging-*/engine/**/data.bin")
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert list_datasets(tmp_path) == ()
    assert len(_hidden(tmp_path)) == 1
    while sweep_staging(tmp_path / "datasets") == 0:
        assert time.monotonic() < deadline
    assert _hidden(tmp_path) == []


def test_the_command_reuses_what_is_there(scenario: Path, tmp_path: Path) -> None:
    """M-A4, M-A11: the second time nothing is built; the JSON says rows, seconds and digest."""
    options = ["--volume", "0.01", "--seed", "9", "--json"]
    runs = [
        json.loads(subprocess.run(_command(tmp_path, scenario, *options), check=True, capture_output=True).stdout)
        for _ in range(2)
    ]
    assert [run.pop("reused") for run in runs] == [False, True]
    assert runs[0] == runs[1]
    assert runs[0]["rows"] == sum(
        table["rows"] for name, table in runs[0]["tables"].items() if not name.endswith("_rollup_15m")
    )
    assert {"hash", "seconds", "digest", "database"} <= runs[0].keys()


def _kill_engines(data_dir: Path) -> int:
    """Kill the engines that serve folders of a data dir; other tests of this process have engines of their own."""
    killed = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"engine/serve.py" in (process / "cmdline").read_bytes() and _is_open_in(process, data_dir):
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
    return killed


def _is_open_in(process: Path, folder: Path) -> bool:
    return any(str(opened.readlink()).startswith(str(folder)) for opened in (process / "fd").iterdir())


async def test_an_engine_that_is_killed_while_seeding(request_: SeedRequest, tmp_path: Path) -> None:
    """Faults: ClickHouse killed while seeding is an error worth another try, which then builds the same dataset."""
    killed = 0

    def kill_once(_: Progress) -> None:
        nonlocal killed
        if not killed:
            killed = _kill_engines(tmp_path)

    request = replace(request_, volume=Decimal("0.5"), with_facts=False)
    with pytest.raises(Retryable, match="no answer"):
        await ensure_dataset(request, data_dir=tmp_path, on_progress=kill_once)
    assert killed == 1
    assert list_datasets(tmp_path) == ()
    assert _hidden(tmp_path) == []
    record = await ensure_dataset(request, data_dir=tmp_path)
    assert await verify_dataset(record, tmp_path) == []
