"""The filter of system calls: a small BPF program, built here and given to bubblewrap.

It refuses what neither an agent nor an MCP server needs and what attacks on kernels are made of: other processes'
memory, keys, BPF, namespaces, mounts, raw sockets, io_uring, modules, clocks; and what takes memory, or a share of
what the whole machine has, where no limit of a process counts it. Everything else that is known passes: a list of all
that a stranger's runtime may need would break it at the next release of that runtime.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proctor.errors import Terminal

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_FAIL = 0x00050000  # plus the error number
_IGNORE = _FAIL  # without an error number: nothing is done, and success is reported

_FIRST_UNKNOWN = 470
"""The calls that kernels will have one day were looked at by nobody; programs run on kernels without them."""

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; a time namespace can't be asked for by clone."""

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_NETLINK_ROUTE = 0
_IPPROTO_ANY, _IPPROTO_TCP, _IPPROTO_UDP = 0, 6, 17
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF = 1, 7, 8
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux. From 424 on every
# architecture has the same ones.
_COMMON = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "open_tree_attr": 467,
}
_X86_64 = {
    "mmap": 9,
    "socket": 41,
    "setsockopt": 54,
    "clone": 56,
    "ioctl": 16,
    "ptrace": 101,
    "syslog": 103,
    "personality": 135,
    "pivot_root": 155,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "clock_settime": 227,
    "mbind": 237,
    "set_mempolicy": 238,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "memfd_create": 319,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "shmget": 29,
    "shmat": 30,
    "semget": 64,
    "msgget": 68,
    "adjtimex": 159,
    "uselib": 134,
    "ustat": 136,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "_sysctl": 156,
    "create_module": 174,
    "get_kernel_syms": 177,
    "query_module": 178,
    "nfsservctl": 180,
    "io_setup": 206,
    "lookup_dcookie": 212,
    "inotify_init": 253,
    "vmsplice": 278,
    "inotify_init1": 294,
}
_AARCH64 = {
    "io_setup": 0,
    "lookup_dcookie": 18,
    "inotify_init1": 26,
    "ioctl": 29,
    "mount": 40,
    "umount2": 39,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "vmsplice": 75,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "msgget": 186,
    "semget": 190,
    "shmget": 194,
    "shmat": 196,
    "socket": 198,
    "setsockopt": 208,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "mmap": 222,
    "swapon": 224,
    "swapoff": 225,
    "mbind": 235,
    "set_mempolicy": 237,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "memfd_create": 279,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}

_CONDITIONAL = frozenset({"socket", "clone", "ioctl", "personality", "mmap", "setsockopt"})
"""Refused for some arguments only."""

_ABSENT = frozenset(
    {
        "clone3",  # its flags are in memory, where a filter can't look; libraries fall back to clone
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        # Memory that no limit of a process counts.
        "memfd_create",
        "memfd_secret",
        "shmget",
        "shmat",
        "semget",
        "msgget",
        "vmsplice",  # a pipe keeps a page, and the huge page that it is of, after its owner has let go of it
        # What the machine has a fixed number of, for all its users or for all that one user runs.
        "io_setup",
        "inotify_init",
        "inotify_init1",
    }
)
"""Answered as if the kernel had no such call, so that programs use another way."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """An instruction set as system call filters know it.

    Attributes:
        audit: its AUDIT_ARCH number.
        calls: system calls by name.
        first_foreign: calls from this number on belong to another ABI (x32) of the same architecture; 0 for none.
    """

    audit: int
    calls: Mapping[str, int]
    first_foreign: int = 0


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, {**_COMMON, **_X86_64}, first_foreign=0x40000000),
    "aarch64": Architecture(0xC00000B7, {**_COMMON, **_AARCH64}),
}


def build_filter(machine: str = "") -> bytes:
    """Return the program for a machine; this one if none is named.

    Raises:
        Terminal: there are no tables for it.
    """
    machine = machine or platform.machine()
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        raise Terminal(f"sandbox: no system call filter for {machine!r}; known: {', '.join(ARCHITECTURES)}")
    return b"".join(_program(architecture))


def _program(architecture: Architecture) -> Iterator[bytes]:
    yield _load(_ARCHITECTURE_OFFSET)
    yield _jump(_JUMP_EQUAL, architecture.audit, then=1)
    yield _return(_KILL)
    yield _load(_NUMBER_OFFSET)
    if architecture.first_foreign:
        yield _jump(_JUMP_GREATER_EQUAL, architecture.first_foreign, otherwise=1)
        yield _return(_KILL)
    yield _jump(_JUMP_GREATER_EQUAL, _FIRST_UNKNOWN, otherwise=1)
    yield _return(_FAIL | errno.ENOSYS)
    for name, number in architecture.calls.items():
        if name in _CONDITIONAL:
            continue
        yield _jump(_JUMP_EQUAL, number, otherwise=1)
        yield _return(_FAIL | (errno.ENOSYS if name in _ABSENT else errno.EPERM))
    yield from _when(architecture.calls["mmap"], _refuse_shared_memory())
    yield from _when(architecture.calls["setsockopt"], _ignore_larger_buffers())
    yield from _when(architecture.calls["clone"], _refuse_namespaces())
    yield from _when(architecture.calls["socket"], _refuse_sockets())
    yield from _when(architecture.calls["ioctl"], _refuse_terminal_input())
    yield from _when(architecture.calls["personality"], _refuse_personalities())
    yield _return(_ALLOW)


def _when(number: int, body: Iterator[bytes]) -> Iterator[bytes]:
    """Run a body that always returns, if the call has this number; the accumulator holds the number before and after.

    A conditional jump reaches 255 instructions at most; each body is far shorter.
    """
    steps = list(body)
    yield _jump(_JUMP_EQUAL, number, otherwise=len(steps))
    yield from steps


def _refuse_namespaces() -> Iterator[bytes]:
    yield _load(_ARGUMENTS_OFFSET)
    yield _jump(_JUMP_ANY_BIT, _NEW_NAMESPACES, otherwise=1)
    yield _return(_FAIL | errno.EPERM)
    yield _return(_ALLOW)


def _refuse_shared_memory() -> Iterator[bytes]:
    """Refuse memory that is shared and of no file: it outlives its pages' owners, so that no sum of theirs has it."""
    yield _load(_ARGUMENTS_OFFSET + 24)
    yield _jump(_JUMP_ANY_BIT, _MAP_ANONYMOUS, otherwise=2)
    yield _jump(_JUMP_ANY_BIT, _MAP_SHARED, otherwise=1)
    yield _return(_FAIL | errno.EPERM)
    yield _return(_ALLOW)


