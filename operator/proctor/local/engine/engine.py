"""An engine in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.errors import DiskFull, ProctorError, Retryable, Terminal
from proctor.local.durable import translate_os_error
from proctor.local.engine import serve
from proctor.local.engine.config import (
    ADMIN,
    ADMIN_ONLY,
    AGENT,
    LOOPBACK,
    Access,
    EngineLimits,
    build_config_xml,
    build_users_xml,
)
from proctor.local.engine.discovery import find_engine

_START_SECONDS = 60.0  # a data folder after a crash is checked part by part before the listeners open
_FULL = os.strerror(errno.ENOSPC)
_STOP_SECONDS = 5.0
_LOG_TAIL_BYTES = 2000
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Of our environment, what an engine may need; keys of model providers are none of its business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What an engine is started with."""

    path: Path
    access: Access
    limits: EngineLimits
    log: Path
    admin_password: str = field(repr=False)
    agent_password: str = field(repr=False)
    http_port: int = 0

    @property
    def admin_name(self) -> str:
        return self.access.admin.name if self.access.admin else ADMIN

    def render(self) -> bytes:
        private = serve.private_dir(self.path)
        message = {
            "parent": os.getpid(),
            "data": str(self.path),
            "log": str(self.log),
            "must_confine": self.access.agent_database is not None and self.access.must_confine,
            "config_xml": build_config_xml(
                self.limits,
                users_path=str(private / "users.xml"),
                error_log=str(self.log),
                host=self.access.host,
                http_port=self.http_port,
                merges=self.access.agent_database is None,
            ),
            "users_xml": build_users_xml(
                self.access, self.limits, admin_password=self.admin_password, agent_password=self.agent_password
            ),
            "tcp": self.limits.tcp,
            "record": {"user": self.admin_name, "password": self.admin_password},
        }
        return json.dumps(message).encode() + b"\n"


class Engine:
    """A running ClickHouse on a data folder of its own; get one from `start`.

    Attributes:
        path: its data folder.
        endpoint: the administrator's.
        agent_endpoint: the restricted user's; None unless `Access` named a database.
        tcp_port: of the native protocol; None unless asked for.
        pid: its process.
    """

    def __init__(self, process: asyncio.subprocess.Process, order: _Order, *, port: int, tcp_port: int | None) -> None:
        self._process = process
        self.path = order.path
        self.tcp_port = tcp_port
        self.pid = process.pid
        self.endpoint = Endpoint(LOOPBACK, port, order.admin_name, order.admin_password)
        database = order.access.agent_database
        agent = order.access.agent.name if order.access.agent else AGENT
        self.agent_password = order.agent_password
        self.agent_endpoint = Endpoint(LOOPBACK, port, agent, order.agent_password, database) if database else None

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        path: Path,
        *,
        log: Path,
        access: Access = ADMIN_ONLY,
        limits: EngineLimits | None = None,
        again: Engine | None = None,
    ) -> AsyncIterator[Engine]:
        """Serve the data folder `path`, made if missing, until the block ends or this process does.

        The kernel ties the engine to the thread that calls this: use one that lives as long as the engine should.

        Args:
            path: the data folder.
            log: where the engine writes its errors; bounded, the older half is in ``<log>.0``.
            access: who may connect.
            limits: memory, threads, protocols.
            again: an engine of the same folder that has died; its address and its users' passwords are taken over,
                so that whoever was told them goes on.

        Raises:
            Retryable: it was killed before it was up, or the machine is too busy for it now.
            Terminal: it can't start, with the engine's reason.
        """
        order = _make_order(path, log, access, limits=limits or EngineLimits(), again=again)
        process = await _launch(order)
        try:
            engine = await _await_ready(cls, process, order)
            yield engine
        finally:
            await asyncio.shield(_stop(process))

    def kill(self) -> None:
        """End it now, not in order: for one that has nothing to do, since what it acknowledged is in its files."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def is_running(self) -> bool:
        """Whether its process still lives."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Return its exit code once it has ended, whatever ended it."""
        return await self._process.wait()


def _make_order(path: Path, log: Path, access: Access, *, limits: EngineLimits, again: Engine | None) -> _Order:
    admin = access.admin.password if access.admin else secrets.token_urlsafe(24)
    agent = access.agent.password if access.agent else secrets.token_urlsafe(24)
    return _Order(
        path=path.absolute(),
        access=access,
        limits=limits,
        log=log.absolute(),
        admin_password=again.endpoint.password if again else admin,
        agent_password=again.agent_password if again else agent,
        http_port=again.endpoint.port if again else access.port,
    )


async def _launch(order: _Order) -> asyncio.subprocess.Process:
    if await find_engine(order.path):
        raise Terminal(f"engine {order.path}: another process is serving this data folder")
    try:
        order.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        order.log.parent.mkdir(parents=True, exist_ok=True)
        return await _spawn(order)
    except OSError as error:
        attempted = f"starting the engine of {order.path}"
        if error.errno in {errno.EAGAIN, errno.ENOMEM}:
            raise Retryable(f"{attempted}: {error.strerror}: no room for another process", delay=10) from error
        raise translate_os_error(error, attempted) from error


async def _spawn(order: _Order) -> asyncio.subprocess.Process:
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    with _stderr_path(order.log).open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the folder of the script has modules whose names are not the standard library's
            serve.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**environment, "TZ": "UTC"},
            start_new_session=True,
        )
    assert process.stdin is not None  # noqa: S101 - asked for above; narrows the type
    process.stdin.write(order.render())
    return process


async def _await_ready(kind: type[Engine], process: asyncio.subprocess.Process, order: _Order) -> Engine:
    assert process.stdout is not None  # noqa: S101 - asked for at the launch; narrows the type
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
    except TimeoutError as error:
        raise Retryable(f"engine {order.path}: not ready after {_START_SECONDS:.0f} s") from error
    if not line:
        code = await process.wait()
        raise _not_started(order, f"ended at start with code {code}: {_stderr_tail(order.log)}", code=code)
    message = json.loads(line)
    if "error" in message:
        raise _not_started(order, f"can't start: {message['error'] or _stderr_tail(order.log)}")
    return kind(process, order, port=message["port"], tcp_port=message["tcp_port"])


def _not_started(order: _Order, why: str, *, code: int = 1) -> ProctorError:
    if _FULL in why:
        return DiskFull(f"starting the engine of {order.path}")
    if code == -signal.SIGKILL:
        return Retryable(f"engine {order.path}: {why}; killed from outside, as for want of memory")
    return Terminal(f"engine {order.path}: {why}")


def _stderr_path(log: Path) -> Path:
    return log.with_name(f"{log.name}.stderr")


def _stderr_tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        text = _stderr_path(log).read_bytes()[-_LOG_TAIL_BYTES:].decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line and not line.startswith("Logging errors to")]
        return "\n".join(lines) or "it said nothing"
    return "it said nothing"


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ask, wait, then kill the whole group; nothing of it is left on return."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
