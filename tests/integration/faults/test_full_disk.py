"""A disk that fills up at any moment of a run: a clear error, nothing half-written, and with room the run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proctor.local.durable import LEAST_FREE_BYTES
from support.local_runs import adopt_orphans
from support.small_disk import SmallDisk, mount_small_disk
from support.struck_runs import JUDGE_ASKED, MODEL_ASKED, TRIAL, Stage, describe_difference, open_stage, table_of

SEEDING = ("Seeding", 1)
_MEBIBYTES = 192
_ASKED_OFTEN = 8
"""Requests of models after which several cells are open, and none has ended."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    adopt_orphans()
    with mount_small_disk(tmp_path_factory.mktemp("small") / "disk", mebibytes=_MEBIBYTES) as disk:
        yield disk


@pytest.fixture(scope="module")
def stage(disk: SmallDisk) -> Iterator[Stage]:
    with open_stage(disk.machine) as stage:
        yield stage


@pytest.fixture(scope="module")
def undisturbed(stage: Stage) -> dict[str, Any]:
    return stage.run(stage.machine.write_suite(stage.make_suite("undisturbed")))


def fill_after(disk: SmallDisk, what: str, number: int) -> Callable[[str], None]:
    """Fill the disk when something happens for the n-th time."""
    seen = 0

    def watch(event: str) -> None:
        nonlocal seen
        seen += event.startswith(what)
        if event.startswith(what) and seen == number:
            disk.fill()

    return watch


def assert_all_files_are_whole(disk: SmallDisk) -> None:
    """What is there under its own name can be read; what was being written left nothing."""
    runs = disk.machine.data_dir / "runs"
    for path in runs.glob("*/*.json"):
        json.loads(path.read_bytes())
    assert not list(runs.glob("*/.*.partial"))
    assert not list((disk.machine.data_dir / "datasets").glob(".staging-*"))


@pytest.mark.parametrize(
    "moment",
    [SEEDING, (MODEL_ASKED, _ASKED_OFTEN), (JUDGE_ASKED, TRIAL + 1)],
    ids=["seeding", "recording", "grading"],
)
def test_a_run_stops_on_a_full_disk_and_goes_on_once_there_is_room(
    stage: Stage, disk: SmallDisk, undisturbed: dict[str, Any], moment: tuple[str, int]
) -> None:
    """Faults, a full disk: exit 3, which disk and what to do; the run stays Pending, and resumes to the same table."""
    suite = stage.machine.write_suite(stage.make_suite("full"))
    if moment == SEEDING:
        (dataset,) = json.loads(stage.machine.call("dataset", "ls", "--json").stdout)
        assert stage.machine.call("dataset", "rm", dataset["hash"]).returncode == 0
    stage.striker.watch = fill_after(disk, *moment)
    try:
        code, err = stage.run_once(suite)
        assert disk.free < LEAST_FREE_BYTES, err
        assert code == 3, err
        assert "the disk is full; free some space, then give the same command again" in err
        assert str(disk.machine.root / "data") in err
        assert "stays Pending" in err
        stopped = stage.machine.last_run()
        assert stopped["run"]["status"].get("verdict", "Pending") == "Pending"
        assert_all_files_are_whole(disk)
        again, err = stage.run_once(suite)
        assert again == 3, err
    finally:
        stage.striker.watch = lambda _: None
        disk.make_room()
    finished = {cell["cell"]: cell["attempt"] for cell in stopped["cells"] if cell.get("score")}
    document = stage.run(suite)
    assert document["run"]["metadata"]["name"] == stopped["run"]["metadata"]["name"]
    assert describe_difference(table_of(undisturbed), table_of(document)) == []
    assert {cell["cell"]: cell["attempt"] for cell in document["cells"] if cell["cell"] in finished} == finished


def test_a_dataset_that_does_not_fit_leaves_nothing(stage: Stage, disk: SmallDisk) -> None:
    """Faults, a full disk while seeding: ClickHouse's own words for it become the same message; no litter is left."""
    command = ("dataset", "seed", "error-root-cause", "--volume", "0.1", "--seed", "9")
    disk.fill(leave=LEAST_FREE_BYTES + (2 << 20))
    try:
        seeded = stage.machine.call(*command)
    finally:
        disk.make_room()
    assert seeded.returncode == 3, seeded.stderr
    assert "the disk is full; free some space" in seeded.stderr
    assert_all_files_are_whole(disk)


def test_nothing_is_begun_on_a_disk_that_is_full_already(stage: Stage, disk: SmallDisk) -> None:
    """Faults, a full disk: said before anything is made."""
    before = stage.machine.runs()
    disk.fill(leave=1 << 20)
    try:
        code, err = stage.run_once(stage.machine.write_suite(stage.make_suite("never", replicates=3)))
    finally:
        disk.make_room()
    assert code == 3
    assert "MiB are free" in err
    assert stage.machine.runs() == before
