"""Programs that prepare a server under test for a dataset, on a cluster."""

from __future__ import annotations

import json
from typing import Any

from proctor.adapters.kube.kinds import CONFIG_MAP, JOB
from proctor.api.run import Verdict
from support.operated import DIGEST, operate

HOOKED: dict[str, Any] = {
    "servers": [
        {
            "name": "left",
            "http": {"image": f"team/left{DIGEST}", "port": 8000, "path": "/mcp"},
            "provision": {"image": f"team/hook{DIGEST}", "command": ["make-sources"]},
            "deniedTools": [],
        }
    ],
    "replicates": 1,
    "gate": {"enforcement": "Audit", "minimum": "0.5"},
}


async def test_a_hook_stands_before_the_gateway_which_is_told_where() -> None:
    """Children: `provision` as a Job; one per server and dataset, also when the operator dies between passes."""
    operated = operate(suite=HOOKED)
    for _ in range(6):
        await operated.make_pass()
        await operated.kill()
        operated.pods.turn()
        operated.api.pass_time(1)
    roles = [job["metadata"]["labels"]["proctor.dev/role"] for job in operated.api.every(JOB)]
    assert roles.count("provision") == 1
    (children,) = [one for one in operated.api.every(CONFIG_MAP) if "children.json" in one.get("data", {})]
    (hook,) = json.loads(children["data"]["children.json"])["hooks"]
    assert (hook["server"], hook["port"]) == ("left", 8080)
    status = await operated.drive()
    assert status.cells.graded == status.cells.total == 3


async def test_a_hook_that_fails_ends_the_run_with_its_last_words() -> None:
    """Children: what a server needs can't be made, so nothing is judged: Error, and why."""
    operated = operate(suite=HOOKED)
    operated.pods.hook_fails = "no such account"
    status = await operated.drive()
    assert (status.verdict, status.reason) == (Verdict.ERROR, "ProvisionFailed")
    assert "no such account" in status.summary
    assert operated.started == set()
