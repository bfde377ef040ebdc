"""A server's own credentials are taken out of what it says, and nothing else is changed."""

from __future__ import annotations

import json

import pytest

from proctor.adapters.mcp.scrub import MARK, Scrubber

TOKEN = 'tok/3n-ünïque-"quoted"-0123456789'


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_is_found_however_json_writes_it(ascii_only: bool) -> None:
    """S17: escaped or not, alone or inside a sentence; the rest stays byte for byte."""
    said = {"text": f"Authorization: Bearer {TOKEN}.", "other": "ünï/\\"}
    scrubbed = Scrubber([TOKEN])(json.dumps(said, ensure_ascii=ascii_only).encode())
    assert json.loads(scrubbed) == {**said, "text": f"Authorization: Bearer {MARK}."}


def test_escaped_slashes_hide_nothing() -> None:
    """S17: some writers escape slashes."""
    assert Scrubber(["a/secret/with/slashes"])(rb'{"t":"a\/secret\/with\/slashes"}') == f'{{"t":"{MARK}"}}'.encode()


def test_a_secret_inside_another_leaves_no_rest() -> None:
    """S17: the longest is taken out first."""
    assert Scrubber(["0123456789abcdef", "Bearer 0123456789abcdef"])(b"Bearer 0123456789abcdef") == MARK.encode()


def test_short_secrets_change_no_result() -> None:
    """Fidelity: a password `default` must not turn the database `default` into a mark."""
    assert Scrubber(["default", ""])(b'{"text":"default.otel_logs"}') == b'{"text":"default.otel_logs"}'
