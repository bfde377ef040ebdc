"""Scripted models: pure functions from a Messages request to the next assistant message.

They see what any model would see — the prompt, the tools, what the tools returned — and answer from that alone. So a
server that loses or mangles rows makes even the oracle fail, which is what it is there to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from proctor.core.agents.conversation import Conversation, read_conversation
from proctor.core.agents.general import LOUDEST, NEWEST
from proctor.core.agents.markers import fill_markers, find_markers, marker_names
from proctor.core.agents.replies import text_reply, tool_reply
from proctor.core.scenarios.policies import ANCHOR_MARKER, Policies, ScriptedPolicy
from proctor.errors import InvalidInput

_PLAIN = re2.compile(r"[A-Za-z0-9 ._:/+-]{1,200}")
"""What a marker's value may be to go into a query: a name, an id, a time. Nothing that ends a string."""


NOOP_ANSWER = "I looked at nothing, so I can't say what happened."


class GeneralPolicy(StrEnum):
    """Policies that every scenario has."""

    ORACLE = "oracle"
    NOOP = "noop"
    LOUDEST = "loudest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class SqlTool:
    """The tool through which a scripted model asks; as the suite's server declares it."""

    name: str
    argument: str


REFERENCE_SQL = SqlTool("run_sql", "query")
"""The gateway's own tool, for control cells of a server that has none."""


@dataclass(frozen=True, slots=True)
class ScriptContext:
    """What a scripted model knows beyond the request.

    Attributes:
        sql_tool: the tool to ask through; None if there is none.
        policies: the scenario's own policies; None plays the general ones only.
    """

    sql_tool: SqlTool | None = None
    policies: Policies | None = None


def find_policy(name: str, policies: Policies | None) -> ScriptedPolicy | None:
    """Return what a policy does; None for `noop`, which does nothing.

    Raises:
        InvalidInput: there is no such policy here.
    """
    match name:
        case GeneralPolicy.NOOP:
            return None
        case GeneralPolicy.LOUDEST:
            return LOUDEST
        case GeneralPolicy.NEWEST:
            return NEWEST
        case GeneralPolicy.ORACLE if policies is not None:
            return policies.oracle
        case _ if policies is not None and name in policies.impostors:
            return policies.impostors[name]
    known = list_policies(policies)
    raise InvalidInput(f"scripted policy {name!r}: the scenario has only {', '.join(known)}")


def list_policies(policies: Policies | None) -> tuple[str, ...]:
    """Return the names of what a scripted model may play in a scenario."""
    return (*GeneralPolicy, *(policies.impostors if policies else ()))


def reply(policy: str, body: Mapping[str, Any], context: ScriptContext) -> dict[str, Any]:
    """Return a scripted model's next message: a Messages response body, not streamed.

    Args:
        policy: `oracle`, `noop`, `loudest`, `newest`, or one of the scenario's impostors.
        body: the Messages request, whole conversation included.
        context: how to ask, and what the scenario's policies are.

    Raises:
        InvalidInput: there is no such policy here.
    """
    script = find_policy(policy, context.policies)
    if script is None:
        return text_reply(body, NOOP_ANSWER)
    conversation = read_conversation(body)
    if not script.steps:
        return text_reply(body, script.answer)
    tool = context.sql_tool and conversation.find_tool(context.sql_tool.name)
    if not tool or context.sql_tool is None:
        return text_reply(body, "No tool here takes SQL, so nothing was looked at.")
    values = _read_values(conversation)
    if conversation.calls < len(script.steps):
        query = script.steps[conversation.calls].query
        if _answerable(query, values):
            return tool_reply(body, tool, {context.sql_tool.argument: fill_markers(query, values)})
    missing = marker_names(script.answer) - set(values)
    if missing:
        return text_reply(body, f"The tools did not return {', '.join(sorted(missing))}, so there is no finding.")
    return text_reply(body, fill_markers(script.answer, values))


def _read_values(conversation: Conversation) -> dict[str, str]:
    values = {ANCHOR_MARKER: conversation.anchor} if conversation.anchor else {}
    for text in conversation.results:
        for name, value in find_markers(text).items():
            values.setdefault(name, value)
    return values


def _answerable(query: str, values: Mapping[str, str]) -> bool:
    """Whether all that the query needs was returned, in a form that may stand inside a quoted string."""
    return all(_PLAIN.fullmatch(values.get(name, "")) is not None for name in marker_names(query))
