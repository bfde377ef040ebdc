"""Whatever fails, wherever the operator dies: a run converges, counts every cell once, and a second pass is empty."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from proctor.adapters.kube.kinds import DEPLOYMENT, JOB, POD
from proctor.api.run import EvalRunStatus, Verdict
from support.operated import Operated, operate

SMALL: dict[str, Any] = {
    "servers": [{"name": "left", "stdio": {"command": ["left"]}, "deniedTools": []}],
    "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
    "replicates": 1,
    "gate": {"enforcement": "Audit", "minimum": "0.5"},
}


def check_settled(operated: Operated, status: EvalRunStatus) -> None:
    assert status.verdict is Verdict.INCONCLUSIVE, status.summary  # one cell is too few for an interval
    assert status.cells.graded == status.cells.total == 3
    assert Counter(record.key.cell for record in operated.gateway.ended).most_common(1)[0][1] == 1
    assert not any(operated.api.every(kind) for kind in (POD, JOB, DEPLOYMENT))


async def check_second_pass_empty(operated: Operated) -> None:
    before = len(operated.api.requests)
    report = await operated.make_pass()
    assert report.finished
    assert {request.method for request in operated.api.requests[before:]} == {"GET"}


async def count_effects() -> int:
    operated = operate(suite=SMALL)
    check_settled(operated, await operated.drive())
    return operated.api.doom.effects


async def test_killed_after_every_single_effect() -> None:
    """S18, P3, P29: between every two actions of every plan in every phase, another operator goes on."""
    effects = await count_effects()
    assert effects > 30
    for at in range(1, effects + 1):
        operated = operate(suite=SMALL)
        operated.api.doom.at = at
        status = await operated.drive()
        check_settled(operated, status)
        await check_second_pass_empty(operated)


async def test_a_new_operator_for_every_pass() -> None:
    """P3: nothing is remembered from one pass to the next that isn't read again."""
    operated = operate(suite=SMALL)
    status = EvalRunStatus()
    for _ in range(100):
        report = await operated.make_pass()
        await operated.kill()
        status = operated.status
        if report.finished:
            break
        operated.pods.turn()
        operated.api.pass_time(1)
    check_settled(operated, status)


@pytest.mark.parametrize("code", [500, 503, 429, 409])
async def test_every_third_request_is_refused(code: int) -> None:
    """P3: the API server is overloaded, or somebody else was faster."""
    operated = operate(suite=SMALL)
    count = 0

    def refuse(method: str, _path: str) -> int | None:
        nonlocal count
        count += 1
        return code if count % 3 == 0 and (code != 409 or method == "PATCH") else None

    operated.api.fault = refuse
    status = await operated.drive()
    operated.api.fault = lambda _method, _path: None
    check_settled(operated, status)
    await check_second_pass_empty(operated)


async def test_every_fourth_effect_is_done_and_not_told() -> None:
    """P3: a connection that breaks after the API server has done what it was asked for."""
    operated = operate(suite=SMALL)
    count = 0

    def lose(method: str, _path: str) -> int | None:
        nonlocal count
        count += method != "GET"
        return 500 if method != "GET" and count % 4 == 0 else None

    operated.api.lost = lose
    status = await operated.drive()
    check_settled(operated, status)
