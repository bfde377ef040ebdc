"""Any manifest is accepted or refused with lines; nothing else ever happens."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.api.loading import InvalidManifest, Problem, parse_suite
from proctor.reconcile.cells import expand_cells
from support.manifests import manifest, real_model, server

WHOLE = manifest(
    servers=[
        server("current", env=[{"name": "A", "value": "b"}, {"name": "B", "dataset": "host"}]),
        {
            "name": "candidate",
            "http": {"command": ["x"], "port": 80, "path": "/mcp"},
            "deniedTools": [],
            "headers": [{"name": "Authorization", "secretKeyRef": {"name": "t", "key": "k"}}],
        },
    ],
    models=[real_model()],
    agent={"maxUSD": "2", "maxTurns": 3},
    judge={"anthropic": {"model": "other", "secretKeyRef": {"name": "t", "key": "k"}}, "votes": 3},
    adaptive={"maxReplicates": 9},
    sandbox={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]},
)

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["0.5", "-1", "1e3", "x" * 300]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path]
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += _places(child, (*path, key))
    return found


PLACES = [path for path in _places(WHOLE) if path]


def _changed(path: tuple[str | int, ...], value: Any, extra: str | None) -> Any:
    document = copy.deepcopy(WHOLE)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    if extra is not None and isinstance(holder, dict):
        holder[extra] = value
    else:
        holder[path[-1]] = value
    return document


def test_the_whole_manifest_is_valid() -> None:
    """Fuzzing starts from what is accepted."""
    assert parse_suite(json.dumps(WHOLE), file="s").metadata.name == "made"


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), VALUES, st.none() | st.text(max_size=12))
def test_any_change_is_accepted_or_refused_with_lines(
    path: tuple[str | int, ...], value: Any, extra: str | None
) -> None:
    """Bad input: a manifest from anywhere raises nothing but a clear refusal."""
    problems = _refusal(json.dumps(_changed(path, value, extra), indent=1))
    assert all(problem.line >= 1 and problem.message for problem in problems)


def _refusal(text: str) -> tuple[Problem, ...]:
    """Return why a manifest is refused; for one that is not, check that it survives writing."""
    try:
        suite = parse_suite(text, file="s")
    except InvalidManifest as error:
        return error.problems
    assert parse_suite(json.dumps(suite.to_file()), file="s") == suite
    assert len(expand_cells(suite.spec)) <= 2000 + 32 * 16 * 2
    return ()
