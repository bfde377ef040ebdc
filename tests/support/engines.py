"""Plain HTTP to an engine, for tests that must see its raw answers."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.local.engine import EngineLimits

SMALL = EngineLimits(memory_bytes=2 << 30, threads=2, tcp=True)


@dataclass(frozen=True)
class Answer:
    """What an engine said."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def code(self) -> int:
        """ClickHouse's error number; 0 where there was none."""
        found = re.search(r"Code: (\d+)", self.text) if self.status != 200 else None
        return int(found[1]) if found else 0


def ask(endpoint: Endpoint, sql: str, **settings: str | int) -> Answer:
    """Send one statement with settings in the URL, as any HTTP client may."""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=60)
    headers = {"X-ClickHouse-User": quote(endpoint.user), "X-ClickHouse-Key": endpoint.password}
    query = urlencode({"database": endpoint.database, **settings})
    try:
        connection.request("POST", f"/?{query}", sql.encode(), headers)
        response = connection.getresponse()
        return Answer(response.status, response.read().decode("utf-8", "replace"))
    finally:
        connection.close()
