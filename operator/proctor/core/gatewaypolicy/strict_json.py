"""Reading JSON from strangers: no duplicate keys, bounded depth, no numbers that are none."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused

MAX_DEPTH = 64
"""Deeper than any tool schema or argument that is meant seriously."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Two readers of the same bytes must not see different requests: the gateway checks one meaning and the provider
    would act on the other. So what JSON parsers disagree on is refused.

    Raises:
        Refused: it is no JSON object, is nested too deeply, or has a key twice.
    """
    _check_depth(body)
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_refuse_repeated,
            parse_constant=_refuse_constant,
            parse_float=_parse_finite,
        )
    except UnicodeDecodeError as error:
        raise _malformed("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise _malformed("the body is not JSON") from error
    if not isinstance(value, dict):
        raise _malformed("the body is not a JSON object")
    return value


def _check_depth(body: bytes) -> None:
    """Refuse deep nesting before the parser meets it; brackets inside strings do not count."""
    # Escaped backslashes go first, so that what is left before a quote really escapes it.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(plain.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    # Each round takes the innermost level away, at the speed of `replace`: a stranger's megabytes must not hold up
    # every other attempt of this process.
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise _malformed(f"the body is nested deeper than {MAX_DEPTH} levels, or its brackets don't match")


_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _malformed("the body has a key twice in one object")
    return value


def _refuse_constant(_: str) -> NoReturn:
    raise _malformed("NaN and Infinity are no JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _malformed("a number is too large for any reader of JSON")
    return number


def _malformed(message: str) -> Refused:
    return Refused(RefusalCode.MALFORMED, message, status=400)
