"""How Claude Code is started, and what of its requests passes the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.core.gatewaypolicy.bodies import check_body, rewrite_body
from proctor.core.gatewaypolicy.headers import select_betas
from proctor.core.gatewaypolicy.refusal import Refused
from proctor_agent.claude_settings import build_command, build_environment, build_servers

ADDRESS = "http://127.0.0.1:8787"


def recorded_body(**changes: Any) -> dict[str, Any]:
    """A request of the pinned version, second turn, as it arrived at the gateway."""
    cached = {"cache_control": {"type": "ephemeral"}}
    return {
        "model": "claude-test",
        "messages": [
            {"role": "user", "content": "What broke?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "mcp__tools__query", "input": {"sql": "s"}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "tool_use_id": "toolu_1",
                        "type": "tool_result",
                        "content": [{"type": "text", "text": "8"}],
                        **cached,
                    }
                ],
            },
        ],
        "system": [
            {"type": "text", "text": "You are a Claude agent, built on Anthropic's Claude Agent SDK.", **cached},
            {"type": "text", "text": "You are an SRE.", **cached},
        ],
        "tools": [{"name": "mcp__tools__query", "description": "Run one SELECT.", "input_schema": {"type": "object"}}],
        "metadata": {"user_id": '{"device_id":"36a8fa","account_uuid":"","session_id":"730e"}'},
        "max_tokens": 32000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "stream": True,
        **changes,
    }


BETAS = "claude-code-20250219,interleaved-thinking-2025-05-14,effort-2025-11-24"


THINKING: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "by budget": {"thinking": {"type": "enabled", "budget_tokens": 31_999}, "output_config": None},
    "none": {"thinking": None, "output_config": None, "max_tokens": 8192},
    "long": {"output_config": {"effort": "xhigh"}, "max_tokens": 128_000},
}
"""What it asks of models of different ages."""


@pytest.mark.parametrize("changes", THINKING.values(), ids=THINKING)
def test_all_that_the_pinned_version_sends_passes(changes: dict[str, Any]) -> None:
    """Runtimes: no 403 for body or headers; the device's id stays here."""
    body = {name: value for name, value in recorded_body(**changes).items() if value is not None}
    check_body(body, model="claude-test")
    passed = rewrite_body(body, most_output=100_000)
    assert set(body) - set(passed) == {"metadata"}
    assert ",".join(select_betas([(b"anthropic-beta", BETAS.encode())])) == BETAS


def test_its_experimental_requests_pass_too_but_no_tool_of_the_provider() -> None:
    """Runtimes: context edits and shown thinking stay inside; what the provider would run does not."""
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    check_body(recorded_body(context_management=edits), model="claude-test")
    for tool in ({"type": "web_search_20250305", "name": "web_search"}, {"type": "tool_search_tool", "name": "x"}):
        with pytest.raises(Refused):
            check_body(recorded_body(tools=[tool]), model="claude-test")


def test_one_server_no_tool_of_its_own_one_model() -> None:
    """Runtimes: built-in tools denied, one neutral server, every model variable the attempt's model."""
    command = build_command("/opt/claude", model="m", max_turns=26, system_file="/s", servers_file="/v")
    assert command[command.index("--tools") + 1] == ""
    assert command[command.index("--setting-sources") + 1] == ""
    assert command[command.index("--allowedTools") + 1] == "mcp__tools"
    assert command[command.index("--permission-mode") + 1] == "dontAsk"
    assert command[command.index("--max-turns") + 1] == "26"
    assert {"--strict-mcp-config", "--bare", "--no-session-persistence"} <= set(command)
    assert "--dangerously-skip-permissions" not in command
    environment = build_environment(ADDRESS, "tok", model="m", home="/tmp/home")
    assert {value for name, value in environment.items() if name.endswith("_MODEL")} == {"m"}
    assert environment["ANTHROPIC_BASE_URL"] == ADDRESS
    assert environment["HOME"] == "/tmp/home"
    servers = build_servers(ADDRESS, "tok")["mcpServers"]
    assert servers == {"tools": {"type": "http", "url": f"{ADDRESS}/mcp", "headers": {"Authorization": "Bearer tok"}}}
