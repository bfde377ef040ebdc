"""Every statement of a plan, in the order in which they run: what `proctor dataset explain` prints."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.core.seeding import rollups
from proctor.core.seeding.digest import digest_query
from proctor.core.seeding.fleet import drop_fleet
from proctor.core.seeding.plan import SeedPlan
from proctor.core.seeding.schema import create_table


def all_statements(plan: SeedPlan, database: str) -> Iterator[str]:
    """Yield the statements that build and verify a dataset."""
    yield f"CREATE DATABASE `{database}`"
    for table in plan.tables:
        yield create_table(database, table)
    for table in rollups.ROLLED_UP:
        yield from rollups.create_rollups(database, table)
    yield from plan.fleet.create(database)
    for insertion in plan.insertions(database):
        yield insertion.sql
    yield drop_fleet(database)
    for table in rollups.ROLLED_UP:
        yield from rollups.fill_rollups(database, table)
        yield from rollups.create_views(database, table)
    for table in plan.tables:
        yield digest_query(database, table)
    for table in rollups.ROLLED_UP:
        yield digest_query(database, rollups.kv_table(table))
        yield digest_query(database, rollups.key_table(table))
