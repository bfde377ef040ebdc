"""Recipes compile to the same SQL for the same inputs, and to partitions that add up."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from proctor.core.scenarios.recipe import load_recipe
from proctor.core.seeding import rollups
from proctor.core.seeding.fleet import build_fleet
from proctor.core.seeding.identity import dataset_hash
from proctor.core.seeding.plan import CHUNK_ROWS
from proctor.core.seeding.schema import create_table
from proctor.core.seeding.statements import all_statements
from proctor.errors import InvalidInput
from support.seeding import ANCHOR, ROOT, SHIPPED, load_everything, make_plan, make_recipe, make_stream

GOLDEN = Path(__file__).parent / "golden"
RANGE = re.compile(r"numbers_mt\((\d+), (\d+)\)")


def test_sql_is_as_reviewed() -> None:
    """M-A1: every statement of a small dataset, as people have read it."""
    plan = make_plan(make_recipe())
    text = ";\n\n".join(all_statements(plan, "ds_0123456789abcdef_1")) + ";\n"
    assert text == (GOLDEN / "small.sql").read_text()


@pytest.mark.parametrize("parts", [1, 4, 7])
def test_parts_add_up(parts: int) -> None:
    """P39: any partition of the row ranges covers every row number of every source exactly once."""
    plan = make_plan(load_recipe(SHIPPED))
    rows = 0
    for part in range(parts):
        for insertion in plan.insertions("d", part=part, parts=parts):
            taken = sum(int(size) for _, size in RANGE.findall(insertion.sql))
            assert taken == insertion.rows
            rows += taken
    assert rows == plan.rows()


def test_inserts_are_large_and_bounded() -> None:
    """P39: parts are few and large, their size doesn't grow with the volume, and none holds errors alone."""
    recipe = load_recipe(SHIPPED)
    alone = {}
    for volume in ("1", "3"):
        single = [one for one in make_plan(recipe, volume=volume).insertions("d") if "UNION ALL" not in one.sql]
        assert not [one for one in single if "(fails = 1)) ORDER BY" in one.sql]
        alone[volume] = max(one.rows for one in single if "WHERE" not in one.sql)
        assert len(single) <= 70 * int(volume)
    assert max(alone.values()) <= CHUNK_ROWS


@pytest.mark.parametrize(
    ("emission", "share"), [("call", Fraction(6, 10)), ("access", Fraction(36, 100)), ("request", Fraction(1))]
)
def test_rows_are_estimated_from_chances(emission: str, share: Fraction) -> None:
    """P39: an INSERT is as large as the rows it is expected to make."""
    plan = make_plan(load_recipe(SHIPPED))
    assert {one.share for one in plan.sources if (one.owner, one.emission) == ("traffic", emission)} == {share}


def test_planted_rows_share_a_part_with_ordinary_ones() -> None:
    """Scenarios, no tells: `_part` tells nothing, for no INSERT holds a group alone."""
    plan = make_plan(load_recipe(SHIPPED))
    owners = {source.key: source.owner for source in plan.sources}
    for insertion in plan.insertions("d"):
        keys = {int(key) for key in re.findall(r"intHash64\(bitXor\(number, (\d+)\)\)", insertion.sql)}
        found = {owners[key] for key in keys}
        if found & set(plan.recipe.groups):
            assert {"traffic", "checkout"} <= found


def test_volume_scales_the_background_alone() -> None:
    """P39: planted and decoy counts are the same at every volume."""
    recipe = load_recipe(SHIPPED)
    small = {(one.owner, one.emission): one.rows for one in make_plan(recipe, volume="0.01").sources}
    whole = {(one.owner, one.emission): one.rows for one in make_plan(recipe).sources}
    for (owner, emission), rows in whole.items():
        expected = rows if owner in recipe.groups else rows // 100
        assert small[owner, emission] == expected


def test_hash_follows_every_input_and_nothing_else() -> None:
    """M-A1, M-A4: equal inputs, equal hash; any other input, another."""
    recipe = make_recipe()
    base = dataset_hash(recipe, 42, ANCHOR, Decimal("0.10"))
    assert base == dataset_hash(make_recipe(), 42, ANCHOR, Decimal("0.1"))
    others = {
        dataset_hash(make_recipe(streams={"requests": make_stream(rows=101)}), 42, ANCHOR, Decimal("0.1")),
        dataset_hash(recipe, 43, ANCHOR, Decimal("0.1")),
        dataset_hash(recipe, 42, ANCHOR + timedelta(microseconds=1), Decimal("0.1")),
        dataset_hash(recipe, 42, ANCHOR, Decimal("0.2")),
    }
    assert base not in others
    assert len(others) == 4


