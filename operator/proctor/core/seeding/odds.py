"""How many rows an emission with a condition may be expected to emit: for the size of INSERTs, never for rows."""

from __future__ import annotations

from fractions import Fraction

from proctor.core.scenarios.recipe_draws import Chance, Pick
from proctor.core.scenarios.recipe_terms import AtLeastMost, Matcher, When, Within
from proctor.core.seeding.scope import Scope

ALL = Fraction(1)
_LEAST = Fraction(1, 1_000_000)


def estimate_share(scope: Scope, when: When | None) -> Fraction:
    """Return the share of rows on which a condition may hold: exact for plain chances and picks, else a bound."""
    share = ALL
    for reference, matcher in (when or {}).items():
        share *= _estimate_match(scope, reference, matcher)
    return max(share, _LEAST)


def _estimate_match(scope: Scope, reference: str, matcher: Matcher) -> Fraction:
    if isinstance(matcher, Within | AtLeastMost):
        return ALL
    name, _, field = reference.partition(".")
    wanted = {str(value) for value in (matcher if isinstance(matcher, list) else [matcher])}
    match scope.draws[name]:
        case Chance(chance=chance) if not isinstance(chance, str):
            odds = Fraction(chance)
            return sum((part for value, part in (("1", odds), ("0", 1 - odds)) if value in wanted), Fraction(0))
        case Pick(only=None, where={}, other_than=None):
            pool = scope.column(name).pool
            if pool is None or pool.is_numbered:
                return ALL
            weights = zip(pool.column(field or None), pool.weights, strict=True)
            return Fraction(sum(weight for value, weight in weights if value in wanted), sum(pool.weights))
        case _:
            return ALL
