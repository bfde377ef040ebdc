"""A source: the rows that one emission of one stream puts into one table, as a SELECT over a range of row numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from proctor.core.scenarios.recipe import Role
from proctor.core.scenarios.recipe_rows import Attributes, Emission, Log, Span
from proctor.core.scenarios.recipe_terms import TextCases, When
from proctor.core.seeding.conditions import ALWAYS, NEVER, compile_condition
from proctor.core.seeding.fleet import FLEET_MAPS, FLEET_RANKS, FLEET_SERVICES
from proctor.core.seeding.keys import draw_key
from proctor.core.seeding.odds import ALL, estimate_share
from proctor.core.seeding.scope import ROW, ROW_BITS, Domain, Scope
from proctor.core.seeding.sql import build_map, hexadecimal, look_up, mix, quote
from proctor.core.seeding.texts import CompiledText, compile_text
from proctor.errors import InvalidInput

_FIVE_MINUTES = 300 * 10**9
_SECOND = 10**9
_SEVERITIES = {"trace": 1, "debug": 5, "info": 9, "warn": 13, "warning": 13, "error": 17, "fatal": 21}
_STATUS_CODES = {"Unset", "Ok", "Error"}


@dataclass(frozen=True)
class Source:
    """One emission, compiled.

    Attributes:
        table: the table that its rows go to.
        owner: the stream's or group's name.
        emission: the span's, log's or metric's name.
        role: what the rows are for.
        rows: how many row numbers there are; an emission with a condition emits fewer, one that never fires none.
        layers: the draws it needs, as (name, expression) per layer.
        condition: which row numbers emit; None for all.
        share: how many of them may be expected to.
        order: narrow expressions that sort rows as the table does.
        columns: the table's columns and their expressions.
        key: the key of the owner's row bits.
    """

    table: str
    owner: str
    emission: str
    role: Role
    rows: int
    layers: tuple[tuple[tuple[str, str], ...], ...]
    condition: str | None
    share: Fraction
    order: tuple[str, ...]
    columns: Mapping[str, str] = field(repr=False)
    key: int

    def narrow(self, start: int, stop: int) -> str:
        """Return the SELECT of the draws of a range of rows."""
        source = f"numbers_mt({start}, {stop - start})"
        query = f"SELECT number AS {ROW}, {mix('number', self.key)} AS {ROW_BITS} FROM {source}"
        for layer in self.layers:
            names = ", ".join(f"{sql} AS {name}" for name, sql in layer)
            query = f"SELECT *, {names} FROM ({query})"
        return f"SELECT * FROM ({query}) WHERE {self.condition}" if self.condition else query

    def select(self, start: int, stop: int, *, is_sorted: bool = False) -> str:
        """Return the SELECT of the whole rows of a range.

        Args:
            start: the first row number.
            stop: the row number after the last.
            is_sorted: bring the narrow draws into the table's order first. The engine then needn't move the wide rows
                (maps of two dozen strings), which otherwise is most of what a load costs.
        """
        narrow = self.narrow(start, stop)
        if is_sorted and self.order:
            narrow = f"SELECT * FROM ({narrow}) ORDER BY {', '.join(self.order)}"
        wide = ", ".join(f"{sql} AS `{name}`" for name, sql in self.columns.items())
        return f"SELECT {wide} FROM ({narrow})"


def count_query(sources: Sequence[Source]) -> str:
    """Return the query that counts, without making them, the rows of emissions of one owner: one number each."""
    layers: dict[int, dict[str, str]] = {}
    for source in sources:
        for depth, layer in enumerate(source.layers):
            layers.setdefault(depth, {}).update(layer)
    merged = tuple(tuple(layers[depth].items()) for depth in sorted(layers))
    narrow = replace(sources[0], layers=merged, condition=None).narrow(0, sources[0].rows)
    counts = ", ".join(f"countIf({source.condition or 1}) AS `{source.emission}`" for source in sources)
    return f"SELECT {counts} FROM ({narrow})"


class SourceBuilder:
    """Gathers one emission's columns and the draws that they need.

    Args:
        scope: the stream's or group's draws.
        table: the table.
        name: the emission's name.
        emission: what is emitted.
    """

    def __init__(self, scope: Scope, table: str, name: str, emission: Emission) -> None:
        self.scope = scope
        self.table = table
        self.name = name
        self.emission = emission
        self.columns: dict[str, str] = {}
        self._needs: set[str] = set()

    def text(self, text: str | TextCases) -> CompiledText:
        """Compile a text and note what it needs."""
        compiled = compile_text(self.scope, text)
        self._needs |= compiled.needs
        return compiled

    def draw(self, name: str) -> str:
        """Return a draw's column and note that it is needed."""
        self._needs.add(self.scope.column(name).name)
        return name

    def moment(self, names: list[str], what: str) -> str:
        """Return the instant that a time draw and spans of time make."""
        first = self.scope.column(names[0])
        if first.domain is not Domain.TIME:
            raise InvalidInput(f"{self.scope.name}.{self.name}.{what}: `{names[0]}` is no time draw")
        return " + ".join(self.draw(name) for name in names)

    def condition(self, when: When) -> str:
        """Compile a condition and note what it needs."""
        sql, needs = compile_condition(self.scope, when)
        self._needs |= needs
        return sql

    def resource(self, moment: str) -> str:
        """Return the place in the fleet of the emission's instance, as upgraded at that moment."""
        column = self.scope.column(self.emission.resource)
        if column.domain is not Domain.INSTANCE:
            raise InvalidInput(f"{self.scope.name}.{self.name}.resource: `{column.name}` draws no instance")
        place = self.draw(column.name)
        world = self.scope.world
        for name, flip in sorted(world.fleet.flips.items(), key=lambda item: min(item[1].at)):
            if column.service in {None, world.recipe.rollouts[name].service}:
                reached = f"toInt64({moment}) - {world.anchor} >= {look_up(flip.at, place)}"
                place = f"if({reached}, {look_up(flip.to, place)}, {place})"
        return place

    def add_resource(self, moment: str) -> str:
        """Add the columns of service and resource attributes; return the rank of the service's name."""
        place = self.resource(moment)
        service = self.scope.column(self.emission.resource).service
        self.columns["ServiceName"] = quote(service) if service else f"{FLEET_SERVICES}[{place} + 1]"
        self.columns["ResourceAttributes"] = f"{FLEET_MAPS}[{place} + 1]"
        return "0" if service else f"{FLEET_RANKS}[{place} + 1]"

    def attributes(self) -> str:
        """Return the map of the emission's own attributes; those that only some rows have make nested choices."""
        return self._nest(dict(self.emission.attributes), 0)

    def _nest(self, have: Attributes, place: int) -> str:
        if place == len(self.emission.extra):
            return build_map({key: self.text(text).sql for key, text in have.items()})
        extra = self.emission.extra[place]
        condition = self.condition(extra.when)
        if condition == NEVER:
            return self._nest(have, place + 1)
        if condition == ALWAYS:
            return self._nest(have | extra.attributes, place + 1)
        return f"if({condition}, {self._nest(have | extra.attributes, place + 1)}, {self._nest(have, place + 1)})"

    def finish(self, role: Role, order: list[str]) -> Source:
        """Return the source."""
        condition = self.condition(self.emission.when) if self.emission.when else ALWAYS
        layers = tuple(
            tuple((column.name, column.sql) for column in layer) for layer in self.scope.closure(frozenset(self._needs))
        )
        return Source(
            table=self.table,
            owner=self.scope.name,
            emission=self.name,
            role=role,
            rows=0 if condition == NEVER else self.scope.rows,
            layers=layers,
            condition=None if condition in {ALWAYS, NEVER} else condition,
            share=ALL if condition in {ALWAYS, NEVER} else estimate_share(self.scope, self.emission.when),
            order=tuple(expression for expression in order if not expression.isdecimal()),
            columns=self.columns,
            key=draw_key(self.scope.world.seed, "rows", self.scope.name),
        )


