"""Rows in ClickHouse's RowBinary, for the few column types that Proctor writes.

The driver's own insert imports pandas, if it is installed, only to find out that no data frame was given: seconds of
processor time in every process that records anything. This is smaller than what it would take to talk it out of that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DECIMAL_SCALE = 18
_EXACT = Context(prec=60)
"""More digits than a Decimal(38, S) has, so that scaling never rounds."""

_Encoder = Callable[[Any], bytes]


def encode_rows(rows: Iterable[Sequence[Any]], types: Sequence[str]) -> bytes:
    """Return rows as one RowBinary block.

    Raises:
        KeyError: a type that this module doesn't know.
        struct.error: an integer that its type can't hold.
    """
    encoders = [_ENCODERS[kind] for kind in types]
    return b"".join(encode(value) for row in rows for encode, value in zip(encoders, row, strict=True))


def _encode_text(value: bytes | str) -> bytes:
    body = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return _encode_varint(len(body)) + body


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _encode_instant(value: datetime) -> bytes:
    return struct.pack("<q", (value - _EPOCH) // _MICROSECOND)


def _encode_nullable_decimal(value: Decimal | None) -> bytes:
    if value is None:
        return b"\x01"
    scaled = int(value.scaleb(_DECIMAL_SCALE, _EXACT))
    return b"\x00" + scaled.to_bytes(16, "little", signed=True)


_ENCODERS: dict[str, _Encoder] = {
    "String": _encode_text,
    "UInt8": struct.Struct("<B").pack,
    "UInt16": struct.Struct("<H").pack,
    "UInt32": struct.Struct("<I").pack,
    "UInt64": struct.Struct("<Q").pack,
    "DateTime64(6, 'UTC')": _encode_instant,
    f"Nullable(Decimal(38, {_DECIMAL_SCALE}))": _encode_nullable_decimal,
}
