"""The engine's process: run as a file, told what to do by one JSON line on stdin, answering with one on stdout.

It imports nothing but the standard library and the engine's shared object itself: importing the package around the
shared object would cost three times as long as starting the server. Everything that decides anything (config, users,
limits) is written by the parent; this file only holds the process's life together:

* one engine per data folder, by a lock that the kernel drops when the process dies, however it dies;
* it ends with its parent: by signal (`PR_SET_PDEATHSIG`) and by the end of its stdin, whichever comes first;
* SIGTERM, and the end of stdin, stop it gracefully;
* the engine's threads are confined to its own files by the kernel (Landlock), and may connect to nothing: the SQL
  function `file` reads any file of the machine and asks for no grant.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import importlib.machinery
import importlib.util
import json
import os
import select
import signal
import struct
import sys
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same numbers on every architecture
LEAST_LANDLOCK = 2  # the first version under which files can be moved between folders
_ASK_VERSION = 1
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE, _READ_FILE, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 5, 1 << 8, 1 << 14
_CONNECT_TCP = 1 << 1
_NET_ABI = 4
_READ_BY_ENGINE = (
    Path("/proc/self/statm"),
    Path("/proc/meminfo"),
    Path("/sys/fs/cgroup"),
)  # how much memory there is, and how much it uses
_READY = "ready"  # a named pipe in the private folder
_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_LOCK_SECONDS = 5.0  # a parent that was killed takes its engine along within milliseconds; a restart may come sooner
_STOP_SECONDS = (
    1.0  # clients that hold connections open would delay the end; after this, what is committed is on disk anyway
)
_KEEPALIVE = "SELECT sleepEachRow(0.1) FROM system.numbers SETTINGS max_block_size=1, max_memory_usage=0 FORMAT Null"
"""The local session stays in a query: the server lives as long as it does. A tenth of a second bounds the stop. What it
is held to have allocated drifts by megabytes while the server works, so a limit would in the end be its end.
"""


def private_dir(data: Path) -> Path:
    """Return the folder, mode 0700, of config, users, lock, and engine.json: beside the data, where SQL can't read."""
    return data.with_name(f"{data.name}.serving")


class _StartError(Exception):
    """The engine can't start; the message is for people."""


def main() -> int:
    """Serve until told to stop; return the exit code."""
    order = json.loads(sys.stdin.buffer.readline())
    _die_with(order["parent"])
    data = Path(order["data"])
    private = private_dir(data)
    try:
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
        private.chmod(0o700)
        lock = _lock(private / "lock")
        _write_private(private / "config.xml", order["config_xml"])
        _write_private(private / "users.xml", order["users_xml"])
        confinement = _prepare_confinement(data, private, Path(order["log"]), must=order["must_confine"])
        session = _Session(_load_engine(), data, tcp=order["tcp"], confinement=confinement)
        ports = session.start(private)
    except (_StartError, OSError) as error:
        _say({"error": str(error)})
        return 1
    record = {"pid": os.getpid(), "port": ports[0], "tcp_port": ports[1] if order["tcp"] else None, **order["record"]}
    _write_private(private / "engine.json", json.dumps(record))
    _say(record | {"password": ""})
    session.wait_for_stop()
    (private / "engine.json").unlink(missing_ok=True)
    session.stop(ports[0], order["record"]["user"], order["record"]["password"])
    # Not `sys.exit`: the engine's own threads may still run, and tearing the interpreter down under them crashes.
    os.close(lock)
    os._exit(0)


