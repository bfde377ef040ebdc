"""Texts of a recipe as SQL: literal pieces and the named draws between them, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core.scenarios.recipe_terms import NANOSECONDS, Text, TextCases, split_template
from proctor.core.seeding.conditions import ALWAYS, NEVER, compile_condition, instance_key
from proctor.core.seeding.scope import Column, Domain, Scope
from proctor.core.seeding.sql import concatenate, hexadecimal, look_up, mix, quote
from proctor.errors import InvalidInput

_SECOND_HALF = 0x9E3779B97F4A7C15
"""An odd constant (the golden ratio's fraction) that turns a draw's 64 bits into 64 others."""


@dataclass(frozen=True)
class CompiledText:
    """A text, compiled.

    Attributes:
        sql: the expression.
        needs: the draws' columns that it reads.
        values: every value it can take, where these are few and each belongs to a number.
        index: the expression of that number, counted from 0; None where `values` is not known.
    """

    sql: str
    needs: frozenset[str] = frozenset()
    values: tuple[str, ...] | None = None
    index: str | None = None


def compile_text(scope: Scope, text: Text) -> CompiledText:
    """Return a text's expression.

    Raises:
        InvalidInput: it names something that isn't declared.
    """
    if isinstance(text, TextCases):
        return _compile_cases(scope, text)
    pieces = split_template(text)
    if not pieces:
        return CompiledText("''", values=("",), index="0")
    if len(pieces) == 1:
        piece, is_reference = pieces[0]
        return (
            _compile_reference(scope, piece) if is_reference else CompiledText(quote(piece), values=(piece,), index="0")
        )
    compiled = [_compile_reference(scope, piece) if is_reference else None for piece, is_reference in pieces]
    parts = [one.sql if one else quote(piece) for one, (piece, _) in zip(compiled, pieces, strict=True)]
    needs = frozenset().union(*(one.needs for one in compiled if one))
    return CompiledText(concatenate(parts), needs)


def _compile_cases(scope: Scope, text: TextCases) -> CompiledText:
    needs: set[str] = set()
    conditions, texts = [], []
    for case in text.cases:
        condition, read = compile_condition(scope, case.when)
        if condition == NEVER:
            continue
        texts.append(compile_text(scope, case.text))
        if condition == ALWAYS:
            break
        conditions.append(condition)
        needs |= read
    else:
        texts.append(compile_text(scope, text.otherwise))
    if not conditions:
        return texts[0]
    needs |= frozenset().union(*(one.needs for one in texts))
    sql = _choose(conditions, [one.sql for one in texts])
    if all(one.values is not None and len(one.values) == 1 for one in texts):
        values = tuple(one.values[0] for one in texts if one.values)
        return CompiledText(sql, frozenset(needs), values, _choose(conditions, [str(at) for at in range(len(texts))]))
    return CompiledText(sql, frozenset(needs))


def _choose(conditions: list[str], results: list[str]) -> str:
    branches = [f"{condition}, {result}" for condition, result in zip(conditions, results, strict=False)]
    return f"multiIf({', '.join(branches)}, {results[-1]})"


def _compile_reference(scope: Scope, reference: str) -> CompiledText:
    name, _, field = reference.partition(".")
    if name in scope.texts and not field:
        return compile_text(scope, scope.texts[name])
    column = scope.column(name)
    needs = frozenset({column.name})
    if column.domain is Domain.HEX:
        return CompiledText(_hex_text(column), needs)
    if column.domain is Domain.INSTANCE:
        values = _instance_values(scope, field)
        return CompiledText(look_up(values, column.name), needs, values, column.name)
    if column.pool is not None and not column.pool.is_numbered:
        values = column.pool.column(field or None)
        return CompiledText(look_up(values, column.name), needs, values, column.name)
    if column.pool is not None:
        return CompiledText(_numbered_text(column), needs)
    if field and field not in NANOSECONDS:
        raise InvalidInput(f"{scope.name}: `{reference}`: a number has the units {', '.join(NANOSECONDS)}")
    number = f"intDiv({column.name}, {NANOSECONDS[field]})" if field and field != "ns" else column.name
    return CompiledText(f"toString({number})", needs)


def _hex_text(column: Column) -> str:
    digits = hexadecimal(column.name)
    if column.digits > 16:  # noqa: PLR2004 - the digits that 64 bits have
        digits = f"concat({digits}, {hexadecimal(mix(column.name, _SECOND_HALF))})"
    return digits if column.digits in {16, 32} else f"substring({digits}, 1, {column.digits})"


def _numbered_text(column: Column) -> str:
    pool = column.pool
    if pool is None:
        raise AssertionError("a numbered draw has its pool")
    number = f"toString({pool.first} + {column.name})"
    if pool.digits > 1:
        number = f"leftPad({number}, {pool.digits}, '0')"
    return concatenate([quote(pool.prefix), number] if pool.prefix else [number])


def _instance_values(scope: Scope, field: str) -> tuple[str, ...]:
    key = instance_key(scope, field or None)
    return tuple(one.attributes.get(key, "") for one in scope.world.fleet.instances)
