"""What a `provision` hook may print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.gateway.provisioning import HOOK_FIELDS, HookError, Provisioned, find_secrets, parse_printed

ADDRESSES = ("https://sql.example", "https://sql.example:10443")


def read(printed: Any) -> Provisioned:
    return parse_printed(json.dumps(printed).encode(), addresses=ADDRESSES)


def test_the_dataset_by_variable() -> None:
    """Manifest, provision: the hook gets the dataset's fields as PROCTOR_DATASET_*."""
    assert HOOK_FIELDS == {
        "PROCTOR_DATASET_HOST": "host",
        "PROCTOR_DATASET_PORT": "port",
        "PROCTOR_DATASET_USER": "user",
        "PROCTOR_DATASET_PASSWORD": "password",
        "PROCTOR_DATASET_DATABASE": "database",
    }


@pytest.mark.parametrize(
    ("printed", "path"),
    [
        ({}, None),
        ({"url": "https://sql.example/mcp/7?team=a"}, "/mcp/7?team=a"),
        ({"url": "https://sql.example:443"}, "/"),
        ({"url": "https://sql.example:10443/mcp/7"}, "/mcp/7"),
        ({"url": None, "headers": {}}, None),
    ],
)
def test_a_url_chooses_a_path_of_the_servers_own_address(printed: dict[str, Any], path: str | None) -> None:
    """S17: as it is called here, or as the hook was told; both keys may be left out."""
    assert read(printed).path == path


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ([], "should be an object"),
        ("text", "should be an object"),
        ({"url": 7}, "url: "),
        ({"url": "file:///etc/passwd"}, "url: "),
        ({"url": "https://sql.example/a b"}, "url: "),
        ({"url": "https://sql.example@evil.example/mcp"}, "url: "),
        ({"url": "https://evil.example/mcp"}, "another scheme, host or port"),
        ({"url": "http://sql.example/mcp"}, "another scheme, host or port"),
        ({"url": "https://sql.example:8443/mcp"}, "another scheme, host or port"),
        ({"url": "https://sql.example:99999/mcp"}, "another scheme, host or port"),
        ({"headers": []}, "headers: "),
        ({"headers": {"A": 1}}, "headers: "),
        ({"headers": {"A b": "x"}}, "headers: "),
        ({"headers": {"A": "x\r\nHost: evil"}}, "headers: "),
        ({"headers": {"A": "x" * 8193}}, "headers: "),
        ({"headers": {f"A{number}": "x" for number in range(33)}}, "headers: "),
        ({"headers": {"A": "x", "a": "y"}}, "printed a header twice"),
        ({"headers": {"Mcp-Session-Id": "x"}}, "'Mcp-Session-Id', which belongs to the protocol"),
        ({"token": "t"}, "token: "),
    ],
)
def test_everything_else_is_refused_without_a_word_of_it(printed: Any, words: str) -> None:
    """S17: a closed schema; the error names the field, and never shows what was printed."""
    with pytest.raises(HookError, match=r".") as caught:
        read(printed)
    assert words in str(caught.value)
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize("line", [b"", b"done", b"\xff", b"{", b"[" * 60_000, b"x" * 70_000, b'{"url": NaN}'])
def test_what_is_no_json_object_is_refused(line: bytes) -> None:
    """Bad input: prose, cut JSON, bytes, deep nesting, a line without end."""
    with pytest.raises(HookError, match=r"its last line|a last line"):
        parse_printed(line, addresses=ADDRESSES)


def test_headers_are_told_apart_from_the_suites_by_name_alone() -> None:
    """One header of a name is sent, whatever its case."""
    made = Provisioned(headers={"authorization": "Bearer made"})
    assert made.over({"Authorization": "Bearer given", "X-Team": "a"}) == {
        "authorization": "Bearer made", "X-Team": "a",
    }  # fmt: skip
    assert "made" not in repr(made)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"headers": {"Authorization": "Bearer abcdefgh"}, "odd": 1}', {"Bearer abcdefgh", "abcdefgh"}),
        ('{"headers": {"A": 1, "B": "short"}}', set()),
        ('{"headers": "Bearer abcdefgh"}', set()),
        ("prose", set()),
    ],
)
def test_secrets_are_known_even_where_the_line_is_refused(line: str, found: set[str]) -> None:
    """S17: what was printed as a header is never shown, whatever else was wrong."""
    assert find_secrets(line.encode()) == found
