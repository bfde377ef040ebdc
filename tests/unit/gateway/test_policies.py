"""The gateway's pure decisions: tokens, budgets, waiting, failures, prices, hosts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.adapters.models.hosts import check_provider_url
from proctor.core.gatewaypolicy.budget import Budget, BudgetLimits
from proctor.core.gatewaypolicy.pricing import TokenPrice, Usage
from proctor.core.gatewaypolicy.provider import (
    Meaning,
    ProviderFailure,
    choose_pause,
    classify_reply,
    classify_stream_error,
    parse_retry_after,
)
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.tokens import PresentedToken, TokenClaims, build_token, derive_run_key, verify_token
from proctor.core.gatewaypolicy.waiting import WaitLedger
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import Limit
from proctor.errors import InvalidInput

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = AttemptKey("run-1", CellKey("s", "server", "model", 1), 1)
CLAIMS = TokenClaims(KEY, NOW + timedelta(seconds=100))
RUN_KEY = derive_run_key(b"master" * 6, "run-1")
PRICE = TokenPrice(Decimal(5), Decimal(25), Decimal("0.5"), Decimal("6.25"))


def test_a_run_key_is_hkdf_of_the_master_key() -> None:
    """S16: one block of RFC 5869, so another implementation can derive the same; runs can't tell each other's."""
    import hashlib
    import hmac

    extracted = hmac.new(b"proctor.dev/run-key/v1", b"m" * 32, hashlib.sha256).digest()
    assert derive_run_key(b"m" * 32, "uid") == hmac.new(extracted, b"uid\x01", hashlib.sha256).digest()
    assert derive_run_key(b"m" * 32, "uid") != derive_run_key(b"m" * 32, "uid2")


def test_a_token_holds_for_its_attempt_alone() -> None:
    """S16, S20: it names nothing but the opaque id; any other claims or key refuse it."""
    text = build_token(RUN_KEY, CLAIMS)
    assert "server" not in text
    verify_token(RUN_KEY, PresentedToken.parse(text), CLAIMS, now=NOW)
    others = [
        (RUN_KEY, TokenClaims(AttemptKey("run-1", KEY.cell, 2), CLAIMS.expires)),
        (RUN_KEY, TokenClaims(AttemptKey("run-2", KEY.cell, 1), CLAIMS.expires)),
        (RUN_KEY, TokenClaims(KEY, CLAIMS.expires + timedelta(seconds=1))),
        (derive_run_key(b"master" * 6, "run-2"), CLAIMS),
    ]
    for run_key, claims in others:
        with pytest.raises(Refused):
            verify_token(run_key, PresentedToken.parse(text), claims, now=NOW)
    with pytest.raises(Refused) as caught:
        verify_token(RUN_KEY, PresentedToken.parse(text), CLAIMS, now=CLAIMS.expires)
    assert caught.value.code is RefusalCode.TOKEN_EXPIRED


@given(st.text(max_size=300))
def test_anything_else_is_no_token(text: str) -> None:
    """S16: no text but the token's own is let through, and none breaks the check."""
    with pytest.raises(Refused):
        verify_token(RUN_KEY, PresentedToken.parse(text), CLAIMS, now=NOW)


def make_budget(*, price: TokenPrice | None = PRICE, usd: Decimal | None = Decimal("0.01")) -> Budget:
    return Budget(BudgetLimits(turns=3, calls=2, tokens=1000, usd=usd, active_us=1_000_000), price)


def test_budgets_end_by_the_limit_that_was_hit_first() -> None:
    """S16: each limit is enforced before anything is sent; the first one hit is the one that counts."""
    budget = make_budget()
    assert budget.take_call(active_us=0) is None
    assert budget.take_call(active_us=0) is None
    assert budget.take_call(active_us=0) is Limit.CALLS
    assert [budget.take_turn(active_us=0) for _ in range(4)] == [None, None, None, Limit.TURNS]
    budget.return_turn()
    assert budget.take_turn(active_us=0) is None
    assert budget.hit is Limit.CALLS


def test_tokens_usd_and_time_end_too() -> None:
    """S16: tokens count cached ones; time is without waiting; USD needs a price."""
    tokens = make_budget(usd=None)
    tokens.charge(Usage(400, 300, 200, 100))
    assert tokens.take_turn(active_us=0) is Limit.TOKENS
    usd = make_budget()
    assert usd.charge(Usage(input_tokens=0, output_tokens=400)) == Decimal("0.01")
    assert usd.take_call(active_us=0) is Limit.USD
    assert make_budget().take_call(active_us=1_000_000) is Limit.TIME
    assert make_budget(price=None, usd=None).charge(Usage(10, 10)) is None


def test_output_is_capped_by_tokens_and_dollars() -> None:
    """S16: one call can't pass the budget by its output alone."""
    budget = make_budget()
    assert budget.cap_output(10_000) == 400  # 0.01 USD at 25 USD per million
    budget.charge(Usage(input_tokens=900))
    assert budget.cap_output(10_000) == 100
    assert budget.cap_output(50) == 50
    assert make_budget(usd=None).cap_output(10_000) == 1000


