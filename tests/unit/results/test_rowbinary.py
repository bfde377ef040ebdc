"""Rows as ClickHouse reads them."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.adapters.clickhouse.results_rows import ATTEMPTS, BLOBS, EVENTS, GRADES, RUNS
from proctor.adapters.clickhouse.rowbinary import encode_rows

USD = "Nullable(Decimal(38, 18))"
INSTANT = "DateTime64(6, 'UTC')"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("String", b"\xff\x00", b"\x02\xff\x00"),
        ("String", "é", b"\x02\xc3\xa9"),
        ("String", b"x" * 300, b"\xac\x02" + b"x" * 300),
        ("UInt16", 513, b"\x01\x02"),
        ("UInt64", 2**64 - 1, b"\xff" * 8),
        (INSTANT, datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC), struct.pack("<q", 1_000_001)),
        (INSTANT, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), struct.pack("<q", -1)),
        (USD, None, b"\x01"),
        (USD, Decimal("1E-18"), b"\x00\x01" + bytes(15)),
        (USD, Decimal(-1), b"\x00" + (-(10**18)).to_bytes(16, "little", signed=True)),
    ],
)
def test_a_value_has_the_bytes_of_the_format(kind: str, value: Any, expected: bytes) -> None:
    """M-A8: written as ClickHouse documents RowBinary."""
    assert encode_rows([(value,)], [kind]) == expected


@given(st.integers(-(10**37), 10**37))
def test_no_digit_of_a_price_is_lost(scaled: int) -> None:
    """M-A8: thirty-eight digits, none of them rounded."""
    value = Decimal((scaled < 0, tuple(int(digit) for digit in str(abs(scaled))), -18))
    encoded = encode_rows([(value,)], [USD])
    assert int.from_bytes(encoded[1:], "little", signed=True) == scaled


def test_every_column_of_every_table_can_be_written() -> None:
    """M-A8: a new column with a new type is noticed here, not in a run."""
    for table in (EVENTS, ATTEMPTS, BLOBS, GRADES, RUNS):
        assert encode_rows([], table.column_types) == b""
