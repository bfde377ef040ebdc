"""The form of a request, before anything of its meaning: tricks with hosts, targets and framing end here (S15)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused

Headers = Sequence[tuple[bytes, bytes]]
"""As they came: lower-case names, repeated ones repeated."""

_ENCODED_PREFIX = b"/tools/"
"""Only a tool's name may need percent-encoding; anywhere else it would be an attempt to look like another path."""


def check_request(raw_path: bytes, headers: Headers, *, host_names: AbstractSet[str]) -> None:
    """Check target, host and framing of a request.

    Raises:
        Refused: one of them is not plain.
    """
    _check_target(raw_path)
    _check_host(_values(headers, b"host"), host_names)
    if _values(headers, b"transfer-encoding") and _values(headers, b"content-length"):
        raise Refused(RefusalCode.MALFORMED, "a request has a length or is chunked, never both", status=400)
    if len(_values(headers, b"content-length")) > 1:
        raise Refused(RefusalCode.MALFORMED, "a request has one length", status=400)
    if _values(headers, b"upgrade"):
        raise Refused(RefusalCode.MALFORMED, "there is nothing to upgrade to", status=400)


def find_credential(headers: Headers) -> str:
    """Return the one credential of a request.

    Raises:
        Refused: there is none, or more than one that differ.
    """
    found = {value.decode("latin-1").strip() for value in _values(headers, b"x-api-key")}
    for value in _values(headers, b"authorization"):
        scheme, _, credential = value.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise Refused(RefusalCode.TOKEN, "the authorization is not a bearer token", status=401)
        found.add(credential.strip())
    if len(found) != 1:
        word = "no token" if not found else "several tokens"
        raise Refused(RefusalCode.TOKEN, f"the request carries {word}; one is needed", status=401)
    return found.pop()


def _check_target(raw_path: bytes) -> None:
    if not raw_path.startswith(b"/"):
        raise Refused(RefusalCode.HOST, "the gateway is no proxy: a target is a path", status=400)
    plain = raw_path.startswith(_ENCODED_PREFIX) or b"%" not in raw_path
    if raw_path.startswith(b"//") or not plain or b"/../" in raw_path or b"\\" in raw_path:
        raise Refused(RefusalCode.PATH, "the path is not plain", status=403)


def _check_host(values: Sequence[bytes], host_names: AbstractSet[str]) -> None:
    if len(values) != 1:
        raise Refused(RefusalCode.HOST, "a request names one host", status=400)
    name, colon, port = values[0].decode("latin-1").rpartition(":")
    if not colon or not port.isdecimal():
        name = values[0].decode("latin-1")
    if name.lower() not in host_names:
        raise Refused(RefusalCode.HOST, "the gateway is not called that", status=403)


def _values(headers: Headers, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]
