"""What a hostile process tries, from inside a sandbox or, as the positive control, from outside.

This file is the attacker's program: it uses the standard library alone, is run as ``python -c FILE``, reads its orders
as JSON from the variable ATTACK, and prints one JSON object: what was tried → ``ok`` or the name of the error.

What changes more than the attacker itself is asked for in a way that can't succeed (a place that doesn't exist, the
name that the machine has already): outside, the kernel then says so; inside, it may not even look.
"""

import ctypes
import errno
import json
import os
import socket
import stat
import struct
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
_CALLS = {
    "x86_64": {
        "keyctl": 250,
        "ptrace": 101,
        "bpf": 321,
        "userfaultfd": 323,
        "mount": 165,
        "unshare": 272,
        "setns": 308,
        "perf_event_open": 298,
        "io_uring_setup": 425,
        "memfd_create": 319,
        "open_by_handle_at": 304,
        "process_vm_readv": 310,
        "add_key": 248,
        "clone3": 435,
        "shmget": 29,
        "getpid": 39,
    },
    "aarch64": {
        "keyctl": 219,
        "ptrace": 117,
        "bpf": 280,
        "userfaultfd": 282,
        "mount": 40,
        "unshare": 97,
        "setns": 268,
        "perf_event_open": 241,
        "io_uring_setup": 425,
        "memfd_create": 279,
        "open_by_handle_at": 265,
        "process_vm_readv": 270,
        "add_key": 217,
        "clone3": 435,
        "shmget": 194,
        "getpid": 172,
    },
}
_USERNS = 0x10000000


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


def write_everywhere(order):
    """S3: every folder that can be seen, and the files that matter most."""

    def write(path):
        flags = os.O_WRONLY | os.O_CREAT
        os.close(os.open(path, flags, 0o600))

    places = {place: attempt(lambda place=place: write(place)) for place in order["files"]}
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
    return {"files": places, "written": sorted(written)}


def gain_rights(_):
    """S4: setuid programs, user namespaces, mounts, raw sockets, other users."""
    setuid = []
    for folder, _names, files in os.walk("/usr/bin"):
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path) and os.stat(path).st_mode & stat.S_ISUID:
                setuid.append(path)
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "groups": [group for group in os.getgroups() if group != os.getgid()],
        "caps": {name: status[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")},
        "no_new_privs": status["NoNewPrivs"].strip(),
        "setuid_programs": len(setuid),
        "setuid": attempt(lambda: os.setuid(0)),
        "mount": attempt(lambda: call("mount", b"none", b"/no/such/place", b"tmpfs", 0, None)),
        "raw_socket": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()),
        "packet_socket": attempt(lambda: socket.socket(17, socket.SOCK_RAW, 0).close()),
        "chroot": attempt(lambda: os.chroot("/no/such/place")),
        "sethostname": attempt(lambda: socket.sethostname(socket.gethostname())),
        "tcp_socket": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()),
        # Last: where it succeeds, rights over the old namespaces are gone.
        "unshare_user": attempt(lambda: call("unshare", _USERNS)),
    }


def call_kernel(_):
    """S5: system calls that attacks on kernels are made of."""
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
    buffer = ctypes.create_string_buffer(256)
    return {
        "seccomp": status["Seccomp"].strip(),
        "calls": {
            "keyctl": attempt(lambda: call("keyctl", 0, -3, 1)),
            "add_key": attempt(lambda: call("add_key", b"no-such-type", b"probe", b"x", 1, -3)),
            "ptrace": attempt(lambda: call("ptrace", 16, -1, 0, 0)),
            "bpf": attempt(lambda: call("bpf", 0, buffer, 32)),
            "userfaultfd": attempt(lambda: call("userfaultfd", 1)),
            "setns": attempt(lambda: call("setns", -1, 0)),
            "perf_event_open": attempt(lambda: call("perf_event_open", buffer, 0, -1, -1, 0)),
            "io_uring_setup": attempt(lambda: call("io_uring_setup", 1, buffer)),
            "memfd_create": attempt(lambda: call("memfd_create", b"x", 0)),
            "open_by_handle_at": attempt(lambda: call("open_by_handle_at", -1, buffer, 0)),
            "process_vm_readv": attempt(lambda: call("process_vm_readv", os.getpid(), None, 0, None, 0, 0)),
            "clone3": attempt(lambda: call("clone3", buffer, 0)),
            "shmget": attempt(lambda: call("shmget", 0, 0, 0o1600)),
        },
        "getpid": attempt(lambda: call("getpid")),
    }


def look_around(order):
    """S6, S7, S8, S15, S20: names, processes, environments, files and sockets; what of the wanted words is in them."""
    words = [word.encode() for word in order["words"]]
    hits, read = [], 0
    processes = order.get("pids") or [name for name in os.listdir("/proc") if name.isdigit()]
    for process in processes:
        for name in ("environ", "cmdline", "maps", "mountinfo", "status"):
            try:
                with open(f"/proc/{process}/{name}", "rb") as file:
                    content = file.read()
            except OSError:
                continue
            read += 1
            hits += [f"/proc/{process}/{name}: {word.decode()}" for word in words if word in content]
    for root in order["folders"]:
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if not os.path.islink(os.path.join(folder, name))]
            names[:] = [name for name in names if os.path.join(folder, name) not in order.get("skip", [])]
            for name in [*names, *files]:
                path = os.path.join(folder, name)
                hits += [f"name {path}: {word.decode()}" for word in words if word in os.fsencode(name)]
                mode = os.lstat(path).st_mode
                if not stat.S_ISREG(mode) or os.lstat(path).st_size > 4_000_000:
                    continue
                try:
                    with open(path, "rb") as file:
                        content = file.read()
                except OSError:
                    continue
                read += 1
                hits += [f"file {path}: {word.decode()}" for word in words if word in content]
    sockets = open("/proc/net/unix").read().splitlines()[1:]
    return {
        "processes": len(processes),
        "process_names": sorted(open(f"/proc/{process}/comm").read().strip() for process in processes),
        "uid_map": open("/proc/self/uid_map").read().split(),
        "environment": sorted(os.environ),
        "paths": {path: os.path.exists(path) for path in order["paths"]},
        "sockets": [line.split()[-1] for line in sockets if line.split()[-1].startswith(("/", "@"))],
        "descriptors": sorted(
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in os.listdir("/proc/self/fd")
            if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")
        ),
        "hits": hits,
        "read": read,
    }


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

    return {
        "tcp": {f"{host}:{port}": attempt(lambda h=host, p=port: tcp(h, p)) for host, port in order.get("tcp", [])},
        "udp": {f"{host}:{port}": attempt(lambda h=host, p=port: udp(h, p)) for host, port in order.get("udp", [])},
        "unix": {path: attempt(lambda p=path: unix(p)) for path in order.get("unix", [])},
        "names": {name: attempt(lambda n=name: resolve(n)) for name in order.get("names", [])},
        "interfaces": [name for _, name in socket.if_nameindex()],
    }


def signal_others(order):
    """S5, S6: processes of this machine, by number."""
    return {str(pid): attempt(lambda pid=pid: os.kill(pid, 0)) for pid in order["pids"]}


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
        call_kernel,
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
