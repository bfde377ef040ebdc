"""What an API server's refusal means for whoever asked: translated once, here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal

_MAX_MESSAGE = 400
_MAX_DELAY = 60.0
_BUSY_DELAY = 2.0
_PASSING_REFUSALS = ("exceeded quota", "is being terminated", "NamespaceTerminating")
"""What a 403 says when it is about now and not about rights."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the API server.

    Attributes:
        status: its HTTP status.
        body: its JSON; an empty mapping where it has none.
        retry_after: seconds that it asks to wait; None where it doesn't.
    """

    status: int
    body: Mapping[str, Any]
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        """Whether what was asked for was done."""
        return self.status < HTTPStatus.MULTIPLE_CHOICES


def parse_reply(status: int, body: bytes, retry_after: str | None) -> Reply:
    """Read an answer; a body that is no JSON object is kept as a message."""
    try:
        values = json.loads(body) if body else {}
    except ValueError:
        values = {"message": body[:_MAX_MESSAGE].decode("utf-8", "replace")}
    delay = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    return Reply(status, values if isinstance(values, dict) else {}, delay)


def to_error(reply: Reply, attempted: str) -> ProctorError:
    """Return what a refusal means.

    Args:
        reply: the refusal.
        attempted: what was asked for, with kind, namespace and name.
    """
    message = f"{attempted}: {reply.status} {str(reply.body.get('message', ''))[:_MAX_MESSAGE]}".rstrip()
    status = reply.status
    if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}:
        return InvalidInput(message)
    if status == HTTPStatus.FORBIDDEN and not any(words in message for words in _PASSING_REFUSALS):
        return Terminal(message)
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.FORBIDDEN}:
        return Retryable(message, delay=min(reply.retry_after or _BUSY_DELAY, _MAX_DELAY))
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return Terminal(message)
    # 401 passes when a token is read anew, 404 when the namespace or the CRD is there, 409 at the next look.
    return Retryable(message)
