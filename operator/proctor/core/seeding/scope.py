"""The draws of one stream or group as SQL columns, in the order in which they depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from proctor.core.scenarios.recipe import Pool, Recipe
from proctor.core.scenarios.recipe_draws import Draw
from proctor.core.scenarios.recipe_terms import Text
from proctor.core.seeding.fleet import Fleet
from proctor.core.seeding.keys import draw_key
from proctor.core.seeding.sql import mix
from proctor.errors import InvalidInput

ROW = "r"
"""The column of the row's number."""
ROW_BITS = "h"
"""The column of the row's own 64 random bits, from which each draw is mixed."""


class RecipeFault(InvalidInput):
    """A recipe that parses, but can't be compiled.

    Args:
        message: what is wrong, and where.
        place: the keys that lead to the part at fault.
    """

    def __init__(self, message: str, place: tuple[str, ...]) -> None:
        super().__init__(message)
        self.place = place


class Domain(StrEnum):
    """What the integer of a draw means."""

    NUMBER = "number"
    TIME = "time"
    POOL = "pool"
    NUMBERED = "numbered"
    INSTANCE = "instance"
    HEX = "hex"


@dataclass(frozen=True)
class PoolTable:
    """A pool as rows of texts.

    Attributes:
        name: the pool's name.
        fields: the fields' names; the first is the row's value.
        rows: the fields' texts, per row.
        weights: how often each row is picked.
        prefix: of a numbered pool.
        digits: of a numbered pool.
        first: of a numbered pool, the first number; such a pool has no rows.
        size: how many rows there are.
    """

    name: str
    fields: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    weights: tuple[int, ...]
    size: int
    prefix: str = ""
    digits: int = 1
    first: int = 0

    @property
    def is_numbered(self) -> bool:
        """Whether the rows are a prefix and a number instead of a list."""
        return not self.rows

    def column(self, field: str | None) -> tuple[str, ...]:
        """Return one field of all rows; None for the row's value.

        Raises:
            InvalidInput: the pool has no such field.
        """
        if field is None:
            return tuple(row[0] for row in self.rows)
        if field not in self.fields:
            raise InvalidInput(f"pool `{self.name}` has no field `{field}`: it has {', '.join(self.fields)}")
        place = self.fields.index(field)
        return tuple(row[place] for row in self.rows)


@dataclass(frozen=True)
class Column:
    """One draw, compiled.

    Attributes:
        name: the SQL column's name.
        sql: its expression over columns of earlier layers.
        domain: what the integer means.
        needs: the columns that it reads.
        pool: of a pool's domain.
        digits: of an identifier.
        service: of an instance that always belongs to one service.
    """

    name: str
    sql: str
    domain: Domain
    needs: frozenset[str] = frozenset()
    pool: PoolTable | None = None
    digits: int = 0
    service: str | None = None

    @property
    def constant(self) -> int | None:
        """The number that it is on every row; None if rows differ."""
        return int(self.sql) if self.sql.isdecimal() else None


@dataclass(frozen=True)
class World:
    """What all streams of a dataset share.

    Attributes:
        recipe: the recipe.
        seed: the seed.
        anchor: the anchor, in nanoseconds since the epoch.
        fleet: the instances.
        pools: the pools, with `services` among them.
    """

    recipe: Recipe
    seed: int
    anchor: int
    fleet: Fleet
    pools: Mapping[str, PoolTable]

    def pool(self, name: str, asking: str) -> PoolTable:
        """Return a pool.

        Raises:
            InvalidInput: there is none of that name.
        """
        if name not in self.pools:
            raise InvalidInput(f"{asking}: there is no pool `{name}`")
        return self.pools[name]