def compile_span(scope: Scope, name: str, span: Span, *, spans: Mapping[str, Span], role: Role) -> Source:
    """Return the source of a span."""
    builder = SourceBuilder(scope, "otel_traces", name, span)
    if span.parent is not None and span.parent not in spans:
        raise InvalidInput(f"{scope.name}.{name}.parent: the stream has no span `{span.parent}`")
    moment = builder.moment(span.start, "start")
    span_name, status = builder.text(span.name), builder.text(span.status)
    if status.values and not set(status.values) <= _STATUS_CODES:
        raise InvalidInput(f"{scope.name}.{name}.status: is one of {', '.join(sorted(_STATUS_CODES))}")
    builder.columns |= {
        "Timestamp": f"fromUnixTimestamp64Nano(toInt64({moment}))",
        "TraceId": _trace_id(scope),
        "SpanId": _span_id(scope, name),
        "ParentSpanId": _span_id(scope, span.parent) if span.parent else "''",
        "TraceState": "''",
        "SpanName": span_name.sql,
        "SpanKind": quote(span.kind),
    }
    service_rank = builder.add_resource(moment)
    builder.columns |= {
        "ScopeName": quote(span.scope),
        "ScopeVersion": quote(span.scope_version),
        "SpanAttributes": builder.attributes(),
        "Duration": f"toUInt64({builder.draw(span.duration)})",
        "StatusCode": status.sql,
        "StatusMessage": builder.text(span.status_message).sql,
    }
    return builder.finish(role, [service_rank, _rank(span_name), f"intDiv({moment}, {_SECOND})"])


