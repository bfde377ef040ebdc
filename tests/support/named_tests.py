"""Tests as documentation names them: `path::function`, or `path` for all of a file."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def list_tests(path: str) -> dict[str, str]:
    """Return the test functions of a file with their docstrings; nothing if there is no such file."""
    source = ROOT / path
    if not source.is_file():
        return {}
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def find_docstring(name: str) -> str | None:
    """Return the docstring of a test that is named as `path::function`; None if there is no such test."""
    path, _, function = name.partition("::")
    return list_tests(path).get(function)
