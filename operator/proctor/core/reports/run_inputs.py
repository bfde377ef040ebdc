"""What two runs were given that was not the same, and whether their scores can be compared at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_SHOWN_SIGNS = 60
_NAMED_LISTS = frozenset({"scenarios", "servers", "models", "env", "headers"})


class Weight(StrEnum):
    """What a difference of inputs means for a comparison."""

    BREAKS = "breaks"
    """Scores were made by another measure, or of another incident: their difference says nothing about the agents."""
    CHANGED = "changed"
    """What may be under test: an agent, a server, a model, a tool list."""
    HARMLESS = "harmless"
    """It decides when a run goes on, or how it is judged as a whole; no cell's score depends on it."""


@dataclass(frozen=True, slots=True)
class InputChange:
    """One input that differs.

    Attributes:
        what: the field, or the digest.
        before: in the first run; empty where it has none.
        after: in the second.
        weight: what that means.
    """

    what: str
    before: str
    after: str
    weight: Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """What a run was given.

    Attributes:
        suite: the frozen suite, as JSON.
        datasets: digests by scenario.
        rubric: its digest; empty where it is not known.
        judge: as above; empty without a judge.
        tools: digests of tool lists by server.
    """

    suite: Mapping[str, Any]
    datasets: Mapping[str, str]
    rubric: str
    judge: str
    tools: Mapping[str, str]


def find_changes(before: RunInputs, after: RunInputs) -> tuple[InputChange, ...]:
    """Return what differs, what breaks the comparison first."""
    found = [*_digest_changes(before, after), *_suite_changes(before.suite, after.suite)]
    return tuple(sorted(found, key=lambda change: list(Weight).index(change.weight)))


def _digest_changes(before: RunInputs, after: RunInputs) -> Iterator[InputChange]:
    for scenario in sorted(before.datasets.keys() & after.datasets.keys()):
        yield from _compare(f"dataset of {scenario}", before.datasets[scenario], after.datasets[scenario])
    if before.datasets.keys() == after.datasets.keys():
        # One digest stands for the rubrics of all scenarios: with other scenarios it says nothing.
        yield from _compare("rubric", before.rubric, after.rubric)
    yield from _compare("judge", before.judge, after.judge)
    for server in sorted(before.tools.keys() & after.tools.keys()):
        yield from _compare(f"tool list of {server}", before.tools[server], after.tools[server], weight=Weight.CHANGED)


def _compare(what: str, before: str, after: str, *, weight: Weight = Weight.BREAKS) -> Iterator[InputChange]:
    if before != after:
        yield InputChange(what, before[:12], after[:12], weight)


def _suite_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[InputChange]:
    for part in [*before, *(part for part in after if part not in before)]:
        for path, old, new in _walk(part, before.get(part), after.get(part)):
            yield InputChange(path, _show(old), _show(new), _weigh(part))


def _weigh(part: str) -> Weight:
    if part == "weights":
        return Weight.BREAKS
    if part in {"agent", "servers", "models", "scenarios", "anchor", "judge"}:
        return Weight.CHANGED  # digests say whether data or judge are others
    return Weight.HARMLESS


def _walk(path: str, before: object, after: object) -> Iterator[tuple[str, object, object]]:
    """Yield the smallest parts that differ."""
    if before == after:
        return
    left, right = _children(path, before), _children(path, after)
    if left is None or right is None:
        yield path, before, after
        return
    for name in [*left, *(name for name in right if name not in left)]:
        yield from _walk(f"{path}.{name}", left.get(name), right.get(name))


def _children(path: str, value: object) -> Mapping[str, object] | None:
    """Return the parts of an object, or of a list whose items have names; None for a value that is whole."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and path.rpartition(".")[2] in _NAMED_LISTS:
        return {str(item.get("name", place)): item for place, item in enumerate(value) if isinstance(item, Mapping)}
    return None


def _show(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_SIGNS else f"{text[:_SHOWN_SIGNS]}… ({len(text)} signs)"