@pytest.mark.parametrize("value", [None, [], {"input_tokens": -5}, {"input_tokens": "7"}, {"input_tokens": True}])
def test_odd_counts_are_none(value: object) -> None:
    """M-A8: a provider's nonsense is no usage, and never negative."""
    assert Usage.parse(value).total == 0


def test_waits_at_the_same_time_count_once() -> None:
    """P23: two calls that wait for the same pause have waited once, open waits included."""
    ledger = WaitLedger()
    first = ledger.begin(0)
    second = ledger.begin(2_000_000)
    assert ledger.total_us(5_000_000) == 5_000
    ledger.end(first, 10_000_000)
    ledger.end(second, 12_000_000)
    ledger.add(11_000_000, 13_000_000)
    ledger.add(20_000_000, 21_000_000)
    assert ledger.total_us(99_000_000) == 14_000


@pytest.mark.parametrize(
    ("status", "kind", "meaning"),
    [
        (429, "rate_limit_error", Meaning.RETRY),
        (529, "overloaded_error", Meaning.RETRY),
        (500, "", Meaning.RETRY),
        (504, "timeout_error", Meaning.RETRY),
        (200, "overloaded_error", Meaning.RETRY),
        (401, "authentication_error", Meaning.KEY_REFUSED),
        (403, "permission_error", Meaning.KEY_REFUSED),
        (403, "", Meaning.KEY_REFUSED),
        (404, "not_found_error", Meaning.TERMINAL),
        (402, "billing_error", Meaning.TERMINAL),
        (307, "", Meaning.TERMINAL),
        (400, "invalid_request_error", Meaning.AGENTS_FAULT),
        (413, "request_too_large", Meaning.AGENTS_FAULT),
    ],
)
def test_what_a_failure_means(status: int, kind: str, meaning: Meaning) -> None:
    """P23, P24, grading rule 8: decided by status and type, not by words in a text."""
    import json

    body = (
        json.dumps({"type": "error", "error": {"type": kind, "message": "429 overloaded"}}).encode()
        if kind
        else b"<html>"
    )
    assert classify_reply(status, body).meaning is meaning


def test_errors_inside_a_stream_have_only_a_type() -> None:
    """P24: status 200 says nothing."""
    assert classify_stream_error("overloaded_error", "").meaning is Meaning.RETRY
    assert classify_stream_error("something_new", "").meaning is Meaning.RETRY
    assert classify_stream_error("authentication_error", "").meaning is Meaning.KEY_REFUSED
    assert classify_stream_error("invalid_request_error", "").meaning is Meaning.AGENTS_FAULT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0), ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0)]
    + [(odd, None) for odd in ("-1", "soon", "", "nan", None)],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    """P23: seconds or a date; nonsense counts as none."""
    assert parse_retry_after(value, now=NOW) == seconds


def test_a_pause_is_as_long_as_asked_for() -> None:
    """P23: what the provider names is honoured, else pauses grow to a cap with jitter."""
    asked = ProviderFailure(Meaning.RETRY, "x", retry_after=90)
    assert choose_pause(0, asked, most=30, jitter=0) == 90
    hurried = ProviderFailure(Meaning.RETRY, "x", retry_after=0)
    assert [choose_pause(retry, hurried, most=30, jitter=0) for retry in (0, 1, 20)] == [0.1, 0.2, 5]
    silent = ProviderFailure(Meaning.RETRY, "x")
    assert [choose_pause(retry, silent, most=30, jitter=0) for retry in (0, 3, 9, 10_000)] == [0.5, 4, 15, 15]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.anthropic.com", ["api.anthropic.com"]),
        ("https://API.anthropic.com:443/", ["api.anthropic.com:443"]),
        ("http://127.0.0.1:8080", ["127.0.0.1:8080"]),
        ("http://127.0.0.1:8080", ["127.0.0.1"]),
        ("http://[::1]:8080/base", ["[::1]:8080"]),
    ],
)
def test_allowed_hosts(url: str, allowed: list[str]) -> None:
    """S15: a key goes to hosts that were allowed."""
    assert check_provider_url(url, allowed) == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://evil.example", ["api.anthropic.com"]),
        ("https://api.anthropic.com.evil.example", ["api.anthropic.com"]),
        ("https://api.anthropic.com@evil.example", ["api.anthropic.com"]),
        ("https://evil.example@api.anthropic.com", ["api.anthropic.com"]),
        ("https://api.anthropic.com:8443", ["api.anthropic.com:443"]),
        ("http://api.anthropic.com", ["api.anthropic.com"]),
        ("http://127.0.0.1.evil.example", ["127.0.0.1.evil.example"]),
        ("https://api.anthropic.com?x=1", ["api.anthropic.com"]),
        ("https://api.anthropic.com:x", ["api.anthropic.com"]),
        ("ftp://api.anthropic.com", ["api.anthropic.com"]),
    ],
)
def test_other_hosts(url: str, allowed: list[str]) -> None:
    """S15: another host, a look-alike, another port, or the key in the clear."""
    with pytest.raises(InvalidInput):
        check_provider_url(url, allowed)
