"""Cell tokens: what lets one attempt, and nothing else, through the gateway's doors (S16).

A token names only the attempt's opaque id and its own expiry; it tells nothing about scenario, server or model.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.ids import AttemptKey

MASKED = "[token]"
"""What is kept where a token was."""

_PREFIX = "pct1"
_SALT = b"proctor.dev/run-key/v1"
_MAX_TOKEN = 200
_PARTS = 4


def derive_run_key(master: bytes, run_uid: str) -> bytes:
    """Return the key of one run: HKDF-SHA256 (RFC 5869) of the master key, so that no run's key tells another's."""
    extracted = hmac.digest(_SALT, master, hashlib.sha256)
    # One block of output is one expand step.
    return hmac.digest(extracted, run_uid.encode() + b"\x01", hashlib.sha256)


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a token stands for.

    Attributes:
        key: the attempt.
        expires: the instant from which it no longer holds: the attempt's deadline and the cap on waiting.
    """

    key: AttemptKey
    expires: datetime

    @property
    def expires_seconds(self) -> int:
        """The expiry as whole seconds since the epoch, as the token carries it."""
        return int(self.expires.timestamp())


@dataclass(frozen=True, slots=True)
class PresentedToken:
    """The public parts of a token that someone sent; nothing of it is proven yet."""

    opaque_id: str
    expires_seconds: int
    mac: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a token.

        Raises:
            Refused: it does not have the form of one.
        """
        parts = text.split(".") if len(text) <= _MAX_TOKEN else []
        if len(parts) != _PARTS or parts[0] != _PREFIX or not (parts[2].isascii() and parts[2].isdecimal()):
            raise Refused(RefusalCode.TOKEN, "the token has not the form of a cell token", status=401)
        return cls(parts[1], int(parts[2]), parts[3])


def build_token(run_key: bytes, claims: TokenClaims) -> str:
    """Return the token of an attempt."""
    return f"{_PREFIX}.{claims.key.opaque_id}.{claims.expires_seconds}.{derive_secret(run_key, claims)}"


def derive_secret(run_key: bytes, claims: TokenClaims) -> str:
    """Return the part of an attempt's token that nobody can guess."""
    message = f"{claims.key.run}\n{claims.key.cell}\n{claims.key.attempt}\n{claims.expires_seconds}"
    return hmac.digest(run_key, message.encode(), hashlib.sha256).hex()


def mask_token(text: str, token: str) -> str:
    """Return a text in which what nobody can guess of a token has become `MASKED`."""
    return text.replace(token.rpartition(".")[2], MASKED)


def verify_token(run_key: bytes, token: PresentedToken, claims: TokenClaims, *, now: datetime) -> None:
    """Check a token against the attempt whose socket it came through.

    Raises:
        Refused: it is another attempt's, was altered, or has expired.
    """
    expected = derive_secret(run_key, claims)
    # Compared in full before anything is said, so that the time taken tells nothing about the right one.
    genuine = hmac.compare_digest(expected.encode(), token.mac.encode("utf-8", "surrogateescape"))
    if not genuine or token.opaque_id != claims.key.opaque_id or token.expires_seconds != claims.expires_seconds:
        raise Refused(RefusalCode.TOKEN, "the token does not belong to this attempt", status=401)
    if now >= claims.expires:
        raise Refused(RefusalCode.TOKEN_EXPIRED, "the token has expired with the attempt's deadline", status=401)
