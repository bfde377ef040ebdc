"""What of a Messages request passes: one table of what must, one of what must not (S32)."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.core.gatewaypolicy.bodies import check_body, rewrite_body
from proctor.core.gatewaypolicy.headers import build_provider_headers, select_betas
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused
from proctor.core.gatewaypolicy.strict_json import MAX_DEPTH, parse_object

TOOL = {"name": "run_query", "description": "SQL", "input_schema": {"type": "object", "properties": {"query": {}}}}


def make_body(**fields: Any) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **fields}


def with_block(block: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return make_body(messages=[{"role": role, "content": [block]}])


PASSING = {
    "plain": make_body(),
    "tools": make_body(tools=[TOOL, {**TOOL, "type": "custom", "strict": True}], tool_choice={"type": "auto"}),
    "system blocks": make_body(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]),
    "thinking": make_body(thinking={"type": "enabled", "budget_tokens": 2000}),
    "claude code": make_body(
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        metadata={"user_id": "device"},
        output_config={"effort": "high"},
        stream=True,
    ),
    "tool use": with_block(
        {"type": "tool_use", "id": "t", "name": "x", "input": {}, "caller": {"type": "direct"}}, "assistant"
    ),
    "tool result": with_block({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]}),
    "thinking block": with_block({"type": "thinking", "thinking": "x", "signature": "s"}, "assistant"),
    "image bytes": with_block(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}
    ),
    "document text": with_block(
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    ),
    "sampling": make_body(temperature=0.5, top_p=0.9, top_k=5, stop_sequences=["x"], service_tier="auto"),
}

URL_SOURCE = {"type": "url", "url": "http://evil.example/x"}
FILE_SOURCE = {"type": "file", "file_id": "file_1"}

REFUSED = {
    "web search": make_body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "web fetch": make_body(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]),
    "code execution": make_body(tools=[{"type": "code_execution_20250825", "name": "code_execution"}]),
    "bash": make_body(tools=[{"type": "bash_20250124", "name": "bash"}]),
    "memory": make_body(tools=[{"type": "memory_20250818", "name": "memory"}]),
    "mcp toolset": make_body(tools=[{"type": "mcp_toolset", "mcp_server_name": "x"}]),
    "called from code": make_body(tools=[{**TOOL, "allowed_callers": ["code_execution_20250825"]}]),
    "deferred tool": make_body(tools=[{**TOOL, "defer_loading": True}]),
    "odd tool type": make_body(tools=[{**TOOL, "type": ["custom"]}]),
    "mcp servers": make_body(mcp_servers=[{"type": "url", "url": "http://evil.example", "name": "x"}]),
    "container": make_body(container="container_1"),
    "fallbacks": make_body(fallbacks=[{"model": "claude-y"}]),
    "geography": make_body(inference_geo="us"),
    "unknown key": make_body(something_new=1),
    "image url": with_block({"type": "image", "source": URL_SOURCE}),
    "image file": with_block({"type": "image", "source": FILE_SOURCE}),
    "document url": with_block({"type": "document", "source": URL_SOURCE}),
    "document file": with_block({"type": "document", "source": FILE_SOURCE}),
    "document base64 with a url": with_block(
        {"type": "document", "source": {"type": "base64", "media_type": "x", "data": "", "url": "http://x"}}
    ),
    "nested image url": with_block(
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": URL_SOURCE}]}
    ),
    "image url in a document": with_block(
        {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": URL_SOURCE}]}}
    ),
    "container upload": with_block({"type": "container_upload", "file_id": "file_1"}),
    "server tool use": with_block(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, "assistant"
    ),
    "mcp tool use": with_block(
        {"type": "mcp_tool_use", "id": "s", "name": "x", "server_name": "y", "input": {}}, "assistant"
    ),
    "search result": with_block({"type": "search_result", "source": "http://x", "title": "t", "content": []}),
    "cited web page": with_block({"type": "text", "text": "x", "citations": [{"type": "web_search_result_location"}]}),
    "block without type": with_block({"text": "x"}),
    "block of odd type": with_block({"type": {"a": 1}}),
    "key in a message": make_body(messages=[{"role": "user", "content": "x", "name": "y"}]),
    "system image": make_body(system=[{"type": "image", "source": URL_SOURCE}]),
    "odd role": make_body(messages=[{"role": "tool", "content": "x"}]),
    "compaction": make_body(context_management={"edits": [{"type": "compact_20260112"}]}),
    "odd source type": with_block({"type": "document", "source": {"type": ["base64"]}}),
    "edits elsewhere": make_body(context_management={"url": "http://x"}),
    "content is a number": make_body(messages=[{"role": "user", "content": 7}]),
}


@pytest.mark.parametrize("body", PASSING.values(), ids=PASSING)
def test_what_stays_inside_passes(body: dict[str, Any]) -> None:
    """S32: a model's own means — tools that the agent runs, thinking, bytes in the request — pass."""
    check_body(body, model="claude-x")


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_reaches_beyond_is_refused(body: dict[str, Any]) -> None:
    """S32: provider-side tools, remote MCP, URL and file sources, and whatever is not known."""
    with pytest.raises(Refused) as caught:
        check_body(body, model="claude-x")
    assert (caught.value.code, caught.value.status) == (RefusalCode.BODY, 403)