def _ignore_larger_buffers() -> Iterator[bytes]:
    """Leave the buffers of sockets as they are: what waits in them is nobody's memory; programs ask out of habit."""
    yield _load(_ARGUMENTS_OFFSET + 8)
    yield _jump(_JUMP_EQUAL, _SOL_SOCKET, otherwise=4)
    yield _load(_ARGUMENTS_OFFSET + 16)
    yield _jump(_JUMP_EQUAL, _SO_SNDBUF, then=1)
    yield _jump(_JUMP_EQUAL, _SO_RCVBUF, otherwise=1)
    yield _return(_IGNORE)
    yield _return(_ALLOW)


def _refuse_sockets() -> Iterator[bytes]:
    """Allow Unix, TCP and UDP sockets, and netlink's routing family, which lists network interfaces."""
    yield _load(_ARGUMENTS_OFFSET)
    yield _jump(_JUMP_EQUAL, _AF_UNIX, then=14)
    yield _jump(_JUMP_EQUAL, _AF_NETLINK, then=10)
    yield _jump(_JUMP_EQUAL, _AF_INET, then=1)
    yield _jump(_JUMP_EQUAL, _AF_INET6, otherwise=10)
    yield _load(_ARGUMENTS_OFFSET + 8)
    yield _operate(_AND, _SOCK_TYPE_MASK)
    yield _jump(_JUMP_EQUAL, _SOCK_STREAM, then=1)
    yield _jump(_JUMP_EQUAL, _SOCK_DGRAM, otherwise=6)
    # Other protocols of these types (SCTP, MPTCP, L2TP) are seldom used, and so seldom looked at.
    yield _load(_ARGUMENTS_OFFSET + 16)
    yield _jump(_JUMP_EQUAL, _IPPROTO_ANY, then=5)
    yield _jump(_JUMP_EQUAL, _IPPROTO_TCP, then=4)
    yield _jump(_JUMP_EQUAL, _IPPROTO_UDP, then=3, otherwise=2)
    yield _load(_ARGUMENTS_OFFSET + 16)
    yield _jump(_JUMP_EQUAL, _NETLINK_ROUTE, then=1)
    yield _return(_FAIL | errno.EPERM)
    yield _return(_ALLOW)


def _refuse_terminal_input() -> Iterator[bytes]:
    yield _load(_ARGUMENTS_OFFSET + 8)
    yield _jump(_JUMP_EQUAL, _TIOCSTI, then=1)
    yield _jump(_JUMP_EQUAL, _TIOCLINUX, otherwise=1)
    yield _return(_FAIL | errno.EPERM)
    yield _return(_ALLOW)


def _refuse_personalities() -> Iterator[bytes]:
    """Allow the ordinary one, and asking which it is."""
    yield _load(_ARGUMENTS_OFFSET)
    yield _jump(_JUMP_EQUAL, 0, then=2)
    yield _jump(_JUMP_EQUAL, 0xFFFFFFFF, then=1)
    yield _return(_FAIL | errno.EPERM)
    yield _return(_ALLOW)


def _load(offset: int) -> bytes:
    return _operate(_LOAD, offset)


def _return(value: int) -> bytes:
    return _operate(_RETURN, value)


def _operate(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
