"""Finding the engine that already serves a data folder, so that a second process need not fail on its lock."""

from __future__ import annotations

import asyncio
import fcntl
import http.client
import json
import os
import secrets
from pathlib import Path

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.local.engine.serve import private_dir

_ANSWER_SECONDS = 5.0


async def find_engine(path: Path) -> Endpoint | None:
    """Return the administrator's endpoint of the live engine of a data folder; None if none answers.

    A password is sent only while some process holds the folder's lock, so never to a stranger on a reused port.
    """
    return await asyncio.to_thread(_find, path)


def is_served(path: Path) -> bool:
    """Return whether any process has the data folder, be it only starting or stopping."""
    return _is_locked(private_dir(path.absolute()) / "lock")


def _find(path: Path) -> Endpoint | None:
    private = private_dir(path)
    if not _is_locked(private / "lock"):
        return None
    try:
        record = json.loads((private / "engine.json").read_text("utf-8"))
        endpoint = Endpoint("127.0.0.1", int(record["port"]), str(record["user"]), str(record["password"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # starting, stopping, or another user's
    return endpoint if _answers(endpoint) else None


def _is_locked(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _answers(endpoint: Endpoint) -> bool:
    nonce = secrets.token_hex(8)
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=_ANSWER_SECONDS)
    headers = {"X-ClickHouse-User": endpoint.user, "X-ClickHouse-Key": endpoint.password}
    try:
        connection.request("POST", "/", f"SELECT reverse('{nonce}') FORMAT TabSeparated", headers)
        response = connection.getresponse()
        return response.status == http.client.OK and response.read(100).strip() == nonce[::-1].encode()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
