"""A namespace that can't take what a run needs says so before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.adapters.kube.kinds import CONFIG_MAP, JOB, POD
from proctor.api.run import Verdict
from support.memory_api import Json
from support.operated import Operated, operate

SMALL: dict[str, Any] = {
    "servers": [{"name": "left", "stdio": {"command": ["left"]}, "deniedTools": []}],
    "replicates": 1,
    "gate": {"enforcement": "Audit", "minimum": "0.5"},
}


def put_quota(operated: Operated, hard: Json, *, used: Json | None = None, **spec: Any) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "team"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    operated.api.put(quota)


def nothing_was_made(operated: Operated) -> bool:
    return not any(operated.api.every(kind) for kind in (POD, JOB, CONFIG_MAP))


@pytest.mark.parametrize("hard", [{"pods": "2"}, {"memory": "1Gi"}, {"limits.cpu": "500m"}, {"count/pods": "1"}])
async def test_a_quota_that_never_suffices_ends_the_run_at_once(hard: Json) -> None:
    """P3, P43: instead of pods that never come: Error, with the quota's name, what it allows and what is needed."""
    operated = operate(suite=SMALL)
    put_quota(operated, hard)
    status = await operated.drive()
    ((name, text),) = hard.items()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "QuotaTooSmall")
    assert f"ResourceQuota small allows {name} {text}" in status.summary
    assert "lower parallelism" in status.summary
    assert nothing_was_made(operated)


async def test_a_run_waits_for_room_that_others_have() -> None:
    """P3: as long as it may take, and then it begins."""
    operated = operate(suite=SMALL)
    put_quota(operated, {"pods": "20"}, used={"pods": "19"})
    await operated.make_pass()
    assert (operated.status.verdict, operated.status.reason) == (Verdict.PENDING, "QuotaExceeded")
    assert "pods 20, of which 19 is in use" in operated.status.summary
    assert nothing_was_made(operated)
    operated.api.objects["resourcequotas", "team", "small"]["status"]["used"]["pods"] = "0"
    status = await operated.drive()
    assert status.cells.graded == status.cells.total


async def test_a_wait_for_room_has_an_end() -> None:
    """P3, P4: nobody waits for ever without a verdict."""
    operated = operate(suite=SMALL)
    put_quota(operated, {"pods": "20"}, used={"pods": "19"})
    await operated.make_pass()
    operated.api.pass_time(301)
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "QuotaExceeded")


async def test_a_quota_for_other_pods_is_nobodys_business() -> None:
    """P3: one that has a scope counts some pods only; nobody is refused by what does not hold for them."""
    operated = operate(suite=SMALL)
    put_quota(operated, {"pods": "0"}, scopes=["BestEffort"])
    status = await operated.drive()
    assert status.cells.graded == status.cells.total


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        ('pods "x" is forbidden: pod rejected: RuntimeClass "gvisor" not found', "RuntimeClassMissing"),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', "PodsRefused"),
    ],
)
async def test_what_refuses_a_pod_is_heard_before_the_run_begins(refusal: str, reason: str) -> None:
    """S26, P43: a RuntimeClass that is missing is an Error in Preflight, not a pod that is pending."""
    operated = operate(suite={**SMALL, "sandbox": {"runtimeClassName": "gvisor"}})
    operated.api.refuse = lambda body: refusal if body["kind"] == "Pod" and "runtimeClassName" in body["spec"] else ""
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, reason)
    assert refusal in status.summary
    assert nothing_was_made(operated)
