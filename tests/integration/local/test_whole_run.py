"""`proctor run` as people start it: real engines, gateway, sandboxes, grader."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from support.local_runs import (
    Machine,
    find_process,
    list_descendants,
    make_suite,
    odd_server,
    scores_of,
    sql_server,
    wait_until_gone,
)


def test_a_suite_runs_to_its_verdict(machine: Machine, undisturbed: dict[str, Any]) -> None:
    """M-D4, M-A5, M-A6: one file, one verdict; controls in line, every cell graded, nothing left running."""
    reference = scores_of(undisturbed)
    status = undisturbed["run"]["status"]
    assert status["verdict"] == "Pass"
    assert status["cells"] == {
        "total": 6, "graded": 6, "ungraded": 0, "infraErrored": 0, "cancelled": 0, "running": 0, "pending": 0,
    }  # fmt: skip
    assert float(status["controls"]["oracle"]) >= 0.95
    assert float(status["controls"]["noop"]) == 0
    assert {condition["type"]: condition["status"] for condition in status["conditions"]}["Ready"] == "True"
    assert set(status["digests"]) >= {"suite", "datasets", "rubric", "gate", "tools"}
    assert float(reference["error-root-cause/sql/newest/1"] or 0) >= 0.6
    assert float(reference["error-root-cause/sql/loudest/1"] or 1) < 0.4
    assert not list((machine.data_dir / "clones").iterdir())
    assert not list_descendants(os.getpid())


def test_show_tells_what_happened_in_a_cell(machine: Machine, undisturbed: dict[str, Any]) -> None:
    """M-A8: the whole trajectory, its answer, and why each mark was given."""
    shown = machine.call("show", undisturbed["run"]["metadata"]["name"], "sql/newest/1")
    assert shown.returncode == 0, shown.stderr
    for words in ("tools_listed", "tool_call query", "answer (put):", "root-service", "attempt_ended completed"):
        assert words in shown.stdout
    document = json.loads(machine.call("show", undisturbed["run"]["metadata"]["name"], "sql/newest/1", "--json").stdout)
    assert document["attempt"]["events"] == len(document["events"])
    assert document["cell"]["cell"] == document["attempt"]["cell"]
    tools = machine.call("show", undisturbed["run"]["metadata"]["name"], "--tools")
    (line,) = [line for line in tools.stdout.splitlines() if line.startswith("sql × newest")]
    assert line.split()[3:4] == ["query"]
    assert "100%" in line
    listed = machine.call("runs")
    assert "Pass" in listed.stdout
    unknown = machine.call("show", "no-such-run")
    assert unknown.returncode == 64
    assert "no-such-run" in unknown.stderr


def test_two_servers_are_compared_and_a_worse_one_fails(machine: Machine, reference: dict[str, str | None]) -> None:
    """A candidate that breaks what works through the baseline: Fail, exit 1, controls alone decide."""
    assert reference
    broken = sql_server("broken", "--break")
    gate = {"enforcement": "Audit", "baseline": {"server": "sql"}, "maxDrop": "0.05"}
    suite = make_suite("broken", servers=[sql_server("sql"), broken], gate=gate)
    finished = machine.call("run", str(machine.write_suite(suite)), "--json")
    document: dict[str, Any] = json.loads(finished.stdout)
    assert finished.returncode == 1, finished.stderr
    assert document["run"]["status"]["reason"] == "ControlRegression"
    assert document["run"]["status"]["cells"]["cancelled"] == 8


@pytest.mark.drill
def test_controls_of_a_server_without_a_sql_tool_play_on_the_reference(
    machine: Machine, reference: dict[str, str | None]
) -> None:
    """Manifest, controls; M-A4, P27: its oracle is as good as any, its noop 0; its own agents have its tools alone."""
    assert reference
    plain = odd_server("plain", deniedTools=None, allowedTools=["echo"])
    suite = make_suite("plain", servers=[sql_server("sql"), plain])
    finished = machine.call("run", str(machine.write_suite(suite)), "--new")
    assert finished.returncode == 0, (finished.stderr, machine.last_run()["run"]["status"])
    scores = scores_of(machine.last_run())
    assert float(scores["error-root-cause/plain/~oracle/1"] or 0) >= 0.95
    assert scores["error-root-cause/plain/~oracle/1"] == scores["error-root-cause/sql/~oracle/1"]
    assert float(scores["error-root-cause/plain/~noop/1"] or 1) == 0
    assert float(scores["error-root-cause/plain/newest/1"] or 1) == 0
    shown = machine.call("show", "last", "plain/~oracle/1")
    assert "tool_call run_sql" in shown.stdout


def test_interrupting_leaves_a_run_that_the_same_command_resumes(
    machine: Machine, reference: dict[str, str | None]
) -> None:
    """Ctrl-C: exit 130, Pending, nothing left; then the same table, no finished cell repeated."""
    suite = machine.write_suite(make_suite("stopped"))
    process = machine.start("run", str(suite))
    find_process(process, "proctor_agent")
    left = set(list_descendants(process.pid))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "is Pending" in err
    assert not wait_until_gone(left)
    document = machine.last_run()
    assert document["run"]["status"]["verdict"] == "Pending"
    assert document["run"]["status"]["cells"]["running"] == 0
    finished = {cell["cell"]: cell["attempt"] for cell in document["cells"] if cell.get("score")}

    resumed = machine.call("run", str(suite))
    assert resumed.returncode == 0, resumed.stderr
    assert "resuming run" in resumed.stderr
    after = machine.last_run()
    assert after["run"]["metadata"]["name"] == document["run"]["metadata"]["name"]
    assert scores_of(after) == reference
    assert {cell["cell"]: cell["attempt"] for cell in after["cells"] if cell["cell"] in finished} == finished
    assert not out


def test_a_timeout_ends_with_four_and_cancel_ends_the_run(machine: Machine, reference: dict[str, str | None]) -> None:
    """Exit 4; then `proctor cancel` of a run that nobody is at work on."""
    assert reference
    suite = machine.write_suite(make_suite("slow", servers=[sql_server("sql", "--slow", "30")]))
    stopped = machine.call("run", str(suite), "--timeout", "12")
    assert stopped.returncode == 4, stopped.stderr
    cancelled = machine.call("cancel", "last")
    assert "is Cancelled" in cancelled.stdout
    status = machine.last_run()["run"]["status"]
    assert (status["verdict"], status["cells"]["cancelled"]) == ("Cancelled", 6 - status["cells"]["graded"])
    again = machine.call("cancel", "last")
    assert "has ended already" in again.stdout


@pytest.mark.drill
def test_cancelling_a_run_that_goes_on(machine: Machine, reference: dict[str, str | None]) -> None:
    """P35: its cells end, its verdict is Cancelled, exit 3, nothing is left."""
    assert reference
    suite = machine.write_suite(make_suite("cancelled", servers=[sql_server("sql", "--slow", "30")]))
    process = machine.start("run", str(suite))
    find_process(process, "proctor_agent")
    left = set(list_descendants(process.pid))
    asked = machine.call("cancel", "last")
    assert "asked to end" in asked.stdout
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert machine.last_run()["run"]["status"]["verdict"] == "Cancelled"
    assert not wait_until_gone(left)


@pytest.mark.drill
def test_two_runs_at_once_queue(machine: Machine, reference: dict[str, str | None]) -> None:
    """P41, two `proctor run` on one data dir: the second says whom it waits for, and both end well."""
    assert reference
    first = machine.start("run", str(machine.write_suite(make_suite("first"))))
    find_process(first, "proctor.gateway")
    second = machine.call("run", str(machine.write_suite(make_suite("second"))))
    _, err = first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0), err + second.stderr
    assert "waiting for first-" in second.stderr
