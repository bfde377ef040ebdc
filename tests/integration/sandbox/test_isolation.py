"""The rows of the sandbox's list that need no cluster, each tried as an agent and as an MCP server under test."""

from __future__ import annotations

import asyncio
import os
import sys
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
    short_folder,
)

pytestmark = needs_sandbox

_INTERPRETER = Path(sys.executable).resolve().name
_PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
async def socket() -> Any:
    with short_folder() as folder:
        async with open_socket(folder) as path:
            yield path


@pytest.mark.parametrize("role", ROLES)
async def test_s3_nothing_but_scratch_can_be_written(role: Role, socket: Path) -> None:
    """S3: a file system that is read-only but for the scratch places, each with its limit."""
    files = ["/usr/bin/x", "/etc/passwd", "/opt/agent/proctor_agent/__main__.py", "/opt/forward.py", "/x", "/dev/x"]
    order = {"files": [*files, sys.executable, "/tmp/control"], "folders": ["/"], "depth": 4}
    report = (await attack(role, {"write_everywhere": order}, socket))["write_everywhere"]
    assert report["files"].pop("/tmp/control") == "ok"
    assert set(report["files"].values()) <= {"EROFS", "ENOENT", "EACCES"}, report["files"]
    assert report["files"]["/usr/bin/x"] == "EROFS"
    assert report["written"] == ["/dev/shm", "/tmp"]


@pytest.mark.parametrize("role", ROLES)
async def test_s4_no_rights_and_no_way_to_them(role: Role, socket: Path) -> None:
    """S4: nobody, without capabilities, setuid programs, namespaces, mounts and raw sockets."""
    report = (await attack(role, {"gain_rights": {}}, socket))["gain_rights"]
    assert (report["uid"], report["gid"], report["groups"]) == (10001, 10001, [])
    assert set(report["caps"].values()) == {"0" * 16}
    assert report["no_new_privs"] == "1"
    assert report["setuid"] in {"EPERM", "EINVAL"}  # EINVAL: there is no such user in here
    denied = ("unshare_user", "mount", "raw_socket", "packet_socket", "chroot", "sethostname")
    assert {name: report[name] for name in denied} == dict.fromkeys(denied, "EPERM")
    assert report["tcp_socket"] == "ok"


async def test_s4_the_probe_works_outside() -> None:
    """S4, positive control: on this machine the same probe gets what it asks for."""
    report = (await attack_outside({"gain_rights": {}}))["gain_rights"]
    assert report["unshare_user"] == "ok"
    assert report["caps"]["CapBnd"] != "0" * 16
    if os.geteuid() == 0:
        assert report["raw_socket"] == report["packet_socket"] == "ok"
        assert report["mount"] == report["chroot"] == "ENOENT"


@pytest.mark.parametrize("role", ROLES)
async def test_s5_system_calls_are_filtered(role: Role, socket: Path) -> None:
    """S5: a filter is on, and refuses what attacks on kernels are made of."""
    report = (await attack(role, {"call_kernel": {}}, socket))["call_kernel"]
    assert report["seccomp"] == "2"
    absent = {"io_uring_setup", "memfd_create", "clone3", "shmget"}
    assert {name for name, said in report["calls"].items() if said == "ENOSYS"} == absent
    assert {said for name, said in report["calls"].items() if name not in absent} == {"EPERM"}
    assert report["getpid"] == "ok"


async def test_s5_the_probe_works_outside() -> None:
    """S5, positive control: outside the kernel answers these calls in its own way."""
    report = (await attack_outside({"call_kernel": {}}))["call_kernel"]
    assert report["seccomp"] == "0"
    assert [report["calls"][name] for name in ("keyctl", "memfd_create")] == ["ok", "ok"]
    assert [report["calls"][name] for name in ("setns", "ptrace", "shmget")] == ["EBADF", "ESRCH", "EINVAL"]


@pytest.mark.parametrize("role", ROLES)
async def test_s5_s6_other_processes_are_out_of_reach(role: Role, socket: Path) -> None:
    """S5, S6: no process of this machine can be seen or signalled; users are not this machine's."""
    pids = [os.getpid(), os.getppid()]
    orders = {"signal_others": {"pids": [*pids, 1]}, "look_around": _looking(role)}
    report = await attack(role, orders, socket)
    assert {report["signal_others"][str(pid)] for pid in pids} <= {"ESRCH"}
    assert report["look_around"]["processes"] <= 3
    assert set(report["look_around"]["process_names"]) <= {
        "bwrap",
        "python",
        "python3",
        _INTERPRETER,
    }
    assert report["look_around"]["uid_map"][:3] != ["0", "0", "4294967295"]
    outside = await attack_outside({"signal_others": {"pids": pids}})
    assert outside["signal_others"][str(pids[0])] == "ok"


