"""Where a ClickHouse answers HTTP, and as whom."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from proctor.errors import InvalidInput

_DEFAULT_PORTS = {"http": 8123, "https": 8443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A ClickHouse over HTTP and the user to be there.

    Attributes:
        host: name or address.
        port: of the HTTP interface.
        user: name of the database user.
        password: never shown by ``repr``.
        database: what unqualified table names mean.
        secure: whether to speak TLS.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str = "default"
    secure: bool = False

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read ``http[s]://user:password@host[:port][/database]``.

        Raises:
            InvalidInput: the text is no such URL; the message never repeats the password.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidInput(
                "ClickHouse URL: its host or port can't be read; write https://user:password@host:8443/database"
            ) from error
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput("ClickHouse URL: write https://user:password@host:8443/database, and nothing after it")
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            user=unquote(parts.username or "default"),
            password=unquote(parts.password or ""),
            database=unquote(parts.path.strip("/")) or "default",
            secure=parts.scheme == "https",
        )

    @property
    def authorization(self) -> str:
        """The value of the header that logs in: user and password may have letters that a header holds only encoded."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"

    def in_database(self, database: str) -> Self:
        """Return the same place with another default database."""
        return replace(self, database=database)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.database}"


def render_login(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as the programs' configurations have it, password and all."""
    login: dict[str, Any] = {
        "host": endpoint.host,
        "port": endpoint.port,
        "user": endpoint.user,
        "password": endpoint.password,
        "database": endpoint.database,
    }
    return login | {"secure": True} if endpoint.secure else login
