"""What docs/security.md promises is shown by tests that exist, and no row of the list of controls is passed over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(r"^\| (S\d+) \| (.*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(test_\w+)`")
_ROWS = [f"S{number}" for number in range(1, 34)]
_PROMISED = {row: cells.split(" | ") for row, cells in _ROW.findall(_PAGE) if cells.count(" | ") == 2}
_LEFT_OUT = {row: cells for row, cells in _ROW.findall(_PAGE) if " | " not in cells}


def _tests() -> Iterator[tuple[str, str]]:
    for path in (_ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name, ast.get_docstring(node) or ""


@pytest.fixture(scope="module")
def docstrings() -> dict[str, str]:
    """What each test says of itself; of several with one name, all of it."""
    found: dict[str, str] = {}
    for name, words in _tests():
        found[name] = f"{found.get(name, '')} {words}"
    return found


def test_every_row_is_promised_or_left_out_with_a_reason() -> None:
    """S1 to S33: none is passed over in silence, and none is in both tables."""
    assert sorted([*_PROMISED, *_LEFT_OUT], key=_ROWS.index) == _ROWS
    assert all(reason.strip() for reason in _LEFT_OUT.values())


@pytest.mark.parametrize("row", _PROMISED)
def test_a_promise_names_tests_that_exist_and_name_it(row: str, docstrings: dict[str, str]) -> None:
    """Each attack and control that the table names is a test; each attack's own words name the row."""
    _, attacks, controls = _PROMISED[row]
    assert _TEST.findall(attacks), f"{row} names no attack"
    assert _TEST.findall(controls) or controls.startswith("in "), f"{row} names no positive control"
    named = _TEST.findall(attacks + controls)
    assert [name for name in named if name not in docstrings] == []
    assert any(re.search(rf"\b{row}\b", docstrings[name]) for name in _TEST.findall(attacks)), f"no attack names {row}"