class _Session:
    """The engine's local session, which blocks one thread for as long as the server is up."""

    def __init__(self, engine: ModuleType, data: Path, *, tcp: bool, confinement: int | None) -> None:
        self._engine = engine
        self._data = data
        self._tcp = tcp
        self._confinement = confinement
        self._ended, self._alive = os.pipe()
        self._signalled, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _ignore)
        signal.signal(signal.SIGINT, _ignore)
        self._failure = ""

    def start(self, private: Path) -> list[int]:
        """Start the listeners; return their ports once they accept connections."""
        os.chdir(private)  # the engine reads ./config.xml
        ready = os.open(_READY, os.O_RDWR | os.O_CLOEXEC)
        threading.Thread(target=self._run, daemon=True).start()
        wanted = 2 if self._tcp else 1
        text = b""
        while text.count(b"\n") < wanted:
            if self._ended in select.select([ready, self._ended], [], [])[0]:
                raise _StartError(self._failure)  # empty where the engine told its reason to stderr
            text += os.read(ready, 100)
        os.close(ready)
        return [int(line) for line in text.split()]

    def _run(self) -> None:
        if self._confinement is not None:
            _confine_this_thread(self._confinement)  # and those it starts: all of the engine's, none of ours
        # The engine reports each port by writing it into a pipe after its listener is up: nothing has to be polled.
        out = f"INTO OUTFILE '{_READY}' APPEND FORMAT TabSeparated"
        statements = ["SYSTEM START LISTEN HTTP", f"SELECT getServerPort('http_port') {out}"]
        if self._tcp:
            statements += ["SYSTEM START LISTEN TCP", f"SELECT getServerPort('tcp_port') {out}"]
        try:
            # TabSeparated becomes the HTTP server's default format; clients fail on their version query under others.
            self._engine.query("; ".join([*statements, _KEEPALIVE]), "TabSeparated", path=str(self._data))
        except RuntimeError as error:
            self._failure = str(error)
        os.close(self._alive)

    def wait_for_stop(self) -> None:
        """Return when stdin ended, a signal came, or the engine ended by itself."""
        select.select([sys.stdin.fileno(), self._signalled, self._ended], [], [])

    def stop(self, port: int, user: str, password: str) -> None:
        """End the session's query, and with it the server; give up waiting after a while."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_STOP_SECONDS)
        headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/", f"KILL QUERY WHERE query = '{_KEEPALIVE}' ASYNC", headers)
            connection.getresponse().read()
        connection.close()  # the server waits for open connections
        select.select([self._ended], [], [], _STOP_SECONDS)


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Leave it to the wake-up descriptor."""


def _die_with(parent: int) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise _StartError(f"data folder {path.parent.parent}: another process is serving it")

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, _LOCK_SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return descriptor


def landlock_version() -> int:
    """Return what of Landlock this kernel has; below 1 if nothing."""
    return int(_LIBC.syscall(_LANDLOCK_CREATE, None, 0, _ASK_VERSION))


def _prepare_confinement(data: Path, private: Path, log: Path, *, must: bool) -> int | None:
    """Return a set of Landlock rules: what the engine may touch; None where the kernel can't hold it to them."""
    ready = private / _READY
    ready.unlink(missing_ok=True)
    os.mkfifo(ready, 0o600)
    abi = landlock_version()
    if abi < LEAST_LANDLOCK:
        if must:
            raise _StartError("this kernel can't confine the engine to its files (Landlock, Linux 5.19 or later)")
        return None
    everything = (1 << 13 if abi == LEAST_LANDLOCK else 1 << 14) * 2 - 1
    rules: int = _LIBC.syscall(
        _LANDLOCK_CREATE, struct.pack("<QQ", everything, _CONNECT_TCP), 16 if abi >= _NET_ABI else 8, 0
    )
    _allow(rules, data, everything)
    _allow(rules, log.parent, (_WRITE_FILE | _MAKE_FILE | _REMOVE_FILE | _TRUNCATE) & everything)
    _allow(rules, ready, (_WRITE_FILE | _TRUNCATE) & everything)
    for path in (private / "config.xml", private / "users.xml", *_READ_BY_ENGINE):
        _allow(rules, path, _READ_FILE)
    for path in (Path("/dev/null"), Path("/dev/urandom")):
        _allow(rules, path, _READ_FILE | _WRITE_FILE)
    return rules


def _allow(rules: int, path: Path, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # there is none on this machine
    result = _LIBC.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("<Qi", access, descriptor), 0)
    os.close(descriptor)
    if result:
        raise _StartError(f"the engine can't be confined: {path}: {os.strerror(ctypes.get_errno())}")


def _confine_this_thread(rules: int) -> None:
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.syscall(_LANDLOCK_RESTRICT, rules, 0):
        os._exit(1)  # better no engine than one that reads the whole machine
    os.close(rules)


def _load_engine() -> ModuleType:
    package = importlib.util.find_spec("chdb")
    if package is None or not package.submodule_search_locations:
        raise _StartError("the ClickHouse engine is not installed: pip install 'proctor[local]'")
    library = Path(package.submodule_search_locations[0]) / "_chdb.abi3.so"
    # Deep binding, as the package itself does: its memory allocator must not be mixed with another library's.
    ctypes.CDLL(str(library), mode=sys.getdlopenflags() | os.RTLD_DEEPBIND)
    loader = importlib.machinery.ExtensionFileLoader("_chdb", str(library))
    spec = importlib.util.spec_from_loader("_chdb", loader)
    if spec is None:
        raise _StartError(f"the ClickHouse engine at {library} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
