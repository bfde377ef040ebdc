"""The filter of system calls, run by a small interpreter of its instructions."""

from __future__ import annotations

import struct

import pytest

from proctor.adapters.sandbox.seccomp import ARCHITECTURES, build_filter
from proctor.errors import Terminal

_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


def _decide(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    program = build_filter(machine)
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    words = [*arguments, *[0] * (6 - len(arguments))]
    seen = struct.pack("=iIQ6Q", number, ARCHITECTURES[machine].audit if audit is None else audit, 0, *words)
    accumulator, at = 0, 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", seen, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += then if accumulator == value else otherwise
            case 0x35:
                at += then if accumulator >= value else otherwise
            case 0x45:
                at += then if accumulator & value else otherwise
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(params=list(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_s5_what_is_refused_always(machine: str) -> None:
    """S5: listed calls fail; those whose absence programs know how to handle seem absent."""
    calls = ARCHITECTURES[machine].calls
    for name in ("ptrace", "bpf", "keyctl", "userfaultfd", "mount", "unshare", "setns", "perf_event_open", "chroot"):
        assert _decide(machine, calls[name]) == _EPERM, name
    for name in ("clone3", "io_uring_setup", "memfd_create", "shmget", "vmsplice", "io_setup", "inotify_init1"):
        assert _decide(machine, calls[name]) == _ENOSYS, name


def test_s5_other_calls_pass(machine: str) -> None:
    """S5: what programs are made of: openat2, close_range, epoll_pwait2, futex_waitv."""
    for number in (437, 436, 441, 449, 469):
        assert _decide(machine, number) == _ALLOW, number


def test_s5_calls_of_kernels_to_come_seem_absent(machine: str) -> None:
    """S5: nobody has looked at them yet, and every program runs on a kernel that lacks them."""
    for number in (470, 500, 1_000):
        assert _decide(machine, number) == _ENOSYS, number


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(0x22, _ALLOW), (0x01, _ALLOW), (0x21, _EPERM), (0x23, _EPERM), (0x4021, _EPERM), (0x4022, _ALLOW)],
)
def test_s23_memory_that_no_sum_has_is_refused(machine: str, flags: int, expected: int) -> None:
    """S23: shared and of no file: its pages stay when those who touched them let go."""
    assert _decide(machine, ARCHITECTURES[machine].calls["mmap"], 0, 4096, 3, flags) == expected


@pytest.mark.parametrize(
    ("level", "option", "expected"), [(1, 7, 0x00050000), (1, 8, 0x00050000), (1, 2, _ALLOW), (6, 7, _ALLOW)]
)
def test_s23_buffers_stay_as_they_are(*, machine: str, level: int, option: int, expected: int) -> None:
    """S23: what waits in sockets is nobody's memory: asking for more of it seems to work, and changes nothing."""
    assert _decide(machine, ARCHITECTURES[machine].calls["setsockopt"], 3, level, option) == expected


def test_s4_clone_makes_processes_and_threads_but_no_namespaces(machine: str) -> None:
    """S4: the flags decide."""
    clone = ARCHITECTURES[machine].calls["clone"]
    assert _decide(machine, clone, 17) == _ALLOW
    assert _decide(machine, clone, 0x3D0F00) == _ALLOW  # a thread
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert _decide(machine, clone, bit | 17) == _EPERM, hex(bit)


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "expected"),
    [
        (1, 1, 0, _ALLOW),
        (1, 5, 0, _ALLOW),
        (2, 1, 0, _ALLOW),
        (2, 2 | 0o2004000, 17, _ALLOW),
        (10, 1 | 0o2000000, 6, _ALLOW),
        (2, 1, 132, _EPERM),
        (2, 1, 262, _EPERM),
        (10, 2, 115, _EPERM),
        (16, 3, 0, _ALLOW),
        (16, 3, 9, _EPERM),
        (2, 3, 1, _EPERM),
        (10, 3, 58, _EPERM),
        (2, 10, 0, _EPERM),
        (17, 3, 0, _EPERM),
        (38, 5, 0, _EPERM),
        (40, 1, 0, _EPERM),
    ],
)
def test_s4_sockets_by_family_and_type(*, machine: str, family: int, kind: int, protocol: int, expected: int) -> None:
    """S4: no raw, packet, crypto or virtual machine sockets."""
    assert _decide(machine, ARCHITECTURES[machine].calls["socket"], family, kind, protocol) == expected


def test_s5_terminals_and_personalities(machine: str) -> None:
    """S5: nobody types on a terminal for somebody else; nobody turns address randomisation off."""
    calls = ARCHITECTURES[machine].calls
    assert _decide(machine, calls["ioctl"], 0, 0x5412) == _EPERM
    assert _decide(machine, calls["ioctl"], 0, 0x5401) == _ALLOW
    assert _decide(machine, calls["personality"], 0xFFFFFFFF) == _ALLOW
    assert _decide(machine, calls["personality"], 0x0040000) == _EPERM


def test_s5_other_architectures_are_killed() -> None:
    """S5: 32-bit calls have other numbers: none may pass under a 64-bit one's name."""
    assert _decide("x86_64", 0, audit=0x40000003) == _KILL
    assert _decide("x86_64", 0x40000000 + 101) == _KILL
    assert _decide("aarch64", 0, audit=0x40000028) == _KILL


def test_a_machine_without_tables_is_refused() -> None:
    """No filter is no sandbox."""
    with pytest.raises(Terminal, match="riscv64"):
        build_filter("riscv64")
