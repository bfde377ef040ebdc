"""What a hostile process tries, from inside a sandbox or, as the positive control, from outside.

This file is the attacker's program: it uses the standard library alone, reads its orders as JSON from the variable
ATTACK, and prints one JSON object: attack → what was tried → ``ok``, the name of the error, or what was found.

What changes more than the attacker itself is asked for in a way that can't succeed (a place that doesn't exist, the
name that the machine has already): outside, the kernel then says so; inside, it may not even look.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import stat
import struct
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
_X86_64 = {
    "mmap": 9, "getpid": 39, "shmget": 29, "modify_ldt": 154, "ptrace": 101, "mount": 165, "io_setup": 206,
    "add_key": 248, "keyctl": 250, "unshare": 272, "vmsplice": 278, "inotify_init1": 294, "perf_event_open": 298,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "kcmp": 312,
    "memfd_create": 319, "bpf": 321, "userfaultfd": 323, "syslog": 103, "clone": 56,
}  # fmt: skip
_AARCH64 = {
    "mmap": 222, "getpid": 172, "shmget": 194, "ptrace": 117, "mount": 40, "io_setup": 0, "add_key": 217,
    "keyctl": 219, "unshare": 97, "vmsplice": 75, "inotify_init1": 26, "perf_event_open": 241,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "kcmp": 272,
    "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "syslog": 116, "clone": 220,
}  # fmt: skip
_COMMON = {"io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "clone3": 435, "pidfd_getfd": 438, "to_come": 600}
_CALLS = {"x86_64": {**_X86_64, **_COMMON}, "aarch64": {**_AARCH64, **_COMMON}}
_USERNS, _SIGCHLD = 0x10000000, 17
_TIOCSTI = 0x5412


def attempt(action):
    try:
        action()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    return "ok"


def call(name, *arguments):
    number = _CALLS[os.uname().machine][name]
    if _LIBC.syscall(ctypes.c_long(number), *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def status_of(process="self"):
    with open(f"/proc/{process}/status") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def write_everywhere(order):
    """S3: every folder that can be seen, and the files that matter most."""

    def write(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

    written = []
    for root in order["folders"]:
        for folder, names, _ in os.walk(root):
            names[:] = [name for name in names if not os.path.islink(os.path.join(folder, name))]
            probe = os.path.join(folder, ".probe")
            # Mounts are what differs, and there are none deeper down.
            if folder.startswith("/proc") or folder.count("/") > order["depth"]:
                names[:] = []
            if attempt(lambda probe=probe: write(probe)) == "ok":
                written.append(folder)
                os.unlink(probe)
    places = {place: attempt(lambda place=place: write(place)) for place in order["files"]}
    return {**places, "written": " ".join(sorted(written))}


def gain_rights(_):
    """S4: setuid programs, user namespaces, mounts, raw sockets, other users."""
    status = status_of()
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "groups": [group for group in os.getgroups() if group != os.getgid()],
        "caps": max(int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")),
        "no_new_privs": status["NoNewPrivs"],
        "setuid": attempt(lambda: os.setuid(0)),
        "mount": attempt(lambda: call("mount", b"none", b"/no/such/place", b"tmpfs", 0, None)),
        "chroot": attempt(lambda: os.chroot("/no/such/place")),
        "sethostname": attempt(lambda: socket.sethostname(socket.gethostname())),
        "clone into a namespace": attempt(clone_away),
        # Last: where it succeeds, rights over the old namespaces are gone.
        "unshare_user": attempt(lambda: call("unshare", _USERNS)),
    }


def clone_away():
    pid = _LIBC.syscall(ctypes.c_long(_CALLS[os.uname().machine]["clone"]), _USERNS | _SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def open_sockets(_):
    """S4, S10: families and protocols that reach other machines, the kernel, or whoever runs this one."""
    kinds = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, 0),
        "raw": (socket.AF_INET, socket.SOCK_RAW, 1),
        "packet": (17, socket.SOCK_RAW, 0),
        "vsock": (40, socket.SOCK_STREAM, 0),
        "kernel crypto": (38, socket.SOCK_SEQPACKET, 0),
        "netlink audit": (16, socket.SOCK_RAW, 9),
        "netlink netfilter": (16, socket.SOCK_RAW, 12),
        "mptcp": (socket.AF_INET, socket.SOCK_STREAM, 262),
        "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132),
        "bluetooth": (31, socket.SOCK_RAW, 1),
    }
    return {name: attempt(lambda kind=kind: socket.socket(*kind).close()) for name, kind in kinds.items()}


def call_kernel(_):
    """S5: system calls that attacks on kernels are made of, and what takes memory that nobody counts."""
    buffer = ctypes.create_string_buffer(256)
    reader, writer = os.pipe()
    calls = {
        "keyctl": (0, -3, 1),
        "add_key": (b"no-such-type", b"probe", b"x", 1, -3),
        "ptrace": (16, -1, 0, 0),
        "bpf": (0, buffer, 32),
        "userfaultfd": (1,),
        "setns": (-1, 0),
        "perf_event_open": (buffer, 0, -1, -1, 0),
        "io_uring_setup": (1, buffer),
        "io_setup": (-1, None),
        "memfd_create": (b"x", 0),
        "name_to_handle_at": (-1, b"x", None, None, 0),
        "open_by_handle_at": (-1, buffer, 0),
        "process_vm_readv": (os.getpid(), None, 0, None, 0, 0),
        "pidfd_getfd": (-1, 0, 0),
        "kcmp": (-1, -1, 0, 0, 0),
        "clone3": (buffer, 0),
        "shmget": (0, 0, 0o1600),
        "syslog": (10, None, 0),
        "open_tree": (-1, b"x", 0),
        "fsopen": (b"no-such-system", 0),
        "vmsplice": (writer, None, 0, 0),
        "inotify_init1": (0,),
        "to_come": (),
    }
    said = {name: attempt(lambda name=name, words=words: call(name, *words)) for name, words in calls.items()}
    os.close(reader)
    os.close(writer)
    with open("/dev/zero", "r+b", buffering=0) as zero:
        said["map /dev/zero"] = attempt(lambda: mmap.mmap(zero.fileno(), 4096).close())
    return {
        **said,
        "getpid": attempt(lambda: call("getpid")),
        "seccomp": status_of()["Seccomp"],
        "shared memory of no file": attempt(lambda: mmap.mmap(-1, 4096).close()),
        "type for somebody": attempt(lambda: fcntl.ioctl(0, _TIOCSTI, b"x")),
    }


def write_to_kernel(order):
    """S3, S5: switches of the machine that are files."""

    def write(path):
        os.close(os.open(path, os.O_WRONLY))

    return {path: attempt(lambda path=path: write(path)) for path in order["files"]}


def look_around(order):
    """S6, S7, S8, S15, S17, S20: names, processes, environments, files and sockets; which wanted words are in them."""
    words = [word.encode() for word in order["words"]]
    hits, read = set(), 0
    processes = order.get("pids") or [name for name in os.listdir("/proc") if name.isdigit()]
    for process in processes:
        for name in ("environ", "cmdline", "maps", "mountinfo", "status"):
            try:
                with open(f"/proc/{process}/{name}", "rb") as file:
                    content = file.read()
            except OSError:
                continue
            read += 1
            # The orders themselves hold the words.
            content = b"\0".join(part for part in content.split(b"\0") if not part.startswith(b"ATTACK="))
            hits.update(f"/proc/{process}/{name}: {word.decode()}" for word in words if word in content)
    for root in order["folders"]:
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if not os.path.islink(os.path.join(folder, name))]
            names[:] = [name for name in names if os.path.join(folder, name) not in order.get("skip", [])]
            for path in (os.path.join(folder, name) for name in [*names, *files]):
                hits.update(f"name {path}: {word.decode()}" for word in words if word in os.fsencode(path))
                about = os.lstat(path)
                if not stat.S_ISREG(about.st_mode) or about.st_size > 4_000_000:
                    continue
                try:
                    with open(path, "rb") as file:
                        content = file.read()
                except OSError:
                    continue
                read += 1
                hits.update(f"file {path}: {word.decode()}" for word in words if word in content)
    sockets = open("/proc/net/unix").read().splitlines()[1:]
    return {
        "processes": sorted(open(f"/proc/{process}/comm").read().strip() for process in processes),
        "users": " ".join(open("/proc/self/uid_map").read().split()[:3]),
        "environment": sorted(os.environ),
        "paths": sorted(path for path in order["paths"] if os.path.exists(path)),
        "sockets": sorted(name for name in (line.split()[-1] for line in sockets) if name.startswith(("/", "@"))),
        "descriptors": sorted(
            target
            for target in (readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2)
            if target and not target.startswith("/proc")
        ),
        "hits": sorted(hits),
        "has read": read > 5,
    }


def readlink(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def dial(order):
    """S9, S10, S11: addresses by TCP and UDP, names, and sockets of this machine."""

    def tcp(host, port):
        socket.create_connection((host, port), timeout=2).close()

    def udp(host, port):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.settimeout(2)
            one.connect((host, port))
            one.send(struct.pack("!6H", 1, 0x100, 1, 0, 0, 0) + b"\x07example\x03com\0\0\1\0\1")
            one.recv(512)

    def unix(path):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("\0" + path[1:] if path.startswith("@") else path)

    def resolve(name):
        try:
            socket.getaddrinfo(name, 80)
        except socket.gaierror as e:
            raise OSError(errno.ENETUNREACH, str(e)) from e

    said = {f"tcp {host}:{port}": attempt(lambda h=host, p=port: tcp(h, p)) for host, port in order.get("tcp", [])}
    said |= {f"udp {host}:{port}": attempt(lambda h=host, p=port: udp(h, p)) for host, port in order.get("udp", [])}
    said |= {f"unix {path}": attempt(lambda p=path: unix(p)) for path in order.get("unix", [])}
    said |= {f"name {name}": attempt(lambda n=name: resolve(n)) for name in order.get("names", [])}
    return {**said, "interfaces": " ".join(name for _, name in socket.if_nameindex())}


def signal_others(order):
    """S5, S6: processes of this machine, by number."""
    said = {f"signal {name}": attempt(lambda pid=pid: os.kill(pid, 0)) for name, pid in order["pids"].items()}

    def read(pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            file.read()

    said |= {f"read {name}": attempt(lambda pid=pid: read(pid)) for name, pid in order["pids"].items()}
    return said


def fork_until_refused(order):
    """S24: how many processes there can be; they stay for as long as the standard input is open."""
    count, reason = 0, "none"
    while count < order["most"]:
        try:
            pid = os.fork()
        except OSError as e:
            reason = errno.errorcode[e.errno]
            break
        if pid == 0:
            import time

            time.sleep(order["seconds"])
            os._exit(0)
        count += 1
    return {"count": count, "reason": reason}


def fill_scratch(order):
    """S23: every place that can be written, to the brim."""
    result = {}
    for folder in order["folders"]:
        written, reason, number = 0, "none", 0
        block = b"x" * 1_000_000
        while written < order["most"] and reason in {"none", "EFBIG"}:
            try:
                with open(f"{folder}/fill{number}", "wb", buffering=0) as file:
                    while written < order["most"]:
                        written += file.write(block)
            except OSError as e:
                reason = errno.errorcode[e.errno]
                number += 1
                if number > 100:
                    break
        result[folder] = {"written": written, "reason": reason, "files": number}
    return result


def open_many(order):
    """S23: descriptors."""
    held, reason = [], "none"
    while len(held) < order["most"] and reason == "none":
        try:
            held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as e:
            reason = errno.errorcode[e.errno]
    return {"count": len(held), "reason": reason}


def knock(order):
    """S15, S16, S18: raw requests at the gateway's socket; of each the status lines, the error's word, and finds."""
    said = {}
    for name, raw in order["requests"].items():
        received = b""
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(order.get("seconds", 10))
            one.connect(order["socket"])
            one.sendall(raw.encode("latin-1"))
            try:
                while piece := one.recv(65536):
                    received += piece
            except OSError:
                pass
        statuses = [int(line.split()[1]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        word = received.partition(b'"type":"proctor_')[2].partition(b'"')[0].decode()
        finds = [find for find in order["words"] if find.encode() in received]
        said[name] = {"statuses": statuses, "word": word, "finds": finds, "text": received[-300:].decode("latin-1")}
    return said


ATTACKS = {
    function.__name__: function
    for function in (
        write_everywhere,
        gain_rights,
        open_sockets,
        call_kernel,
        write_to_kernel,
        look_around,
        dial,
        signal_others,
        fork_until_refused,
        fill_scratch,
        open_many,
        knock,
    )
}

if __name__ == "__main__":
    orders = json.loads(os.environ["ATTACK"])
    print(json.dumps({name: ATTACKS[name](order) for name, order in orders.items()}), flush=True)
    if os.environ.get("STAY"):
        sys.stdin.read()