def compile_log(scope: Scope, name: str, log: Log, *, spans: Mapping[str, Span], role: Role) -> Source:
    """Return the source of a log record."""
    builder = SourceBuilder(scope, "otel_logs", name, log)
    if log.span is not None and log.span not in spans:
        raise InvalidInput(f"{scope.name}.{name}.span: the stream has no span `{log.span}`")
    moment = builder.moment(log.time, "time")
    severity = builder.text(log.severity)
    if severity.values is None or severity.index is None:
        raise InvalidInput(f"{scope.name}.{name}.severity: write one word, a pool's field, or cases of words")
    unknown = sorted({value for value in severity.values if value.lower() not in _SEVERITIES})
    if unknown:
        raise InvalidInput(f"{scope.name}.{name}.severity: {', '.join(unknown)} is none of {', '.join(_SEVERITIES)}")
    numbers = [_SEVERITIES[value.lower()] for value in severity.values]
    builder.columns |= {
        "Timestamp": f"fromUnixTimestamp64Nano(toInt64({moment}))",
        "TraceId": _trace_id(scope) if log.span else "''",
        "SpanId": _span_id(scope, log.span) if log.span else "''",
        "TraceFlags": "1" if log.span else "0",
        "SeverityText": severity.sql,
        "SeverityNumber": f"toUInt8({look_up(numbers, severity.index)})",
    }
    service_rank = builder.add_resource(moment)
    builder.columns |= {
        "Body": builder.text(log.body).sql,
        "ScopeName": quote(log.scope),
        "ScopeVersion": quote(log.scope_version),
        "LogAttributes": builder.attributes(),
    }
    return builder.finish(role, [f"intDiv({moment}, {_FIVE_MINUTES})", service_rank, moment])


def _rank(text: CompiledText) -> str:
    """Return a number that sorts as the text does, where its values are known; comparing numbers is cheaper."""
    if text.values is None or text.index is None:
        return text.sql
    order = {value: rank for rank, value in enumerate(sorted(set(text.values)))}
    return look_up([order[value] for value in text.values], text.index)


def _trace_id(scope: Scope) -> str:
    halves = [hexadecimal(mix(ROW_BITS, draw_key(scope.world.seed, "trace", half))) for half in ("high", "low")]
    return f"concat({', '.join(halves)})"


def _span_id(scope: Scope, span: str) -> str:
    return hexadecimal(mix(ROW_BITS, draw_key(scope.world.seed, "span", span)))
