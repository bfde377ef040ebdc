"""What an attacker finds inside a sandbox's pod: no rights, no names, nothing to write to, no door but one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from proctor.manifests.scope import Images
from proctor.settings import shipped_scenarios_dir
from support.kube_objects import STDIO
from support.live_run import Field, open_field

pytestmark = pytest.mark.cluster

_SECRETS = ["operator-token", "dataset-password", "store-password", "6b6b6b6b6b"]
_DENIED = {"EPERM", "EACCES"}
_READ_ONLY = {"EROFS", "EACCES", "EPERM", "ENOENT"}


@pytest.fixture(scope="module")
def field(kubectl: Kubectl, images: Images) -> Iterator[Field]:
    # A name that no file has by chance.
    with open_field(kubectl, images, servers=[STDIO | {"name": "qwertz-server"}]) as found:
        yield found


@pytest.fixture(scope="module")
def report(field: Field) -> dict[str, Any]:
    """What one attacker found who tried everything at once."""
    gateway = field.prepare()
    scenarios = [path.name for path in shipped_scenarios_dir().iterdir() if path.is_dir()]
    names = [*scenarios, field.run.suite.servers[0].name, field.run.namespace, "EvalRun", "evalsuite"]
    orders = {
        "write_everywhere": {
            "files": ["/usr/bin/x", "/etc/passwd", "/x", "/opt/agent/proctor_agent/__main__.py", "/tmp/control"],
            "folders": ["/"],
            "depth": 4,
        },
        "open_sockets": {},
        "call_kernel": {},
        "write_to_kernel": {"files": ["/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_forward"]},
        "look_around": {
            "words": [*_SECRETS, *names],
            "folders": ["/opt", "/run", "/etc", "/tmp", "/scratch", "/home", "/root", "/srv", "/mnt", "/var/run"],
            "skip": ["/etc/ssl", "/etc/alternatives"],
            "paths": ["/var/run/secrets", "/run/secrets", "/etc/proctor", "/dev/mem", "/dev/kmsg", "/host"],
        },
        "gain_rights": {},
    }
    field.create(field.attacker(1, orders, gateway=gateway))
    found: dict[str, Any] = field.report(field.run.names.attempt(f"{1:020x}"))
    return found


def test_s3_only_scratch_can_be_written(report: dict[str, Any]) -> None:
    """S3: the root is read-only; the control is a file in scratch."""
    said = report["write_everywhere"]
    assert said["/tmp/control"] == "ok"
    assert {said[path] for path in said if path not in {"/tmp/control", "written"}} <= _READ_ONLY
    assert set(said["written"].split()) <= {"/tmp", "/scratch", "/scratch/tmp", "/dev/shm", "/dev/mqueue", "/dev"}
    assert {"/tmp", "/scratch"} <= set(said["written"].split())


def test_s4_no_rights(report: dict[str, Any]) -> None:
    """S4: nobody's user, no capability, no way to more; the control is a TCP socket."""
    rights, sockets = report["gain_rights"], report["open_sockets"]
    assert (rights["uid"], rights["gid"], rights["groups"]) == (10001, 10001, [])
    assert (rights["caps"], rights["no_new_privs"]) == (0, "1")
    tried = ("setuid", "mount", "chroot", "sethostname", "clone into a namespace", "unshare_user")
    assert {name: rights[name] for name in tried if rights[name] not in _DENIED} == {}
    assert sockets["tcp"] == "ok"
    assert {sockets["raw"], sockets["packet"]} <= _DENIED


def test_s5_the_kernel_is_filtered(report: dict[str, Any]) -> None:
    """S5: the runtime's own filter; the control is a harmless call. Switches of the machine can't be turned."""
    said = report["call_kernel"]
    assert (said["getpid"], said["seccomp"]) == ("ok", "2")
    tried = ("keyctl", "add_key", "bpf", "userfaultfd", "perf_event_open", "setns", "open_by_handle_at", "fsopen")
    assert {name: said[name] for name in tried if said[name] not in {*_DENIED, "ENOSYS"}} == {}
    assert set(report["write_to_kernel"].values()) <= _READ_ONLY


def test_s7_s8_no_token_and_no_addresses(report: dict[str, Any]) -> None:
    """S7, S8: no account's token; of Services only the API server's address, to which no way leads."""
    said = report["look_around"]
    assert said["paths"] == []
    services = {name for name in said["environment"] if "_SERVICE_" in name or "_PORT" in name}
    assert {name for name in services if not name.startswith("KUBERNETES_")} == set()


def test_s15_s20_nothing_of_the_run_is_in_sight(report: dict[str, Any]) -> None:
    """S15, S17, S20: no key of the run, no name of scenario, server or namespace, in any file or process."""
    said = report["look_around"]
    assert said["has read"]
    assert said["hits"] == []
    assert set(said["processes"]) == {"python3"}
