"""A sandbox that takes more than its share: memory, scratch, processes, time. Its neighbour ends well meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.scope import Images
from support.live_run import Field, open_field

pytestmark = pytest.mark.cluster

_STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
while True: os.write(1, b"still here\\n"); time.sleep(0.2)
"""
_KINDS = ("requests", "limits")
_GREEDY = "held = []\nwhile True: held.append(b'x' * 1_000_000)"


@pytest.fixture(scope="module")
def field(kubectl: Kubectl, images: Images) -> Iterator[Field]:
    """All of them at once, beside one that behaves."""
    limits = {"cpu": "200m", "memory": "128Mi", "ephemeral-storage": "32Mi"}
    with open_field(kubectl, images, sandbox={"resources": {"limits": limits}}) as found:
        gateway = found.prepare()
        bomb = {"fork_until_refused": {"most": 3000, "seconds": 20}}
        brim = {"fill_scratch": {"folders": ["/tmp", "/scratch"], "most": 200_000_000}}
        stubborn = found.cell(4, ("python3", "-c", _STUBBORN), gateway=gateway, env={})
        stubborn["spec"]["activeDeadlineSeconds"] = 20
        bomber = found.attacker(1, bomb, gateway=gateway)
        # Enough memory for all that may be forked: it is processes that it has to run out of.
        bomber["spec"]["containers"][0]["resources"] = {kind: limits | {"memory": "512Mi"} for kind in _KINDS}
        found.create(
            bomber,
            found.attacker(2, brim, gateway=gateway),
            found.cell(3, ("python3", "-c", _GREEDY), gateway=gateway, env={}),
            stubborn,
            found.attacker(5, {"open_sockets": {}}, gateway=gateway),
        )
        yield found


def _name(field: Field, number: int) -> str:
    return field.run.names.attempt(f"{number:020x}")


def _ended(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["status"]["containerStatuses"][0]["state"]["terminated"])


def test_s23_more_memory_than_its_own(field: Field) -> None:
    """S23: the kernel ends it, and its status says why."""
    assert _ended(field.finished(_name(field, 3)))["reason"] == "OOMKilled"


def test_s23_more_scratch_than_its_own(field: Field) -> None:
    """S23: no space is left at the volume's limit, at once; the program is told."""
    said = field.report(_name(field, 2))["fill_scratch"]
    assert said["/tmp"]["reason"] == "ENOSPC"
    assert 0 < said["/tmp"]["written"] <= 64 * 1024 * 1024


def test_s24_a_fork_bomb_is_refused(field: Field) -> None:
    """S24: the node's limit of processes per pod holds."""
    said = field.report(_name(field, 1))["fork_until_refused"]
    assert said["reason"] == "EAGAIN"
    assert 1 < said["count"] < 3000


def test_s25_a_deadline_with_term_ignored(field: Field) -> None:
    """S25: killed by the pod's own deadline and its grace, though it ignores every signal that can be ignored."""
    pod = field.finished(_name(field, 4))
    assert pod["status"]["reason"] == "DeadlineExceeded"


def test_s24_others_end_well(field: Field) -> None:
    """S24: a cell beside all of these does what it is told."""
    assert field.report(_name(field, 5))["open_sockets"]["tcp"] == "ok"
