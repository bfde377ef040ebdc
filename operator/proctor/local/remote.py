"""A ClickHouse that somebody else runs, in the places of the embedded engines."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.restricted import AgentLimits, build_user
from proctor.adapters.clickhouse.session import HttpSession
from proctor.core.seeding.record import DatasetRecord
from proctor.core.seeding.sql import name_table
from proctor.errors import ProctorError, Terminal
from proctor.local.background import Background
from proctor.local.remote_datasets import PASSWORD_VARIABLE
from proctor.reconcile.observed import Readiness

AGENT_PASSWORD_VARIABLE = "PROCTOR_AGENT_PASSWORD"  # noqa: S105 - the variable's name, not a password


def parse_admin_url(url: str) -> Endpoint:
    """Read the URL of a ClickHouse; a password in the environment wins over one in the URL.

    Raises:
        InvalidInput: the URL can't be read.
    """
    return _with_password(Endpoint.parse(url), PASSWORD_VARIABLE)


def parse_agent_url(url: str) -> Endpoint:
    """Read the URL of the user as whom servers under test query; its password too may be in the environment.

    Raises:
        InvalidInput: the URL can't be read.
    """
    return _with_password(Endpoint.parse(url), AGENT_PASSWORD_VARIABLE)


class RemoteResults:
    """Results go to a ClickHouse that is simply there; while it isn't, the spool waits."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.state = Readiness.READY
        self.message = ""

    def start(self) -> None:
        """Nothing is to be started."""

    async def ready(self) -> Endpoint:
        """Return the endpoint."""
        return self.endpoint

    async def close(self) -> None:
        """Nothing is to be stopped."""


class RemoteAccess:
    """A user that may read one dataset's database and nothing else, for as long as a run goes on.

    Args:
        admin: a user that may create users.
        record: the dataset.
        background: runs the statements.
        given: a user that somebody made for the purpose; None to make one.
    """

    def __init__(
        self, admin: Endpoint, record: DatasetRecord, background: Background, *, given: Endpoint | None = None
    ) -> None:
        self._session = HttpSession(admin)
        self._record = record
        self._background = background
        self._is_ours = given is None
        self._endpoint = given or replace(
            admin, user=f"proctor_{record.hash}_{secrets.token_hex(4)}", password=secrets.token_urlsafe(24)
        )
        self.state = Readiness.ABSENT
        self.message = ""

    @property
    def agent_endpoint(self) -> Endpoint:
        """Where servers under test find the dataset."""
        return self._endpoint.in_database(self._record.database)

    def start(self) -> None:
        """Begin to make the user, unless that was begun."""
        if self.state is Readiness.ABSENT:
            self.state = Readiness.STARTING
            self._background.spawn(self._open())

    async def close(self) -> None:
        """Drop the user."""
        if self._is_ours and self.state is Readiness.READY:
            try:
                await self._session.run(f"DROP USER IF EXISTS {self._endpoint.user}")
            except ProctorError as error:
                self.message = str(error)
        self.state = Readiness.ABSENT

    async def _open(self) -> None:
        try:
            if self._is_ours:
                for statement in build_user(self._endpoint, self._record.database, AgentLimits()):
                    await self._session.run(statement)
            await self._check()
        except ProctorError as error:
            self.state = Readiness.FAILED
            self.message = f"{error}; give a user that may read {self._record.database} alone with --agent-url"
        else:
            self.state = Readiness.READY

    async def _check(self) -> None:
        """Show that the user reads its dataset and can't write to it; whoever made it may have been mistaken."""
        session = HttpSession(self.agent_endpoint)
        table = next(iter(self._record.tables))
        found = await session.fetch(f"EXISTS TABLE {name_table(self._record.database, table)}")
        if [str(value) for row in found for value in row] != ["1"]:
            raise Terminal(f"user {self._endpoint.user} does not see {self._record.database}")
        probe = f"{self._record.database}.proctor_probe_{secrets.token_hex(4)}"
        try:
            await session.run(f"CREATE TABLE {probe} (x UInt8) ENGINE = Memory")
        except Terminal:
            return
        await session.run(f"DROP TABLE IF EXISTS {probe}")
        raise Terminal(f"user {self._endpoint.user} may create tables in {self._record.database}: an agent must not")


def _with_password(endpoint: Endpoint, variable: str) -> Endpoint:
    password = os.environ.get(variable)
    return endpoint if password is None else replace(endpoint, password=password)
