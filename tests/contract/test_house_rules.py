"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 500
FUNCTION_LINES = 50
BANNED_MODULES = {"utils", "util", "helpers", "manager", "data"}
# Where a package came from is the installer's business, and a path of one machine is of use on no other.
FOREIGN = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|proxy\.golang|crates\.io|maven\.org|deb\.debian|/work/|/root/"
)
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", ".sh", ".cfg", ".sql"}

SOURCES = sorted((ROOT / "operator").rglob("*.py"))


def _tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small(source: Path) -> None:
    """Style: a module under 500 lines, a function under 50, no module named after nothing."""
    text = source.read_text()
    assert text.count("\n") <= MODULE_LINES
    assert source.stem not in BANNED_MODULES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # A docstring is documentation, not length.
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert lines <= FUNCTION_LINES, f"{node.name} has {lines} lines"


def test_no_file_names_a_registry_or_a_machine() -> None:
    """House rule: no host of a package registry, no path of one machine."""
    checked = [path for path in _tracked_files() if path.suffix in TEXT_SUFFIXES and path != Path(__file__)]
    assert checked
    found = [
        str(path.relative_to(ROOT))
        for path in checked
        if path.is_file() and FOREIGN.search(path.read_text("utf-8", "replace"))
    ]
    assert found == []
