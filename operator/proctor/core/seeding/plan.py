"""From recipe, seed, anchor and volume to the statements that make a dataset. Pure: nothing here talks to an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from proctor.core.scenarios.recipe import Group, Recipe, Role, Scaling, Stream
from proctor.core.seeding.draws import axis_size, compile_draw
from proctor.core.seeding.fleet import Fleet, build_fleet, use_fleet
from proctor.core.seeding.identity import anchor_nanoseconds, checked_volume
from proctor.core.seeding.points import compile_metric
from proctor.core.seeding.schema import tables_for
from proctor.core.seeding.scope import RecipeFault, Scope, World, build_pools
from proctor.core.seeding.sources import Source, compile_log, compile_span, count_query
from proctor.core.seeding.sql import name_table
from proctor.errors import InvalidInput

CHUNK_ROWS = 400_000
"""Row numbers per INSERT. Two at a time stay below 4 GiB; larger blocks gain nothing once rows arrive sorted."""

MIXED_ROWS = 300_000
"""Row numbers of the INSERT that holds a share of every source. Planted rows must not lie in a part of their own, where
`_part` would give them away, so they travel with ordinary ones. Its rows can't arrive sorted as a whole, so a large
table has most of its rows elsewhere."""

_SORTED_ROWS = 2000
"""Fewer rows than that are not worth a sort of their own among others."""


_FEW_ROWS, _RARE_SHARE = 50_000, Fraction(1, 20)
"""Sources of so few rows, or that so few of their rows emit, have none elsewhere: a part of errors alone would be a
tell, and parts should be large."""


@dataclass(frozen=True)
class Insertion:
    """One INSERT.

    Attributes:
        table: the table.
        sql: the statement, complete.
        rows: row numbers in it; at least as many as rows.
    """

    table: str
    sql: str
    rows: int


@dataclass(frozen=True)
class SeedPlan:
    """All that a dataset is made of.

    Attributes:
        recipe: the recipe.
        seed: the seed.
        anchor: the anchor.
        volume: the share of the background's rows.
        sources: one per emission.
        fleet: the instances that rows belong to.
    """

    recipe: Recipe
    seed: int
    anchor: datetime
    volume: Decimal
    sources: tuple[Source, ...]
    fleet: Fleet

    @property
    def tables(self) -> tuple[str, ...]:
        """The raw tables, in order of their names: traces and logs always, metrics where the recipe has them."""
        return tables_for({source.table for source in self.sources})

    def rows(self) -> int:
        """Return how many row numbers there are: the total that progress is measured against."""
        return sum(source.rows for source in self.sources)

    def insertions(self, database: str, *, part: int = 0, parts: int = 1) -> Iterator[Insertion]:
        """Yield the INSERTs of one of several parts; the union over all parts is the same, however many there are."""
        chunks: list[Insertion] = []
        # What takes longest goes first, so that workers end together.
        for table in reversed(self.tables):
            mixed, rest = self._split(database, table, part, parts)
            chunks += rest
            yield from mixed
        yield from chunks

    def expected_rows(self) -> tuple[dict[str, int], list[tuple[str, list[str]]]]:
        """Return what tables must hold: rows that are known, and queries that count the rest.

        Returns:
            Per table the rows of emissions without a condition; and, per query, the tables of its numbers.
        """
        known = dict.fromkeys(self.tables, 0)
        open_sources: dict[str, list[Source]] = {}
        for source in self.sources:
            if source.condition is None:
                known[source.table] += source.rows
            elif source.rows:
                open_sources.setdefault(source.owner, []).append(source)
        queries = [(count_query(group), [source.table for source in group]) for group in open_sources.values()]
        return known, queries

    def _split(self, database: str, table: str, part: int, parts: int) -> tuple[list[Insertion], list[Insertion]]:
        """Return the INSERT that mixes a share of every source, and those of the rest, in the table's order."""
        ranges = [
            (source, source.rows * part // parts, source.rows * (part + 1) // parts)
            for source in self.sources
            if source.table == table
        ]
        ranges = [(source, start, stop) for source, start, stop in ranges if stop > start]
        if not ranges:
            return [], []
        whole = sum(stop - start for _, start, stop in ranges)
        mixed = [
            (source, start, stop) if whole <= MIXED_ROWS else _mixed_range(source, start, stop, len(ranges))
            for source, start, stop in ranges
        ]
        selects = [source.select(start, stop, is_sorted=stop - start > _SORTED_ROWS) for source, start, stop in mixed]
        first = self._insertion(database, table, selects, sum(stop - start for _, start, stop in mixed))
        rest = []
        for (source, _, stop), (_, _, taken) in zip(ranges, mixed, strict=True):
            chunks = -int(-(stop - taken) * source.share // CHUNK_ROWS)
            for chunk in range(chunks):
                start, end = (taken + (stop - taken) * edge // chunks for edge in (chunk, chunk + 1))
                select = source.select(start, end, is_sorted=True)
                rest.append(self._insertion(database, table, [select], end - start))
        return [first], rest

    def _insertion(self, database: str, table: str, selects: list[str], rows: int) -> Insertion:
        columns = next(source.columns for source in self.sources if source.table == table)
        listed = ", ".join(f"`{column}`" for column in columns)
        body = " UNION ALL ".join(selects)
        return Insertion(
            table, f"INSERT INTO {name_table(database, table)} ({listed}) {use_fleet(database)} {body}", rows
        )


def _mixed_range(source: Source, start: int, stop: int, sources: int) -> tuple[Source, int, int]:
    """Return which row numbers of a source are mixed with others': all of a rare one's, a share of a common one's."""
    expected = (stop - start) * source.share
    if expected <= (CHUNK_ROWS if source.share <= _RARE_SHARE else _FEW_ROWS):
        return source, start, stop
    return source, start, min(stop, start + int(MIXED_ROWS // sources / source.share))


def compile_plan(recipe: Recipe, *, seed: int, anchor: datetime, volume: Decimal) -> SeedPlan:
    """Compile a recipe.

    Raises:
        RecipeFault: a name is undeclared, draws depend on each other in a circle, or a number is out of range.
    """
    world = World(recipe, seed, anchor_nanoseconds(anchor), build_fleet(recipe, seed), build_pools(recipe))
    volume = checked_volume(volume)
    sources: list[Source] = []
    for name, stream in recipe.streams.items():
        sources += _compile_stream(world, name, stream, group=None, volume=volume)
    for name, group in recipe.groups.items():
        sources += _compile_stream(world, name, recipe.streams[group.of], group=group, volume=volume)
    return SeedPlan(recipe, seed, anchor, volume, tuple(sources), world.fleet)


def _compile_stream(world: World, name: str, stream: Stream, *, group: Group | None, volume: Decimal) -> list[Source]:
    draws = dict(stream.draws) | (group.draws if group else {})
    texts = dict(stream.texts) | (group.texts if group else {})
    clash = draws.keys() & texts.keys()
    if clash:
        message = f"{name}: `{min(clash)}` is both a draw and a text"
        raise RecipeFault(message, ("groups" if group else "streams", name))
    scope = Scope(world, name, rows=0, draws=draws, texts=texts)
    scope.compile_with(compile_draw)
    try:
        return _compile_sources(scope, stream, group=group, volume=volume)
    except InvalidInput as error:
        raise RecipeFault(str(error), _find_place(scope, group)) from error


def _find_place(scope: Scope, group: Group | None) -> tuple[str, ...]:
    """Return the keys that lead to what was being compiled."""
    own = ("groups" if group else "streams", scope.name)
    draw = scope.open_draw
    if draw is None:
        return own
    return ("streams", group.of, "draws", draw) if group and draw not in group.draws else (*own, "draws", draw)


def _compile_sources(scope: Scope, stream: Stream, *, group: Group | None, volume: Decimal) -> list[Source]:
    scope.axes, grid = _lay_out_axes(scope)
    owner = group or stream
    rows = owner.rows if owner.rows is not None else grid
    if owner.rows is None and not scope.axes:
        raise InvalidInput(f"streams.{scope.name}: give `rows`, or draws with `each` or `ticks`")
    is_scaled = owner.scaling is Scaling.VOLUME and owner.rows is not None
    scope.rows = int(rows * volume) if is_scaled else rows
    role = group.role if group else Role.ORDINARY
    spans = stream.spans
    sources = [compile_span(scope, one, span, spans=spans, role=role) for one, span in spans.items()]
    sources += [compile_log(scope, one, log, spans=spans, role=role) for one, log in stream.logs.items()]
    sources += [compile_metric(scope, one, metric, role=role) for one, metric in stream.metrics.items()]
    for draw in scope.draws:
        scope.column(draw)  # one that nothing reads makes no rows, but its fault is one
    return sources


def _lay_out_axes(scope: Scope) -> tuple[Mapping[str, tuple[int, int]], int]:
    """Return stride and size per grid axis, the last one changing fastest, and the grid's size."""
    sizes = {name: size for name, draw in scope.draws.items() if (size := axis_size(scope, draw)) is not None}
    axes, stride = {}, 1
    for name in reversed(sizes):
        axes[name] = (stride, sizes[name])
        stride *= sizes[name]
    return axes, stride
