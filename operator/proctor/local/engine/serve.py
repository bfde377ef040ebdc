"""The engine's process: run as a file, told what to do by one JSON line on stdin, answering with one on stdout.

It imports nothing but the standard library and the engine's shared object itself: importing the package around the
shared object would cost three times as long as starting the server. Everything that decides anything (config, users,
limits) is written by the parent; this file only holds the process's life together:

* one engine per data folder, by a lock that the kernel drops when the process dies, however it dies;
* it ends with its parent: by signal (`PR_SET_PDEATHSIG`) and by the end of its stdin, whichever comes first;
* SIGTERM, and the end of stdin, stop it gracefully.
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
import sys
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

PRIVATE_DIR = ".engine"
"""Inside the data folder, mode 0700: config, users, lock, and engine.json while it serves."""

_PR_SET_PDEATHSIG = 1
_LOCK_SECONDS = 5.0  # a parent that was killed takes its engine along within milliseconds; a restart may come sooner
_STOP_SECONDS = (
    1.0  # clients that hold connections open would delay the end; after this, what is committed is on disk anyway
)
_KEEPALIVE = "SELECT sleepEachRow(0.1) FROM system.numbers SETTINGS max_block_size=1 FORMAT Null"
"""The local session stays in a query: the server lives as long as it does. A tenth of a second bounds the stop."""


class _StartError(Exception):
    """The engine can't start; the message is for people."""


def main() -> int:
    """Serve until told to stop; return the exit code."""
    order = json.loads(sys.stdin.buffer.readline())
    _die_with(order["parent"])
    data = Path(order["data"])
    private = data / PRIVATE_DIR
    try:
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
        private.chmod(0o700)
        lock = _lock(private / "lock")
        _write_private(private / "config.xml", order["config_xml"])
        _write_private(private / "users.xml", order["users_xml"])
        session = _Session(_load_engine(), data, tcp=order["tcp"])
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

    def __init__(self, engine: ModuleType, data: Path, *, tcp: bool) -> None:
        self._engine = engine
        self._data = data
        self._tcp = tcp
        self._reading, self._writing = os.pipe()
        self._signalled, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _ignore)
        signal.signal(signal.SIGINT, _ignore)
        self._failure = ""

    def start(self, private: Path) -> list[int]:
        """Start the listeners; return their ports once they accept connections."""
        os.chdir(private)  # the engine reads ./config.xml
        threading.Thread(target=self._run, daemon=True).start()
        wanted = 2 if self._tcp else 1
        text = b""
        while text.count(b"\n") < wanted:
            chunk = os.read(self._reading, 100)
            if not chunk:
                raise _StartError(self._failure or "the engine ended while starting")
            text += chunk
        return [int(line) for line in text.split()]

    def _run(self) -> None:
        # The engine reports each port by writing it into our pipe after its listener is up: nothing has to be polled.
        out = f"INTO OUTFILE '/proc/self/fd/{self._writing}' APPEND FORMAT TabSeparated"
        statements = ["SYSTEM START LISTEN HTTP", f"SELECT getServerPort('http_port') {out}"]
        if self._tcp:
            statements += ["SYSTEM START LISTEN TCP", f"SELECT getServerPort('tcp_port') {out}"]
        try:
            # TabSeparated becomes the HTTP server's default format; clients fail on their version query under others.
            self._engine.query("; ".join([*statements, _KEEPALIVE]), "TabSeparated", path=str(self._data))
        except RuntimeError as error:
            self._failure = str(error)
        os.close(self._writing)

    def wait_for_stop(self) -> None:
        """Return when stdin ended, a signal came, or the engine ended by itself."""
        select.select([sys.stdin.fileno(), self._signalled, self._reading], [], [])

    def stop(self, port: int, user: str, password: str) -> None:
        """End the session's query, and with it the server; give up waiting after a while."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_STOP_SECONDS)
        headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/", f"KILL QUERY WHERE query = '{_KEEPALIVE}' ASYNC", headers)
            connection.getresponse().read()
        connection.close()  # the server waits for open connections
        select.select([self._reading], [], [], _STOP_SECONDS)


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Leave it to the wake-up descriptor."""


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
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
