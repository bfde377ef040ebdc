"""ClickHouse, gateway, grader, `proctor` killed at twenty random points: the same table, no row lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.clickhouse.results import ResultsStore
from proctor.core.trajectory.outcome import AttemptRecord, Outcome
from proctor.core.trajectory.trajectory_digest import digest_trajectory
from proctor.local.engine import Engine
from proctor.local.orders import RESULTS_DATABASE
from support.engines import SMALL
from support.local_runs import Machine, adopt_orphans
from support.struck_runs import Point, Stage, Victim, describe_difference, open_stage, table_of

_RUNS = 5
_KILLS = 4
_EVENTS = 32
"""An undisturbed run has a few more; one in which something died has more again."""


def draw_points(seed: int) -> list[Point]:
    """Draw when something dies in a run, and who; each of the five is the first choice in four of the five runs."""
    draw = random.Random(seed)  # noqa: S311 - moments that can be repeated, not secrets
    victims = list(Victim)
    spared = victims[seed % len(victims)]
    order = [victim for victim in victims if victim is not spared]
    draw.shuffle(order)
    events = sorted(draw.sample(range(1, _EVENTS), _KILLS))
    points = []
    for event, first in zip(events, order, strict=True):
        others = [victim for victim in victims if victim is not first]
        draw.shuffle(others)
        points.append(Point(event, (first, *others)))
    return points


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    adopt_orphans()
    with open_stage(Machine(tmp_path_factory.mktemp("struck"))) as stage:
        yield stage


@pytest.fixture(scope="module")
def undisturbed(stage: Stage) -> dict[str, Any]:
    document = stage.run(stage.machine.write_suite(stage.make_suite("undisturbed")))
    assert stage.striker.events >= _EVENTS
    return document


@pytest.mark.parametrize("seed", range(_RUNS))
async def test_a_run_in_which_parts_die_ends_with_the_same_table(
    stage: Stage, undisturbed: dict[str, Any], seed: int
) -> None:
    """P12, P30, M-D6: whoever is killed when, the run ends as if nobody had been, and its record is whole."""
    suite = stage.machine.write_suite(stage.make_suite(f"struck-{seed}"))
    points = draw_points(seed)
    document = stage.run(suite, points)
    assert len(stage.striker.struck) == _KILLS, stage.striker
    assert describe_difference(table_of(undisturbed), table_of(document)) == [], stage.striker.struck
    await assert_record_is_whole(stage.machine.data_dir, document)


async def assert_record_is_whole(data_dir: Path, document: dict[str, Any]) -> None:
    """Compare run.json with the store: attempts once, their events gapless and unaltered, their grades once."""
    run = document["run"]["metadata"]["uid"]
    path = data_dir / "engines" / "results"
    async with Engine.start(path, log=data_dir / "reading.log", limits=SMALL) as engine:
        store = ResultsStore(engine.endpoint, RESULTS_DATABASE)
        try:
            attempts = await store.attempts(run)
            assert max(Counter(one.key for one in attempts).values()) == 1
            for attempt in attempts:
                await assert_attempt_is_whole(store, attempt)
            valid = {str(one.key.cell): one for one in attempts if one.outcome is not Outcome.INFRA_ERROR}
            listed = {cell["cell"]: (cell["attempt"], cell["trajectoryDigest"]) for cell in document["cells"]}
            assert {cell: (one.key.attempt, one.trajectory_digest) for cell, one in valid.items()} == listed
            grades = await store.grades(run)
            graded = Counter((str(one.key.cell), one.key.attempt) for one in grades)
            assert graded == Counter((cell, attempt) for cell, (attempt, _) in listed.items())
            assert [one.run for one in await store.runs()].count(run) == 1
        finally:
            await store.close()


async def assert_attempt_is_whole(store: ResultsStore, attempt: AttemptRecord) -> None:
    events = await store.events(attempt.key)
    assert [event.seq for event in events] == list(range(1, attempt.events + 1))
    assert digest_trajectory(events) == attempt.trajectory_digest
    digests = {digest for event in events for digest in (event.request_digest, event.result_digest) if digest}
    assert set(await store.blobs(digests)) == digests
