"""`proctor doctor`: what a machine lacks is said with the command that mends it."""

from __future__ import annotations

import asyncio
import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from proctor.core.reports.machine import Finding, State, build_findings_json, can_run, render_findings
from proctor.errors import Terminal
from proctor.local import doctor

FINE = Finding("fine", State.OK, "well")
SPARE = Finding("spare", State.WITHOUT, "not there", "get it")
LACKING = Finding("lacking", State.LACKS, "nothing", "do this")


def test_only_what_is_needed_stops_a_run() -> None:
    """What only some runs want is named, and stops none."""
    assert can_run([FINE, SPARE])
    assert not can_run([FINE, SPARE, LACKING])
    assert render_findings([FINE, SPARE]).endswith("a run can go")
    shown = render_findings([FINE, LACKING])
    assert "→ do this" in shown
    assert shown.endswith("no run can go: 1 of 2 things are missing")
    assert build_findings_json([LACKING]) == {
        "canRun": False,
        "findings": [{"name": "lacking", "state": "lacks", "what": "nothing", "mend": "do this"}],
    }


def test_hostile_names_are_inert() -> None:
    """A folder's name acts on no terminal."""
    assert "\x1b" not in render_findings([Finding("disk", State.LACKS, "\x1b[2J", "\x1b]0;x")])


@pytest.mark.parametrize(("found", "code"), [((FINE,), 0), ((FINE, LACKING), 1)], ids=["can run", "can't"])
def test_exit_code_tells_whether_a_run_can_go(
    found: tuple[Finding, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doctor: 0 if a run can go, 1 if not; the same in JSON."""

    async def examine(_data_dir: Path) -> tuple[Finding, ...]:
        return found

    monkeypatch.setattr(doctor, "examine", examine)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == code
    assert json.loads(result.output)["canRun"] is (code == 0)


async def test_one_look_that_fails_or_hangs_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look ends within its time, whatever it meets."""

    async def fail() -> Finding:
        raise Terminal("engine: it said nothing")

    async def hang() -> Finding:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(doctor, "TRY_SECONDS", 0.05)
    assert (await doctor._look("engine", fail)).what == "engine: it said nothing"
    hung = await doctor._look("engine", hang)
    assert (hung.state, hung.what) == (State.LACKS, "no answer within 0 s")


def test_data_dir_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    """A look makes nothing that stays."""
    assert doctor._look_at_data_dir(tmp_path / "a" / "b").state is State.OK
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    refused = doctor._look_at_data_dir(tmp_path / "file")
    assert refused.state is State.LACKS
    assert "--data-dir" in refused.mend


def test_lock_and_left_overs_are_told(tmp_path: Path) -> None:
    """What a killed run left is named; the next run removes it."""
    (tmp_path / "clones" / "one").mkdir(parents=True)
    found = doctor._look_at_lock(tmp_path)
    assert (found.state, "1 clones are left" in found.what) == (State.OK, True)


def test_small_machines_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little memory or disk is said with what is wanted."""
    usage = namedtuple("usage", "free")  # noqa: PYI024 - what shutil returns
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: usage(5 << 20))
    monkeypatch.setattr(doctor, "_available_memory", lambda: 100 << 20)
    for found in (doctor._look_at_disk(tmp_path / "new"), doctor._look_at_memory()):
        assert found.state is State.LACKS
        assert found.mend


def test_a_clock_that_is_behind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the day on which Proctor was installed no certificate holds."""
    assert doctor._look_at_clock().state is State.OK
    monkeypatch.setattr(doctor, "datetime", _Past)
    assert doctor._look_at_clock().mend == "timedatectl set-ntp true"


class _Past(doctor.datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return doctor.datetime.fromtimestamp(0, tz)


def test_secrets_are_named_never_shown(tmp_path: Path) -> None:
    """No secret in a report: a key is there, or it is not."""
    found = doctor._look_for_key({"ANTHROPIC_API_KEY": "sk-secret"})
    assert (found.state, "sk-secret" in found.what) == (State.OK, False)
    assert doctor._look_for_key({}).state is State.WITHOUT
    assert doctor._look_for_server("no-such-server", {"PATH": str(tmp_path)}).mend == "pip install no-such-server"
    absent = doctor._look_for_claude_code(
        tmp_path, {"PATH": str(tmp_path), "PROCTOR_CLAUDE_CODE": str(tmp_path / "none")}
    )
    assert absent.state is State.WITHOUT
    assert "npm install" in absent.mend
