"""The rows of the sandbox's list that need no cluster: each attack is made by agents and by an MCP server under test.

An attack is a function of `support/attacks.py`, which tries several things and says of each what came of it. It fails
inside; outside, as the positive control, the same program gets what it tries, or at least an answer of its own from the
kernel. Outside it asks only for what changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.sandbox.starting import Streams, start
from proctor.settings import shipped_scenarios_dir
from support.sandbox import (
    ROLES,
    TOKEN,
    Role,
    attack,
    attack_outside,
    build_spec,
    needs_sandbox,
    open_socket,
)

pytestmark = needs_sandbox

_PROJECT = Path(__file__).resolve().parents[3]
_IS_ROOT = os.geteuid() == 0
_PROVIDER_KEY = "sk-of-the-provider"

Report = Mapping[str, Any]
Expected = Mapping[str, object]
"""What was tried → what has to come of it; of a set, one of it."""

_CLOSED = frozenset({"ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL"})
_READ_ONLY = frozenset({"EACCES", "EROFS", "EPERM", "ENOENT"})
_NOT_THERE = frozenset({"ENOENT", "EACCES", "EROFS", "ENOTDIR"})


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an attack happens.

    Attributes:
        role: who attacks; None outside.
        socket: this machine's end of the attacker's one way out.
        port: of this machine's loopback, where somebody answers.
    """

    role: Role | None
    socket: Path
    port: int

    @property
    def other_socket(self) -> Path:
        """Another cell's socket, in the same folder."""
        return self.socket.with_name("other.sock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A row of the list, or several.

    Attributes:
        program: the function of the attacker.
        order: what it is told.
        inside: what has to come of it in a sandbox.
        outside: what has to come of it outside.
        outside_as_root: the same, where this machine's root is outside.
    """

    program: str
    order: Callable[[Scene], dict[str, Any]] = lambda _: {}
    inside: Callable[[Scene], Expected]
    outside: Expected
    outside_as_root: Expected = field(default_factory=dict)


def _look(scene: Scene) -> dict[str, Any]:
    """Everything that is not the machine's, and in a server's environment what is Proctor's."""
    site = Path(sys.prefix, "lib/python3.11/site-packages").resolve()
    own = [str(site / "proctor"), *map(str, site.glob("*proctor*")), str(_PROJECT / ".venv/npm/package.json")]
    places = {
        Role.AGENT: ["/opt", "/run", "/etc", "/tmp", "/home", "/root", "/var", "/srv", "/mnt"],
        Role.OWN_AGENT: ["/opt", "/run", "/etc", "/tmp", "/home", "/var", "/srv", *own],
        Role.SERVER: ["/opt", "/run", "/etc", "/tmp", "/home", "/var", "/srv", *own],
        None: [],
    }
    scenarios = [path.name for path in shipped_scenarios_dir().iterdir() if path.is_dir()]
    return {
        "words": [_PROVIDER_KEY, "KUBERNETES_SERVICE_HOST", "PROCTOR_DATA_DIR", "sk-outside", *scenarios],
        "folders": places[scene.role],
        # The interpreter is the machine's, and large.
        "skip": [str(Path(sys.base_prefix).resolve()), "/etc/ssl", "/etc/alternatives"],
        "pids": ["self"] if scene.role is None else [],
        "paths": [
            *("/var/run/secrets", "/proc/kcore", "/sys", "/etc/passwd", "/etc/shadow", "/etc/ssl/private", "/dev/mem"),
            *(str(_PROJECT / name) for name in ("operator/proctor", "scenarios", "tests", ".git", "pyproject.toml")),
            *(str(path) for path in (shipped_scenarios_dir(), Path.home() / ".ssh", scene.socket.parent)),
        ],
    }


def _processes(scene: Scene) -> dict[str, Any]:
    return {"pids": {"starter": os.getpid(), "its parent": os.getppid()} | ({"itself": 2} if scene.role else {})}


_FILES = ["/usr/bin/x", "/etc/passwd", "/x", "/dev/x", "/opt/forward.py", "/opt/agent/proctor_agent/__main__.py"]
_SWITCHES = [
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory"),
    *("/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/pid_max", "/proc/sys/fs/aio-max-nr"),
]
_ENVIRONMENT = {
    *("HOME", "TMPDIR", "LANG", "PWD", "ATTACK", "PATH", "LC_CTYPE"),
    *("PROCTOR_GATEWAY", "PROCTOR_SOCKET", "PROCTOR_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}
_ABSENT = ("io_uring_setup", "io_setup", "memfd_create", "clone3", "shmget", "vmsplice", "inotify_init1", "to_come")
_REFUSED = (
    *("keyctl", "add_key", "ptrace", "bpf", "userfaultfd", "setns", "perf_event_open", "name_to_handle_at"),
    *("open_by_handle_at", "process_vm_readv", "pidfd_getfd", "kcmp", "syslog", "open_tree", "fsopen"),
    *("shared memory of no file", "type for somebody"),
)

ATTACKS = {
    "s3-write-anywhere": Attack(
        program="write_everywhere",
        order=lambda scene: (
            {"files": [*_FILES, sys.executable, "/tmp/control"], "folders": ["/"], "depth": 4}
            if scene.role
            else {"files": [str(scene.socket.parent / "x")], "folders": [str(scene.socket.parent)], "depth": 9}
        ),
        inside=lambda _: {
            **dict.fromkeys([*_FILES, sys.executable], _NOT_THERE),
            "/usr/bin/x": "EROFS",
            "/tmp/control": "ok",
            "written": "/dev/shm /tmp",
        },
        outside={"*": "*"},
    ),
    "s3-write-to-the-kernel": Attack(
        program="write_to_kernel",
        order=lambda _: {"files": [*_SWITCHES, "/proc/self/comm"]},
        inside=lambda _: {**dict.fromkeys(_SWITCHES, _READ_ONLY), "/proc/self/comm": "ok"},
        outside={"/proc/self/comm": "ok"},
        outside_as_root=dict.fromkeys(_SWITCHES, "ok"),
    ),
    "s4-gain-rights": Attack(
        program="gain_rights",
        inside=lambda _: {
            "uid": 10001,
            "gid": 10001,
            "groups": [],
            "caps": 0,
            "no_new_privs": "1",
            "setuid": {"EPERM", "EINVAL"},  # EINVAL: there is no such user in here
            **dict.fromkeys(["unshare_user", "clone into a namespace", "mount", "chroot", "sethostname"], "EPERM"),
        },
        outside={"unshare_user": "ok", "clone into a namespace": "ok", "uid": os.getuid()},
        outside_as_root={"mount": "ENOENT", "chroot": "ENOENT", "setuid": "ok"},
    ),
    "s4-s10-open-sockets": Attack(
        program="open_sockets",
        inside=lambda _: {
            **dict.fromkeys(("raw", "packet", "vsock", "kernel crypto", "netlink audit", "netlink netfilter"), "EPERM"),
            **dict.fromkeys(("mptcp", "sctp", "bluetooth"), "EPERM"),
            "tcp": "ok",
        },
        outside={"tcp": "ok", "netlink netfilter": {"ok", "EPROTONOSUPPORT"}},
        outside_as_root={"raw": "ok", "packet": "ok"},
    ),
    "s5-call-the-kernel": Attack(
        program="call_kernel",
        inside=lambda _: {
            **dict.fromkeys(_ABSENT, "ENOSYS"),
            **dict.fromkeys(_REFUSED, "EPERM"),
            "map /dev/zero": "ENODEV",
            "getpid": "ok",
            "seccomp": "2",
        },
        outside={
            **dict.fromkeys(["keyctl", "memfd_create", "shared memory of no file", "map /dev/zero", "vmsplice"], "ok"),
            "setns": "EBADF",
            "ptrace": "ESRCH",
            "shmget": "EINVAL",
            "inotify_init1": {"ok", "EMFILE"},
            "pidfd_getfd": "EBADF",
            "kcmp": "ESRCH",
            "io_setup": {"EINVAL", "EFAULT"},
            "to_come": "ENOSYS",
            "seccomp": "0",
            "type for somebody": "ENOTTY",
        },
    ),
    "s5-s6-reach-other-processes": Attack(
        program="signal_others",
        order=_processes,
        inside=lambda _: {
            **dict.fromkeys(("signal starter", "signal its parent"), "ESRCH"),
            **dict.fromkeys(("read starter", "read its parent"), "ENOENT"),
            **dict.fromkeys(("signal itself", "read itself"), "ok"),
        },
        outside={"signal starter": "ok", "read starter": "ok"},
    ),
    "s6-s7-s8-s15-s17-s20-look-around": Attack(
        program="look_around",
        order=_look,
        inside=lambda _: {
            "processes": lambda names: len(names) <= 3 and "bwrap" in names,
            "users": lambda text: text.split()[::2] != ["0", "4294967295"] and text.split()[0] == "10001",
            "environment": lambda names: set(names) <= _ENVIRONMENT,
            "paths": [],
            "sockets": [],
            "descriptors": [],
            "hits": [],
            "has read": True,
        },
        outside={"hits": ["/proc/self/environ: sk-outside"], "paths": lambda paths: len(paths) >= 4},
    ),
    "s9-s10-s11-dial-out": Attack(
        program="dial",
        order=lambda scene: {
            "tcp": [["127.0.0.1", scene.port]]
            + ([["169.254.169.254", 80], ["8.8.8.8", 53], ["1.1.1.1", 443], ["::1", scene.port]] if scene.role else []),
            "udp": [["8.8.8.8", 53], ["127.0.0.53", 53]] if scene.role else [],
            "unix": [*([scene.role.way_out] if scene.role else []), str(scene.socket), str(scene.other_socket)],
            "names": ["example.com", "localhost.attacker.tld", "s3cret.8.8.8.8.nip.io"] if scene.role else [],
        },
        inside=lambda scene: {
            **{f"tcp {host}": _CLOSED for host in (f"127.0.0.1:{scene.port}", "169.254.169.254:80", "8.8.8.8:53")},
            **{f"tcp {host}": _CLOSED for host in ("1.1.1.1:443", f"::1:{scene.port}")},
            **dict.fromkeys(("udp 8.8.8.8:53", "udp 127.0.0.53:53"), _CLOSED),
            **dict.fromkeys((f"unix {scene.socket}", f"unix {scene.other_socket}"), _NOT_THERE),
            **dict.fromkeys([f"name {name}" for name in ("example.com", "localhost.attacker.tld")], _CLOSED),
            "name s3cret.8.8.8.8.nip.io": _CLOSED,
            f"unix {scene.role.way_out if scene.role else ''}": "ok",
            "interfaces": "lo",
        },
        outside={"*": "*"},
    ),
}
"""Row of the list → its attack; the rows of one machine's resources are in `test_limits.py`."""


def _check(report: Report, expected: Expected) -> None:
    """Compare what came of an attack with what had to come of it."""
    wrong = {what: report[what] for what, wanted in expected.items() if what != "*" and not _is(report[what], wanted)}
    assert wrong == {}
    if "*" in expected:
        assert "ok" in report.values()
        assert set(map(str, report.values())).isdisjoint(_CLOSED | _NOT_THERE)


def _is(found: object, wanted: object) -> bool:
    if callable(wanted):
        return bool(wanted(found))
    return found in wanted if isinstance(wanted, set | frozenset) else found == wanted


@pytest.fixture
async def scene(socket: Path) -> Any:
    greeter = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with greeter, open_socket(socket.parent, "other.sock"):
        yield Scene(None, socket, greeter.sockets[0].getsockname()[1])


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_fails_inside(name: str, role: Role, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3, S4, S5, S6, S7, S8, S9, S10, S11, S15, S17, S20: nothing comes of it but what is allowed."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", _PROVIDER_KEY)
    one, here = ATTACKS[name], Scene(role, scene.socket, scene.port)
    report = (await attack(role, {one.program: one.order(here)}, scene.socket))[one.program]
    expected = one.inside(here)
    assert set(report) == set(expected), "each thing that is tried has an expectation"
    _check(report, expected)


@pytest.mark.parametrize("name", ATTACKS)
async def test_the_same_attack_works_outside(name: str, scene: Scene) -> None:
    """S3, S4, S5, S6, S7, S8, S9, S10, S11, S15, S17, S20, positive control: the same program finds what is there."""
    one = ATTACKS[name]
    report = (await attack_outside({one.program: one.order(scene)}))[one.program]
    _check(report, {**one.outside, **(one.outside_as_root if _IS_ROOT else {})})


async def test_s10_a_server_reaches_its_engine_on_its_own_loopback(socket: Path) -> None:
    """S10: what a server reaches at 127.0.0.1:8123 is its dataset's engine; an agent reaches nothing there."""
    order = {"dial": {"tcp": [["127.0.0.1", 8123]]}}
    said = {role: (await attack(role, order, socket))["dial"]["tcp 127.0.0.1:8123"] for role in Role}
    assert said == {Role.SERVER: "ok", Role.AGENT: "ECONNREFUSED", Role.OWN_AGENT: "ECONNREFUSED"}


@pytest.mark.parametrize("role", ROLES)
async def test_s15_secrets_are_not_on_a_command_line(role: Role, socket: Path) -> None:
    """S15: other users of this machine can read command lines; tokens and passwords are in none."""
    code = "import sys, os; os.write(1, b'up'); sys.stdin.read()"
    spec = build_spec(role, code, socket, variables={"CLICKHOUSE_PASSWORD": "a-password"})
    pipe = asyncio.subprocess.PIPE
    started = await start(spec, Streams(pipe, pipe, pipe))
    assert started.process.stdout is not None
    try:
        await started.process.stdout.read(2)
        lines = [_read_command(pid) for pid in (started.process.pid, started.init)]
    finally:
        started.kill()
        await started.gone()
        started.close()
    assert all(b"--args" in line for line in lines)
    assert not any(secret in line for line in lines for secret in (b"a-password", TOKEN.encode()))


def _read_command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
