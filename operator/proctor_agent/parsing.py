"""JSON from the gateway, checked for what is needed of it."""

from __future__ import annotations

import json

from proctor_agent.failures import Malformed

Json = dict[str, object]


def parse_object(body: bytes, what: str) -> Json:
    """Return a JSON object.

    Raises:
        Malformed: it is something else.
    """
    try:
        value = json.loads(body)
    except ValueError as e:
        raise Malformed(f"{what} is not JSON") from e
    if not isinstance(value, dict):
        raise Malformed(f"{what} is not a JSON object")
    return value


def text_field(brief: Json, name: str) -> str:
    """Return a field of the brief.

    Raises:
        Malformed: it is missing, or no text.
    """
    value = brief.get(name)
    if not isinstance(value, str):
        raise Malformed(f"the brief has no {name}")
    return value
