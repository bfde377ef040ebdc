"""Whole runs on a cluster in memory: from an EvalRun to its verdict, by the operator's own client."""

from __future__ import annotations

from proctor.adapters.kube.kinds import DEPLOYMENT, JOB, POD, SERVICE
from proctor.api.run import Phase, Verdict
from support.operated import operate


async def test_a_run_comes_to_its_verdict_and_leaves_nothing_running() -> None:
    """M-A6, P1: create → children → attempts → verdict; nothing that runs is left, and a second pass is empty."""
    operated = operate()
    status = await operated.drive()
    assert (status.verdict, status.phase, status.reason) == (Verdict.PASS, Phase.COMPLETE, "WithinMaxDrop")
    assert status.cells.total == status.cells.graded == 10
    assert operated.heard
    assert all(seconds >= 0 for seconds in operated.heard)
    for kind in (POD, JOB, DEPLOYMENT):
        assert operated.api.every(kind) == []
    assert [item["metadata"]["name"] for item in operated.api.every(SERVICE)] == ["proctor-clickhouse"]
    before = len(operated.api.requests)
    report = await operated.make_pass()
    assert report.finished
    assert not report.busy
    assert {request.method for request in operated.api.requests[before:]} == {"GET"}
