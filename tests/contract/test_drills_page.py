"""The page of drills has every drill on a real cluster, and no other."""

from __future__ import annotations

import re

from support.named_tests import ROOT, list_tests

FILES = [f"tests/e2e/test_drills{part}.py" for part in ("", "_node", "_runs", "_store", "_namespaces")]
ROW = re.compile(r"^\|.*\| `([\w/.]+)::(\w+)` \|$", re.MULTILINE)


def test_every_drill_of_the_table_exists_and_every_drill_is_in_it() -> None:
    """Faults: the table of results is in docs/drills.md."""
    rows = ROW.findall((ROOT / "docs/drills.md").read_text("utf-8"))
    assert rows == [(file, name) for file in FILES for name in list_tests(file)]
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/e2e/test_drills*.py")} == set(FILES)
