"""Conditions of a recipe as SQL."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core.scenarios.recipe_terms import AtLeastMost, Matcher, Within, nanoseconds, parse_duration
from proctor.core.seeding.scope import Column, Domain, Scope
from proctor.core.seeding.sql import list_numbers, quote
from proctor.errors import InvalidInput

ALWAYS, NEVER = "1", "0"
"""Conditions that are known before any row is made: a group that pins a draw settles what depends on it."""

INSTANCE_FIELDS = {
    "service": "service.name",
    "pod": "k8s.pod.name",
    "node": "k8s.node.name",
    "version": "service.version",
    "region": "cloud.region",
    "namespace": "k8s.namespace.name",
    "instance": "service.instance.id",
}
"""What a text or condition may ask of an instance, and the resource attribute that answers."""


def compile_condition(scope: Scope, when: Mapping[str, Matcher]) -> tuple[str, frozenset[str]]:
    """Return a condition's expression and the columns that it reads."""
    parts, needs = [], set()
    for reference, matcher in when.items():
        name, _, field = reference.partition(".")
        column = scope.column(name)
        part = _compile_match(scope, column, field or None, matcher)
        if part == NEVER:
            return NEVER, frozenset()
        if part != ALWAYS:
            needs.add(column.name)
            parts.append(part)
    return " AND ".join(f"({part})" for part in parts) or ALWAYS, frozenset(needs)


def _compile_match(scope: Scope, column: Column, field: str | None, matcher: Matcher) -> str:
    if isinstance(matcher, Within):
        if column.domain is not Domain.TIME:
            raise InvalidInput(f"{scope.name}: `{column.name}` is no time, so `from` and `until` can't match it")
        return _compile_within(scope, column.name, matcher)
    if isinstance(matcher, AtLeastMost):
        bounds = []
        if matcher.least is not None:
            bounds.append(f"{column.name} >= {nanoseconds(matcher.least)}")
        if matcher.most is not None:
            bounds.append(f"{column.name} <= {nanoseconds(matcher.most)}")
        return " AND ".join(bounds) or "1"
    wanted = matcher if isinstance(matcher, list) else [matcher]
    places = _matching_places(scope, column, field, [str(value) for value in wanted])
    if not places:
        raise InvalidInput(f"{scope.name}: `{column.name}` is never {' or '.join(quote(str(one)) for one in wanted)}")
    if column.constant is not None:
        return ALWAYS if column.constant in places else NEVER
    if len(places) == 1:
        return f"{column.name} = {places[0]}"
    return f"has({list_numbers(places)}, {column.name})"


def _matching_places(scope: Scope, column: Column, field: str | None, wanted: list[str]) -> list[int]:
    if column.domain is Domain.INSTANCE:
        fleet = scope.world.fleet.instances
        if field == "number":
            return [place for place, one in enumerate(fleet) if str(one.number) in wanted]
        key = instance_key(scope, field)
        return [place for place, one in enumerate(fleet) if one.attributes.get(key, "") in wanted]
    if column.pool is not None and not column.pool.is_numbered:
        return [place for place, value in enumerate(column.pool.column(field)) if value in wanted]
    if not all(value.lstrip("-").isdecimal() for value in wanted):
        raise InvalidInput(f"{scope.name}: `{column.name}` is a number, and {', '.join(map(quote, wanted))} is none")
    return [int(value) for value in wanted]


def instance_key(scope: Scope, field: str | None) -> str:
    """Return the resource attribute that a field of an instance means.

    Raises:
        InvalidInput: there is no such field, or it is not the instance's alone.
    """
    key = INSTANCE_FIELDS.get(field or "service")
    if key is None:
        raise InvalidInput(f"{scope.name}: an instance has no `{field}`: it has {', '.join(INSTANCE_FIELDS)}")
    if field == "version" and scope.world.fleet.flips:
        raise InvalidInput(f"{scope.name}: with rollouts an instance's version depends on time: ask an `upgraded` draw")
    return key


def _compile_within(scope: Scope, time: str, within: Within) -> str:
    anchor = scope.world.anchor
    start, until = anchor + parse_duration(within.start), anchor + parse_duration(within.until)
    inside = f"{time} >= {start} AND {time} < {until}"
    if within.every is None:
        return inside
    if within.lasting is None:
        raise InvalidInput(f"{scope.name}: `every` needs `lasting`")
    return f"{inside} AND ({time} - {start}) % {parse_duration(within.every)} < {parse_duration(within.lasting)}"
