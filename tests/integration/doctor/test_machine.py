"""`proctor doctor` on this machine, which runs suites: it says so, having tried."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proctor.core.reports.machine import State
from proctor.local.doctor import examine

pytestmark = [pytest.mark.engine, pytest.mark.sandbox]


def test_what_runs_need_is_here_and_was_tried(tmp_path: Path) -> None:
    """Doctor: a sandbox and an engine are really started; nothing of it is left."""
    found = {finding.name: finding for finding in asyncio.run(examine(tmp_path))}
    assert {name: one.what for name, one in found.items() if one.state is State.LACKS} == {}
    assert found["engine"].what.endswith("was started, and asked")
    assert found["sandbox"].what.startswith("one was started")
    assert all(one.mend for one in found.values() if one.state is State.WITHOUT)
    assert list(tmp_path.iterdir()) == []


def test_without_an_engine_and_a_sandbox_no_run_can_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named with the command that brings it."""
    monkeypatch.setattr("proctor.local.doctor.find_spec", lambda _name: None)
    monkeypatch.setattr("proctor.local.doctor.sandbox_available", lambda: "bubblewrap is missing: pip install it")
    found = {finding.name: finding for finding in asyncio.run(examine(tmp_path, {"PATH": str(tmp_path)}))}
    assert (found["engine"].state, found["engine"].mend) == (State.LACKS, "pip install 'proctor[local]'")
    assert (found["sandbox"].state, found["sandbox"].mend) == (State.LACKS, "pip install it")
