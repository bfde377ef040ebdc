"""JSON from the gateway, checked for what is needed of it."""

from __future__ import annotations

import json

from proctor_agent.failures import Malformed

Json = dict[str, object]

_MANY_TURNS = 1000
"""Where the brief names no limit: the gateway has one, and says so."""


def parse_object(body: bytes, what: str) -> Json:
    """Return a JSON object.

    Raises:
        Malformed: it is something else.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as e:
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


def count_turns(brief: Json) -> int:
    """Return how often the model is asked: once more than the limit, for the gateway's refusal puts it on record."""
    turns = brief.get("maxTurns")
    return (turns if isinstance(turns, int) else _MANY_TURNS) + 1
