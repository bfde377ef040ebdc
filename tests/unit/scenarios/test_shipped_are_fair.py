"""Every folder under scenarios/ is fair by its files: a new one is tested by being there."""

from __future__ import annotations

import pytest

from proctor.core.fairness.check import check_files
from proctor.core.fairness.folder import read_draft
from support.grading import NAMES
from support.playing import SCENARIOS


@pytest.mark.parametrize("name", NAMES)
def test_files_are_fair(name: str) -> None:
    """M-A3, M-A9: files, sentences, whole answers, leaks, bands, markers of every shipped scenario."""
    assert [str(fault) for fault in check_files(read_draft(SCENARIOS / name))] == []


def test_every_folder_is_a_scenario() -> None:
    """A folder that is left half built is no folder that nobody tests."""
    assert sorted(path.name for path in SCENARIOS.iterdir() if path.is_dir()) == list(NAMES)
