"""Each kind of draw as one SQL expression of integer arithmetic and table look-ups.

No floating point: transcendental functions differ between processors, and a dataset's digest must not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from proctor.core.scenarios import recipe_draws as kinds
from proctor.core.scenarios.recipe_draws import Draw
from proctor.core.scenarios.recipe_terms import nanoseconds, parse_duration
from proctor.core.seeding.conditions import compile_condition
from proctor.core.seeding.keys import shuffle_all
from proctor.core.seeding.scope import ROW, Column, Domain, PoolTable, Scope
from proctor.core.seeding.sql import look_up
from proctor.errors import InvalidInput

MILLION = 1_000_000
_MILLISECOND = 1_000_000
_LARGEST_TABLE = 10_000
"""Entries of one look-up table; weights are first divided by what they have in common."""

_SHORT_TABLE = 64
_FEW_RUNS = 16
"""Above that many entries, and below that many runs of equal ones, comparisons replace a look-up."""


def compile_draw(scope: Scope, name: str, draw: Draw) -> Column:
    """Return a draw's column.

    Raises:
        InvalidInput: it refers to something that isn't there, or weights are too fine.
    """
    return _COMPILERS[type(draw)](scope, name, draw)


def axis_size(scope: Scope, draw: Draw) -> int | None:
    """Return how many places a grid has along this draw; None if the draw is no axis."""
    if isinstance(draw, kinds.Each):
        if draw.each in scope.world.fleet.count:
            return scope.world.fleet.count[draw.each]
        return scope.world.pool(draw.each, scope.name).size
    if isinstance(draw, kinds.Ticks):
        length = parse_duration(draw.until) - parse_duration(draw.start)
        return -(-length // parse_duration(draw.ticks))
    return None


def weighted_table(weights: Sequence[int], asking: str) -> list[int]:
    """Return places repeated by weight: a uniform choice from it is a weighted choice of places.

    Raises:
        InvalidInput: no weight is positive, or the table would be too large.
    """
    common = math.gcd(*weights)
    total = sum(weights) // common if common else 0
    if not 0 < total <= _LARGEST_TABLE:
        raise InvalidInput(f"{asking}: weights must add up to 1..{_LARGEST_TABLE} parts, not {total}")
    return [place for place, weight in enumerate(weights) for _ in range(weight // common)]


def choose_weighted(table: Sequence[int], bits: str) -> str:
    """Return the expression of a place of a weighted table; long runs become comparisons.

    A literal of thousands of numbers costs the engine's planner more than the whole row costs to make.
    """
    part = f"({bits} % {len(table)})"
    ends = [at for at in range(1, len(table)) if table[at] != table[at - 1]]
    if len(table) <= _SHORT_TABLE or len(ends) >= _FEW_RUNS:
        return look_up(table, part)
    branches = ", ".join(f"{part} < {end}, {table[end - 1]}" for end in ends)
    return f"multiIf({branches}, {table[-1]})" if branches else str(table[0])


def _pick(scope: Scope, name: str, draw: kinds.Pick) -> Column:
    pool = scope.world.pool(draw.pick, f"{scope.name}.{name}")
    bits = scope.bits(name)
    if pool.is_numbered:
        return Column(name, f"{bits} % {pool.size}", Domain.NUMBERED, pool=pool)
    if draw.where:
        return _pick_where(scope, name, draw, pool)
    table = weighted_table(_pick_weights(scope, name, draw, pool), f"pool `{pool.name}`")
    chosen = choose_weighted(table, bits)
    if draw.other_than is None:
        return Column(name, chosen, Domain.POOL, pool=pool)
    other = scope.column(draw.other_than)
    if other.pool is not pool:
        raise InvalidInput(f"{scope.name}.{name}: `{draw.other_than}` picks from another pool")
    first = scope.add(Column(f"{name}__first", chosen, Domain.NUMBER))
    live = [place for place, weight in enumerate(pool.weights) if weight]
    following = [live[(live.index(place) + 1) % len(live)] if place in live else place for place in range(pool.size)]
    sql = f"if({first.name} = {other.name}, {look_up(following, first.name)}, {first.name})"
    return Column(name, sql, Domain.POOL, frozenset({first.name, other.name}), pool=pool)


def _pick_weights(scope: Scope, name: str, draw: kinds.Pick, pool: PoolTable) -> list[int]:
    if draw.only is None:
        return list(pool.weights)
    values = pool.column(None)
    missing = sorted(set(draw.only) - set(values))
    if missing:
        raise InvalidInput(f"{scope.name}.{name}: pool `{pool.name}` has no {missing[0]!r}")
    chosen = [weight if value in draw.only else 0 for value, weight in zip(values, pool.weights, strict=True)]
    return chosen if any(chosen) else [int(value in draw.only) for value in values]


def _pick_where(scope: Scope, name: str, draw: kinds.Pick, pool: PoolTable) -> Column:
    ((field, parent_name),) = draw.where.items()
    parent = scope.column(parent_name)
    if parent.pool is None or parent.pool.is_numbered:
        raise InvalidInput(f"{scope.name}.{name}: `{parent_name}` picks from no list of rows")
    owners = pool.column(field)
    table: list[int] = []
    starts, sizes = [], []
    for place, value in enumerate(parent.pool.column(None)):
        own = [row for row, owner in enumerate(owners) if owner == value]
        if not own and parent.pool.weights[place]:
            raise InvalidInput(f"pool `{pool.name}`: no row has {field} {value!r}, but `{parent_name}` may be that")
        weights = [pool.weights[row] for row in own]
        entries = [own[at] for at in weighted_table(weights, f"pool `{pool.name}`, {field} {value!r}")] if own else [0]
        starts.append(len(table))
        sizes.append(len(entries))
        table += entries
    bits = scope.bits(name)
    place_sql = f"({look_up(starts, parent.name)} + {bits} % {look_up(sizes, parent.name)})"
    return Column(name, look_up(table, place_sql), Domain.POOL, frozenset({parent.name}), pool=pool)


def _instance(scope: Scope, name: str, draw: kinds.Instance) -> Column:
    fleet, bits = scope.world.fleet, scope.bits(name)
    if draw.instance in fleet.count:
        places = draw.among if draw.among is not None else range(fleet.count[draw.instance])
        if max(places) >= fleet.count[draw.instance]:
            raise InvalidInput(f"{scope.name}.{name}: `{draw.instance}` has fewer instances")
        chosen = look_up([fleet.first[draw.instance] + place for place in places], f"({bits} % {len(places)})")
        if draw.among is None:
            chosen = f"{fleet.first[draw.instance]} + {bits} % {len(places)}"
        return Column(name, chosen, Domain.INSTANCE, service=draw.instance)
    owner = scope.column(draw.instance)
    if owner.pool is None or owner.pool.name != "services":
        raise InvalidInput(f"{scope.name}.{name}: `{draw.instance}` is no service and picks none")
    names = owner.pool.column(None)
    first = look_up([fleet.first[one] for one in names], owner.name)
    count = look_up([fleet.count[one] for one in names], owner.name)
    return Column(name, f"{first} + {bits} % {count}", Domain.INSTANCE, frozenset({owner.name}))


def _between(scope: Scope, name: str, draw: kinds.Between) -> Column:
    low, high = (nanoseconds(quantity) for quantity in draw.between)
    if high < low:
        raise InvalidInput(f"{scope.name}.{name}: {draw.between[1]} is less than {draw.between[0]}")
    return Column(name, f"{low} + {scope.bits(name)} % {high - low + 1}", Domain.NUMBER)


def _table(scope: Scope, name: str, draw: kinds.Table) -> Column:
    lows = [nanoseconds(bucket.between[0]) for bucket in draw.table]
    sizes = [nanoseconds(bucket.between[1]) - low + 1 for bucket, low in zip(draw.table, lows, strict=True)]
    if min(sizes) < 1:
        raise InvalidInput(f"{scope.name}.{name}: a bucket ends before it begins")
    table = weighted_table([bucket.weight for bucket in draw.table], f"{scope.name}.{name}")
    bits = scope.bits(name)
    bucket = scope.add(Column(f"{name}__bucket", choose_weighted(table, bits), Domain.NUMBER))
    inside = f"intDiv({bits}, {len(table)}) % {look_up(sizes, bucket.name)}"
    return Column(name, f"{look_up(lows, bucket.name)} + {inside}", Domain.NUMBER, frozenset({bucket.name}))


def _time(scope: Scope, name: str, draw: kinds.Time) -> Column:
    starts, steps, counts, lengths = [], [], [], []
    for period in draw.time:
        start, until = parse_duration(period.start), parse_duration(period.until)
        every = parse_duration(period.every) if period.every else 0
        lasting = parse_duration(period.lasting) if period.lasting else until - start
        if until <= start or lasting < 1 or bool(period.every) != bool(period.lasting):
            raise InvalidInput(f"{scope.name}.{name}: a stretch of time is empty, or has one of `every` and `lasting`")
        starts.append(scope.world.anchor + start)
        steps.append(every)
        counts.append(max(1, -(-(until - start - lasting + 1) // every)) if every else 1)
        lengths.append(lasting)
    table = weighted_table([period.weight for period in draw.time], f"{scope.name}.{name}")
    bits = scope.bits(name)
    stretch = scope.add(Column(f"{name}__stretch", choose_weighted(table, bits), Domain.NUMBER))
    rest = f"intDiv({bits}, {len(table)})" if len(table) > 1 else bits
    burst = ""
    if any(steps):
        per_burst = look_up(counts, stretch.name)
        burst = f" + ({rest} % {per_burst}) * {look_up(steps, stretch.name)}"
        rest = f"intDiv({rest}, {per_burst})"
    sql = f"toUInt64({look_up(starts, stretch.name)}{burst} + {rest} % {look_up(lengths, stretch.name)})"
    return Column(name, sql, Domain.TIME, frozenset({stretch.name}))


def _chance(scope: Scope, name: str, draw: kinds.Chance) -> Column:
    bits = f"{scope.bits(name)} % {MILLION}"
    if isinstance(draw.chance, str):
        bound = scope.column(draw.chance)
        return Column(name, f"{bits} < {bound.name}", Domain.NUMBER, frozenset({bound.name}))
    return Column(name, f"{bits} < {int(draw.chance * MILLION)}", Domain.NUMBER)


def _deal(scope: Scope, name: str, draw: kinds.Deal) -> Column:
    pool = scope.world.pool(draw.deal, f"{scope.name}.{name}")
    if len(draw.counts) != pool.size or sum(draw.counts) != scope.rows:
        raise InvalidInput(
            f"{scope.name}.{name}: counts must be one per row of `{draw.deal}` and add up to {scope.rows} rows"
        )
    hand = [place for place, count in enumerate(draw.counts) for _ in range(count)]
    dealt = shuffle_all(hand, scope.world.seed, "deal", scope.name, name)
    return Column(name, look_up(dealt, ROW), Domain.POOL, pool=pool)


def _each(scope: Scope, name: str, draw: kinds.Each) -> Column:
    stride, size = scope.axes[name]
    place = f"intDiv({ROW}, {stride}) % {size}"
    if draw.each in scope.world.fleet.count:
        first = scope.world.fleet.first[draw.each]
        return Column(name, f"{first} + {place}", Domain.INSTANCE, service=draw.each)
    pool = scope.world.pool(draw.each, f"{scope.name}.{name}")
    return Column(name, place, Domain.NUMBERED if pool.is_numbered else Domain.POOL, pool=pool)


def _ticks(scope: Scope, name: str, draw: kinds.Ticks) -> Column:
    stride, size = scope.axes[name]
    start = scope.world.anchor + parse_duration(draw.start)
    sql = f"toUInt64({start} + (intDiv({ROW}, {stride}) % {size}) * {parse_duration(draw.ticks)})"
    return Column(name, sql, Domain.TIME)


def _value(_scope: Scope, name: str, draw: kinds.Value) -> Column:
    return Column(name, str(nanoseconds(draw.value)), Domain.NUMBER)


def _sum(scope: Scope, name: str, draw: kinds.Sum) -> Column:
    columns = [scope.column(one) for one in draw.sum]
    domain = Domain.TIME if any(column.domain is Domain.TIME for column in columns) else Domain.NUMBER
    return Column(
        name, " + ".join(column.name for column in columns), domain, frozenset(column.name for column in columns)
    )


def _minus(scope: Scope, name: str, draw: kinds.Minus) -> Column:
    left, right = (scope.column(one).name for one in draw.minus)
    sql = f"toUInt64(greatest(toInt64({left}) - toInt64({right}), 0))"
    return Column(name, sql, Domain.NUMBER, frozenset({left, right}))


def _scale(scope: Scope, name: str, draw: kinds.Scale) -> Column:
    base = scope.column(draw.scale).name
    factor = scope.column(draw.permille).name if isinstance(draw.permille, str) else str(draw.permille)
    needs = {base} | ({factor} if isinstance(draw.permille, str) else set())
    return Column(name, f"intDiv({base} * {factor}, 1000)", Domain.NUMBER, frozenset(needs))


def _curve(scope: Scope, name: str, draw: kinds.Curve) -> Column:
    time = scope.column(draw.curve).name
    needs = {time}
    # Milliseconds: nanoseconds times a large number would leave 64 bits.
    moment = f"intDiv(toInt64({time}) - {scope.world.anchor}, {_MILLISECOND})"
    points = [(parse_duration(offset) // _MILLISECOND, number) for offset, number in draw.points]
    if draw.repeat is not None:
        begin = f"({moment} - {parse_duration(draw.start or '0s') // _MILLISECOND}"
        if draw.stagger is not None and draw.by is not None:
            by = scope.column(draw.by)
            needs.add(by.name)
            begin += f" - {parse_duration(draw.stagger) // _MILLISECOND} * {_stagger_place(scope, by)}"
        begin += ")"
        moment = f"if({begin} < 0, {points[0][0]}, {begin} % {parse_duration(draw.repeat) // _MILLISECOND})"
    place = scope.add(Column(f"{name}__moment", moment, Domain.NUMBER, frozenset(needs)))
    branches = [f"{place.name} < {points[0][0]}, {points[0][1]}"]
    for (start, low), (end, high) in pairwise(points):
        if end <= start:
            raise InvalidInput(f"{scope.name}.{name}: points must be in order of time")
        slope = f"{low} + intDiv(({place.name} - {start}) * {high - low}, {end - start})"
        branches.append(f"{place.name} < {end}, {slope}")
    sql = f"toInt64(multiIf({', '.join(branches)}, {points[-1][1]}))"
    return Column(name, sql, Domain.NUMBER, frozenset({place.name}))


def _stagger_place(scope: Scope, by: Column) -> str:
    if by.domain is not Domain.INSTANCE:
        return f"toInt64({by.name})"
    return f"toInt64({look_up([one.number for one in scope.world.fleet.instances], by.name)})"


def _upgraded(scope: Scope, name: str, draw: kinds.Upgraded) -> Column:
    flip = scope.world.fleet.flips.get(draw.upgraded)
    if flip is None:
        raise InvalidInput(f"{scope.name}.{name}: there is no rollout `{draw.upgraded}`")
    instance, time = scope.column(draw.of).name, scope.column(draw.at).name
    sql = f"toInt64({time}) - {scope.world.anchor} >= {look_up(flip.at, instance)}"
    return Column(name, sql, Domain.NUMBER, frozenset({instance, time}))


def _hex(scope: Scope, name: str, draw: kinds.Hex) -> Column:
    return Column(name, scope.bits(name), Domain.HEX, digits=draw.hex)


def _cases(scope: Scope, name: str, draw: kinds.Cases) -> Column:
    branches: list[str] = []
    needs: set[str] = set()
    found: list[Column] = []
    for case in draw.cases:
        condition, read = compile_condition(scope, case.when)
        column = compile_draw(scope, name, case.then)
        branches.append(f"{condition}, {column.sql}")
        needs |= read | column.needs
        found.append(column)
    last = compile_draw(scope, name, draw.otherwise)
    found.append(last)
    if len({(column.domain, column.pool.name if column.pool else "") for column in found}) != 1:
        raise InvalidInput(f"{scope.name}.{name}: the cases draw different kinds of thing")
    sql = f"multiIf({', '.join(branches)}, {last.sql})"
    service = last.service if len({column.service for column in found}) == 1 else None
    return Column(name, sql, last.domain, frozenset(needs | last.needs), pool=last.pool, service=service)


_COMPILERS: dict[type, Callable[[Scope, str, Any], Column]] = {
    kinds.Pick: _pick,
    kinds.Instance: _instance,
    kinds.Between: _between,
    kinds.Table: _table,
    kinds.Chance: _chance,
    kinds.Deal: _deal,
    kinds.Time: _time,
    kinds.Each: _each,
    kinds.Ticks: _ticks,
    kinds.Value: _value,
    kinds.Sum: _sum,
    kinds.Minus: _minus,
    kinds.Scale: _scale,
    kinds.Curve: _curve,
    kinds.Upgraded: _upgraded,
    kinds.Hex: _hex,
    kinds.Cases: _cases,
}
