"""Which tools an agent may use, and whether the list is the one that was pinned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.gatewaypolicy.toollist import MAX_TOOLS, ToolListing, build_listing, describe_change, digest_tools
from proctor.core.gatewaypolicy.tools import CallCheck, ToolPolicy, check_call

NAMES = st.lists(st.sampled_from(["run", "Run", "RUN", "list", "drop", "Straße", "STRASSE"]), unique=True)


def make_tools(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, "inputSchema": {"type": "object"}, **fields} for name in names]


def allow(*names: str) -> ToolPolicy:
    return ToolPolicy.of(names, None)


def deny(*names: str) -> ToolPolicy:
    return ToolPolicy.of(None, names)


@given(NAMES, NAMES)
def test_an_allow_list_admits_exactly_its_names(listed: list[str], allowed: list[str]) -> None:
    """S18: exact, case-sensitive; the list and the call agree."""
    policy = allow(*allowed)
    served = [tool["name"] for tool in policy.select(make_tools(*listed))]
    assert served == [name for name in listed if name in allowed]
    for name in listed:
        assert (check_call(name, served=served, all_names=listed) is CallCheck.PASS) is (name in served)


@given(NAMES, NAMES)
def test_a_deny_list_has_no_second_spelling(listed: list[str], denied: list[str]) -> None:
    """S18: what differs from a denied name only in case is denied too."""
    served = [tool["name"] for tool in deny(*denied).select(make_tools(*listed))]
    assert not {name.casefold() for name in served} & {name.casefold() for name in denied}


def test_calls_outside_the_list() -> None:
    """S18: another spelling is denied; what the server doesn't have at all is the agent's mistake."""
    known = {"served": ["run"], "all_names": ["run", "drop"]}
    assert check_call("run", **known) is CallCheck.PASS
    assert check_call("drop", **known) is CallCheck.DENIED
    assert check_call("RUN", **known) is CallCheck.DENIED
    assert check_call("other", **known) is CallCheck.UNKNOWN


@pytest.mark.parametrize(
    ("tools", "policy", "words"),
    [
        ([], deny(), "lists no tools"),
        (make_tools("a", "a"), deny(), "lists tool 'a' twice"),
        (make_tools("a"), allow("a", "b"), "has no tool 'b', which the suite names; it has 'a'"),
        (make_tools("a"), deny("b"), "has no tool 'b'"),
        (make_tools("a"), deny("a"), "has no tool that agents may use"),
        ([{"description": "x"}], deny(), "without a name"),
        (["a"], deny(), "without a name"),
        (make_tools(""), deny(), "empty"),
        (make_tools("a\nb"), deny(), "not printable"),
        (make_tools("a" * 300), deny(), "longer than"),
        (make_tools(*(f"t{n}" for n in range(MAX_TOOLS + 1))), deny(), f"more than {MAX_TOOLS}"),
    ],
)
def test_a_list_that_cannot_be_used_says_why(tools: list[object], policy: ToolPolicy, words: str) -> None:
    """P26, S18: named errors; no digest to pin."""
    listing = build_listing(tools, policy)
    assert words in listing.error
    assert listing.digest == ""


def test_a_tool_that_the_suite_needs() -> None:
    """The controls need the SQL tool: its absence shows before any cell."""
    assert build_listing(make_tools("a"), deny(), needed=("a",)).error == ""
    assert "which the suite needs" in build_listing(make_tools("a"), deny(), needed=("b",)).error


def test_the_digest_is_of_what_agents_see() -> None:
    """S18, M-B8: order and tools that are not served don't matter; a word of a description does."""
    pinned = build_listing(make_tools("a", "b", "c"), allow("a", "b"))
    assert pinned.digest == build_listing(make_tools("d", "b", "a"), allow("a", "b")).digest
    assert pinned.digest == digest_tools(make_tools("a", "b"))
    changed = build_listing([*make_tools("a"), *make_tools("b", description="x")], allow("a", "b"))
    assert describe_change(pinned, pinned) == ""
    assert describe_change(pinned, changed) == "tools changed since Preflight: described otherwise 'b'"


def test_a_change_is_told_in_one_line() -> None:
    """P26: new, gone, or unusable."""
    pinned = build_listing(make_tools("a", "b"), deny())
    seen = build_listing(make_tools("b", "c"), deny())
    assert describe_change(pinned, seen) == "tools changed since Preflight: new 'c'; gone 'a'"
    assert describe_change(pinned, ToolListing(error="lists no tools")) == "lists no tools"