def _looking(role: Role, words: tuple[str, ...] = ()) -> dict[str, Any]:
    folders = ["/opt", "/run", "/etc", "/tmp", "/home", "/root"] if role is Role.AGENT else ["/opt", "/run", "/tmp"]
    if role is Role.SERVER:
        folders.append(str(Path(sys.prefix).resolve() / "lib/python3.11/site-packages/proctor"))
        folders += [str(path) for path in Path(sys.prefix, "lib/python3.11/site-packages").glob("*proctor*")]
    paths = [
        "/var/run/secrets",
        "/home",
        "/proc/kcore",
        str(Path.home() / ".ssh"),
        str(_PROJECT / "operator"),
        str(_PROJECT / "scenarios"),
        str(shipped_scenarios_dir()),
        str(_PROJECT / ".git"),
    ]
    # The interpreter is the machine's, and large.
    return {"words": list(words), "folders": folders, "paths": paths, "skip": [str(Path(sys.base_prefix).resolve())]}


@pytest.mark.parametrize("role", ROLES)
async def test_s7_s8_s15_s20_nothing_of_ours_is_in_reach(
    role: Role, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S7, S8, S15, S17, S20: no key, no other environment, no scenario, no source, no descriptor, no socket but one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-provider")
    scenarios = tuple(path.name for path in shipped_scenarios_dir().iterdir() if path.is_dir())
    words = ("sk-of-the-provider", "KUBERNETES_SERVICE_HOST", *scenarios)
    order = _looking(role, words)
    report = (await attack(role, {"look_around": order}, socket))["look_around"]
    # The attacker's own orders hold the words: those it finds in itself.
    own = [hit for hit in report["hits"] if "/environ: " in hit and "/proc/1/" not in hit]
    assert len(own) <= 2 * len(words)
    assert [hit for hit in report["hits"] if hit not in own] == []
    assert not any(seen for path, seen in report["paths"].items() if path != "/proc/kcore"), report["paths"]
    assert report["sockets"] == []
    assert [name for name in report["descriptors"] if not name.startswith("/proc")] == []
    allowed = {"HOME", "TMPDIR", "LANG", "PWD", "ATTACK", "PATH", "PROCTOR_GATEWAY", "PROCTOR_TOKEN", "LC_CTYPE"}
    assert set(report["environment"]) <= allowed
    assert report["read"] > 5


async def test_s15_the_probe_finds_the_key_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """S15, positive control: outside, the same search finds a key in the environment of a process."""
    monkeypatch.setenv("ATTACK", "{}")
    order = {"pids": ["self"], "words": ["sk-outside"], "folders": [], "paths": [str(_PROJECT / "operator")]}
    report = (await attack_outside({"look_around": order}))["look_around"]
    assert any(hit.endswith("/environ: sk-outside") for hit in report["hits"])
    assert report["paths"] == {str(_PROJECT / "operator"): True}


@pytest.mark.parametrize("role", ROLES)
async def test_s9_s10_s11_only_one_way_out(role: Role, socket: Path) -> None:
    """S9, S10, S11: no address, no name server, no socket of this machine answers; the one that was given does."""
    greeter = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = greeter.sockets[0].getsockname()[1]
    other = socket.with_name("other.sock")
    async with greeter, open_socket(socket.parent, other.name):
        given = "/run/gateway.sock" if role is Role.AGENT else "/run/dataset.sock"
        order = {
            "tcp": [["127.0.0.1", port], ["169.254.169.254", 80], ["8.8.8.8", 53], ["1.1.1.1", 443], ["::1", port]],
            "udp": [["8.8.8.8", 53], ["127.0.0.53", 53]],
            "unix": [given, str(socket), str(other), "@abstract-of-the-test"],
            "names": ["example.com", "localhost.attacker.tld"],
        }
        report = (await attack(role, {"dial": order}, socket))["dial"]
        outside = await attack_outside({"dial": {"tcp": [["127.0.0.1", port]], "unix": [str(socket), str(other)]}})
    assert set(report["tcp"].values()) <= {"ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL"}, report["tcp"]
    assert "ok" not in report["udp"].values()
    assert report["unix"].pop(given) == "ok"
    assert "ok" not in report["unix"].values()
    assert "ok" not in report["names"].values()
    assert report["interfaces"] == ["lo"]
    assert set(outside["dial"]["tcp"].values()) | set(outside["dial"]["unix"].values()) == {"ok"}


async def test_s10_a_server_reaches_its_engine_on_its_own_loopback(socket: Path) -> None:
    """S10: what a server reaches at 127.0.0.1:8123 is its dataset's engine; an agent reaches nothing there."""
    order = {"dial": {"tcp": [["127.0.0.1", 8123]]}}
    server = await attack(Role.SERVER, order, socket)
    agent = await attack(Role.AGENT, order, socket)
    assert server["dial"]["tcp"] == {"127.0.0.1:8123": "ok"}
    assert agent["dial"]["tcp"] == {"127.0.0.1:8123": "ECONNREFUSED"}


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