@pytest.mark.parametrize(
    "fields",
    [{"max_tokens": 0}, {"max_tokens": True}, {"max_tokens": "5"}, {"stream": 1}, {"messages": []}, {"messages": "x"}],
)
def test_what_is_malformed_is_refused(fields: dict[str, Any]) -> None:
    """S32: amounts are whole numbers, messages a list."""
    with pytest.raises(Refused) as caught:
        check_body(make_body(**fields), model="claude-x")
    assert caught.value.status == 400


@pytest.mark.parametrize("model", ["claude-y", "CLAUDE-X", "", None, ["claude-x"]])
def test_another_model_is_refused(model: object) -> None:
    """S15: the model is pinned."""
    with pytest.raises(Refused) as caught:
        check_body(make_body(model=model), model="claude-x")
    assert caught.value.code is RefusalCode.MODEL


def test_a_request_is_rewritten_within_the_budget() -> None:
    """S15: who the user is stays here; output and thinking are capped together."""
    body = make_body(
        max_tokens=64_000, metadata={"user_id": "x"}, thinking={"type": "enabled", "budget_tokens": 32_000}
    )
    passed = rewrite_body(body, most_output=5_000)
    assert passed["max_tokens"] == 5_000
    assert passed["thinking"] == {"type": "enabled", "budget_tokens": 4_999}
    assert "metadata" not in passed
    assert rewrite_body(body, most_output=1_000)["thinking"] == {"type": "disabled"}
    assert rewrite_body(body, most_output=100_000)["thinking"]["budget_tokens"] == 32_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "a", "model": "b"}',
        b'{"a": {"tools": [], "tools": [1]}}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": ' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}",
        b"[" * 1_000_000,
        b'{"a": "\xff"}',
        b"[1]",
        b"",
        b"{",
        b'\xef\xbb\xbf{"a": 1}',
    ],
    ids=[
        "key twice",
        "inner key twice",
        "NaN",
        "infinite",
        "long number",
        "deep",
        "very deep",
        "bytes",
        "list",
        "empty",
        "cut",
        "mark",
    ],
)
def test_json_that_two_readers_could_read_differently(body: bytes) -> None:
    """S15, S32: duplicate keys, deep nesting and numbers that are none never reach a check."""
    with pytest.raises(Refused) as caught:
        parse_object(body)
    assert caught.value.status == 400


def test_brackets_inside_strings_do_not_count() -> None:
    """S21: text is not structure."""
    text = "[{" * 500 + r"\"" + "\\"
    assert parse_object(b'{"a": "[[[[\\"{{{{\\\\", "b": [[1]]}') == {"a": '[[[["{{{{\\', "b": [[1]]}
    import json

    assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}


def test_betas_are_selected() -> None:
    """S15, S32: what is known passes, what is unknown is dropped, what reaches beyond the model is refused."""
    asked = [
        (b"anthropic-beta", b"claude-code-20250219, new-2031-01-01"),
        (b"Anthropic-Beta", b"claude-code-20250219"),
    ]
    assert select_betas(asked) == ("claude-code-20250219",)
    for beta in (b"mcp-client-2025-11-20", b"code-execution-2025-08-25", b"files-api-2025-04-14", b"skills-2025-10-02"):
        with pytest.raises(Refused):
            select_betas([(b"anthropic-beta", b"claude-code-20250219," + beta)])
    headers = build_provider_headers("k", version="2026-10-21", betas=(), stream=False)
    assert set(headers) == {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "authorization",
        "content-type",
        "user-agent",
    }