@pytest.mark.parametrize("volume", ["0", "-1", "1001", "NaN", "Infinity"])
def test_volume_is_bounded(volume: str) -> None:
    """P4: a volume out of range is refused, not built."""
    with pytest.raises(InvalidInput, match="volume"):
        make_plan(make_recipe(), volume=volume)


def test_an_anchor_moves_times_and_nothing_else() -> None:
    """M-A1: two anchors' statements differ in instants alone."""
    delta = timedelta(days=3, seconds=7)
    first, second = (
        [one.sql for one in make_plan(load_everything(), anchor=anchor).insertions("d")]
        for anchor in (ANCHOR, ANCHOR + delta)
    )
    shift = delta // timedelta(microseconds=1) * 1000
    for before, after in zip(first, second, strict=True):
        ours = [int(number) for number in re.findall(r"\d+", before)]
        theirs = [int(number) for number in re.findall(r"\d+", after)]
        assert {new - old for old, new in zip(ours, theirs, strict=True)} <= {0, shift}


def test_arithmetic_is_whole_numbers() -> None:
    """M-A1: no function of the mathematical library, whose last digit differs between processors."""
    floats = re.compile(r"\b(rand\w*|exp|log|log2|ln|sqrt|pow|sin|cos|erf|now\w*)\(", re.IGNORECASE)
    for insertion in make_plan(load_everything()).insertions("d"):
        assert floats.findall(insertion.sql) == []


def test_names_leak_nothing() -> None:
    """Scenarios: no statement that leaves a trace in the database carries a scenario's or group's name."""
    plan = make_plan(load_recipe(SHIPPED), volume="0.001")
    for table in plan.tables:
        statement = create_table("ds_0123456789abcdef_1", table)
        assert not re.search("root.cause|planted|decoy|proctor", statement)
    for insertion in plan.insertions("ds_0123456789abcdef_1"):
        literals = " ".join(re.findall(r"'((?:[^'\\]|\\.)*)'", insertion.sql))
        assert not re.search("root.cause|planted|decoy|proctor|lost_checkouts", literals)


def test_an_instance_has_correlated_attributes() -> None:
    """M-A2: pod, node, version and region belong together, sixteen keys an instance."""
    fleet = build_fleet(load_recipe(SHIPPED), 42)
    by_pod = {one.attributes["k8s.pod.name"]: one for one in fleet.instances}
    assert len(by_pod) == len(fleet.instances)
    assert {len(one.attributes) for one in fleet.instances} == {16}
    assert [one.service for one in fleet.instances] == sorted(one.service for one in fleet.instances)


def test_a_rollout_reaches_instances_one_after_another() -> None:
    """M-A3: instances change their version at their own moment, the rest never."""
    fleet = build_fleet(load_everything(), 42)
    flip = fleet.flips["v2"]
    first = fleet.first["api"]
    minutes = [flip.at[first + number] // (60 * 10**9) for number in range(3)]
    assert minutes == [-45, -43, -41]
    changed = [fleet.instances[flip.to[first + number]] for number in range(6)]
    assert [one.attributes["service.version"] for one in changed] == ["2.0.0-rc1"] * 3 + ["1.43.1"] * 3


def test_a_service_without_a_version_shows_none_after_a_rollout_either() -> None:
    """M-A3: what a service omits stays omitted; only the rollout's own lines then say who runs what."""
    recipe = load_recipe(ROOT / "scenarios" / "deploy-regression")
    fleet = build_fleet(recipe, 42)
    versions = {one.attributes.get("service.version") for one in fleet.instances if one.service == "till-api"}
    assert versions == {None}
    assert "3.7.0" in {one.attributes.get("service.version") for one in fleet.instances}


def test_rollup_views_chain_in_two_stages() -> None:
    """M-A2: raw rows to values, values to keys, over scalar columns and every attribute map."""
    keys, values = rollups.create_views("d", "otel_logs")
    assert "FROM `d`.`otel_logs_kv_rollup_15m`" in keys
    for column in ("ResourceAttributes", "LogAttributes", "ScopeAttributes"):
        assert f"ARRAY JOIN {column}" in values
    assert values.count("'NativeColumn'") == 6