class Scope:
    """The draws and texts of one stream or group, compiled on demand.

    Args:
        world: what all streams share.
        name: the stream's or group's own name: the key of its rows.
        rows: how many rows it has, before any volume where it is dealt out exactly.
        draws: its draws.
        texts: its named texts.
    """

    def __init__(
        self, world: World, name: str, *, rows: int, draws: Mapping[str, Draw], texts: Mapping[str, Text]
    ) -> None:
        self.world = world
        self.name = name
        self.rows = rows
        self.draws = draws
        self.texts = texts
        self.axes: Mapping[str, tuple[int, int]] = {}
        self._columns: dict[str, Column] = {}
        self._open: list[str] = []
        self._compile: Callable[[Scope, str, Draw], Column] | None = None

    def compile_with(self, compile_draw: Callable[[Scope, str, Draw], Column]) -> None:
        """Say what turns a draw into a column."""
        self._compile = compile_draw

    def column(self, name: str) -> Column:
        """Return a draw's column, compiling it and what it depends on.

        Raises:
            InvalidInput: there is no such draw, or draws depend on each other in a circle.
        """
        if name in self._columns:
            return self._columns[name]
        if name not in self.draws:
            raise InvalidInput(f"{self.name}: there is no draw `{name}`")
        if name in self._open:
            raise InvalidInput(f"{self.name}: draws depend on each other: {' → '.join([*self._open, name])}")
        if self._compile is None:
            raise AssertionError("compile_with comes first")
        self._open.append(name)
        column = self._compile(self, name, self.draws[name])
        self._open.pop()
        self._columns[name] = column
        return column

    @property
    def open_draw(self) -> str | None:
        """The draw that is being compiled; after a failure, the one at fault."""
        return self._open[-1] if self._open else None

    def add(self, column: Column) -> Column:
        """Keep a helper column of a draw under a name of its own; two cases of one draw may each bring one."""
        name, more = column.name, 1
        while name in self._columns:
            more += 1
            name = f"{column.name}{more}"
        kept = replace(column, name=name)
        self._columns[name] = kept
        return kept

    def bits(self, name: str) -> str:
        """Return the 64 random bits of this row for a draw."""
        return mix(ROW_BITS, draw_key(self.world.seed, "draw", name))

    def closure(self, names: frozenset[str]) -> list[list[Column]]:
        """Return the columns that these need, in layers: each reads only earlier ones."""
        depth: dict[str, int] = {}

        def place(name: str) -> int:
            if name not in depth:
                needs = self._columns[name].needs
                depth[name] = 1 + max((place(need) for need in needs), default=-1)
            return depth[name]

        for name in sorted(names):
            place(name)
        layers: list[list[Column]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for name in sorted(depth):
            layers[depth[name]].append(self._columns[name])
        return layers


def build_pools(recipe: Recipe) -> dict[str, PoolTable]:
    """Return all pools of a recipe, the services' among them."""
    pools = {name: _build_pool(name, pool) for name, pool in recipe.pools.items()}
    extra = tuple(dict.fromkeys(key for service in recipe.services.values() for key in service.fields))
    rows = tuple(
        (name, service.language, *(str(service.fields.get(key, "")) for key in extra))
        for name, service in recipe.services.items()
    )
    weights = tuple(service.weight for service in recipe.services.values())
    pools["services"] = PoolTable("services", ("name", "language", *extra), rows, weights, len(rows))
    return pools


def _build_pool(name: str, pool: Pool) -> PoolTable:
    if pool.numbered:
        numbered = pool.numbered
        return PoolTable(name, ("value",), (), (), numbered.count, numbered.prefix, numbered.digits, numbered.first)
    if pool.rows:
        fields = tuple(pool.rows[0].fields)
        rows = tuple(tuple(str(value) for value in row.fields.values()) for row in pool.rows)
        return PoolTable(name, fields, rows, tuple(row.weight for row in pool.rows), len(rows))
    values = pool.values or []
    weights = tuple(values.values()) if isinstance(values, dict) else (1,) * len(values)
    return PoolTable(name, ("value",), tuple((value,) for value in values), weights, len(values))
