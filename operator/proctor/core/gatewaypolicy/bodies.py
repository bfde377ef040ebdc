"""Bodies of Messages requests: only what a model needs to answer passes; nothing that reaches beyond it (S32).

A provider offers tools of its own — web search, code execution, remote MCP servers, files, URLs that it fetches — any
of which would give a sealed agent the internet. So the request is checked key by key against what is known to stay
inside, and whatever is not known is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.gatewaypolicy.blocks import (
    MESSAGE_KINDS,
    TEXT_KINDS,
    check_cache_control,
    check_content,
    check_keys,
    check_list,
    refuse_body,
)
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused

_PASSED = frozenset(
    {
        "cache_control",
        "context_management",
        "max_tokens",
        "messages",
        "model",
        "output_config",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_DROPPED = frozenset({"metadata", "service_tier"})
"""Harmless to ask for, and not the agent's to decide: who the user is, and at what price."""

_MESSAGE_KEYS = frozenset({"role", "content"})
_ROLES = frozenset({"user", "assistant", "system"})
_TOOL_KEYS = frozenset(
    {
        "allowed_callers",
        "cache_control",
        "description",
        "eager_input_streaming",
        "input_examples",
        "input_schema",
        "name",
        "strict",
        "type",
    }
)
_EDIT_KEYS = frozenset(
    {"type", "trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs", "clear_thinking"}
)
_EDIT_TYPES = frozenset({"clear_tool_uses_20250919", "clear_thinking_20251015"})
_OBJECT_KEYS = {
    "output_config": frozenset({"effort", "format"}),
    "thinking": frozenset({"type", "budget_tokens", "display"}),
    "tool_choice": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "context_management": frozenset({"edits"}),
}
_MAX_MESSAGES = 10_000
_MAX_TOOLS = 512
_MAX_EDITS = 16
_LEAST_THINKING = 1024
"""The provider refuses a smaller thinking budget."""


def check_body(body: Mapping[str, Any], *, model: str) -> None:
    """Check a request against what may be passed on.

    Args:
        body: the request.
        model: the one model of the attempt.

    Raises:
        Refused: it asks for another model, or for anything that is not known to stay inside.
    """
    if body.get("model") != model:
        raise Refused(RefusalCode.MODEL, "this attempt has one model, and it is another", status=403)
    check_keys(dict(body), _PASSED | _DROPPED, "body")
    _check_amounts(body)
    for name, keys in _OBJECT_KEYS.items():
        if body.get(name) is not None:
            check_keys(body[name], keys, name)
    check_cache_control(body.get("cache_control"), "body")
    if "system" in body:
        check_content(body["system"], TEXT_KINDS, "system")
    _check_messages(body.get("messages"))
    _check_tools(body.get("tools"))
    _check_edits(body.get("context_management"))


def rewrite_body(body: Mapping[str, Any], *, most_output: int) -> dict[str, Any]:
    """Return the request as it is passed on: what is not the agent's to decide dropped, its output within the budget.

    Args:
        body: a request that `check_body` let through.
        most_output: how many tokens it may produce.
    """
    passed = {key: value for key, value in body.items() if key in _PASSED}
    passed["max_tokens"] = min(body["max_tokens"], most_output)
    thinking = passed.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(budget, int) and budget >= passed["max_tokens"]:
        # Thinking is part of the output, and the provider wants it to be less than the whole.
        if passed["max_tokens"] > _LEAST_THINKING:
            passed["thinking"] = {**passed["thinking"], "budget_tokens": max(_LEAST_THINKING, passed["max_tokens"] - 1)}
        else:
            passed["thinking"] = {"type": "disabled"}
    return passed


def _check_amounts(body: Mapping[str, Any]) -> None:
    amount = body.get("max_tokens")
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise Refused(RefusalCode.MALFORMED, "max_tokens: not a whole number above 0", status=400)
    if not isinstance(body.get("stream", False), bool):
        raise Refused(RefusalCode.MALFORMED, "stream: neither true nor false", status=400)


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise Refused(RefusalCode.MALFORMED, "messages: a list of at least one is needed", status=400)
    for index, message in enumerate(check_list(messages, "messages", most=_MAX_MESSAGES)):
        where = f"messages.{index}"
        role = check_keys(message, _MESSAGE_KEYS, where).get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise refuse_body(where, "a role is user or assistant")
        check_content(message.get("content"), MESSAGE_KINDS if role != "system" else TEXT_KINDS, f"{where}.content")


def _check_tools(tools: object) -> None:
    if tools is None:
        return
    for index, tool in enumerate(check_list(tools, "tools", most=_MAX_TOOLS)):
        where = f"tools.{index}"
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in (None, "custom"):
            raise refuse_body(where, "only tools that the agent itself runs are passed on")
        check_keys(tool, _TOOL_KEYS, where)
        check_cache_control(tool.get("cache_control"), where)
        if tool.get("allowed_callers") not in (None, ["direct"]):
            raise refuse_body(f"{where}.allowed_callers", "only the model itself calls tools here")


def _check_edits(management: object) -> None:
    if not isinstance(management, dict):
        return
    for index, edit in enumerate(check_list(management.get("edits", []), "context_management.edits", most=_MAX_EDITS)):
        where = f"context_management.edits.{index}"
        kind = check_keys(edit, _EDIT_KEYS, where).get("type")
        if not isinstance(kind, str) or kind not in _EDIT_TYPES:
            raise refuse_body(where, "this kind of edit is not passed on")
