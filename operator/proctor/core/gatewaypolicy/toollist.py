"""A server's list of tools: read strictly, pinned by digest, and compared at the start of every attempt (P26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core.digests import digest_json
from proctor.core.gatewaypolicy.tools import ToolPolicy

MAX_TOOLS = 1000
MAX_NAME = 256
Tool = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server offers, and what of it agents are served.

    Attributes:
        tools: the served tools, in the server's order and in its words.
        digest: digest of the served tools, whatever their order; empty with an error.
        names: all tools of the server.
        error: why the list can't be used; empty if it can.
    """

    tools: tuple[Tool, ...] = ()
    digest: str = ""
    names: tuple[str, ...] = ()
    error: str = ""

    @property
    def served_names(self) -> tuple[str, ...]:
        """The names of the served tools."""
        return tuple(tool["name"] for tool in self.tools)


def build_listing(tools: Sequence[object], policy: ToolPolicy, *, needed: Sequence[str] = ()) -> ToolListing:
    """Check a server's whole list and select what agents are served.

    Args:
        tools: the items of `tools/list`, all pages.
        policy: the suite's choice.
        needed: tools that the suite needs for itself, such as its `sqlTool`.

    Returns:
        The listing; its `error` names what is wrong.
    """
    names: list[str] = []
    good: list[Tool] = []
    for tool in tools:
        problem = _find_problem(tool, names)
        if problem or not isinstance(tool, dict):
            return ToolListing(error=problem)
        names.append(tool["name"])
        good.append(tool)
    found = tuple(names)
    if not found:
        return ToolListing(error="lists no tools")
    missing = policy.missing(found)
    if missing:
        return ToolListing(
            names=found, error=f"has no tool {_quote(missing)}, which the suite names; it has {_quote(found)}"
        )
    served = policy.select(good)
    if not served:
        return _refuse(found, "has no tool that agents may use")
    absent = tuple(name for name in needed if name not in {tool["name"] for tool in served})
    if absent:
        return ToolListing(
            names=found, error=f"has no tool {_quote(absent)}, which the suite needs; it has {_quote(found)}"
        )
    return ToolListing(served, digest_tools(served), found)


def digest_tools(tools: Sequence[Tool]) -> str:
    """Return the digest of tools with their descriptions and schemas; a server may list them in any order."""
    return digest_json(sorted(tools, key=lambda tool: str(tool["name"])))


def describe_change(pinned: ToolListing, seen: ToolListing) -> str:
    """Say in one line how a list differs from the pinned one; empty if it doesn't."""
    if seen.error:
        return seen.error
    if seen.digest == pinned.digest:
        return ""
    before, after = set(pinned.served_names), set(seen.served_names)
    parts = []
    if after - before:
        parts.append(f"new {_quote(tuple(sorted(after - before)))}")
    if before - after:
        parts.append(f"gone {_quote(tuple(sorted(before - after)))}")
    if not parts:
        old = {tool["name"]: tool for tool in pinned.tools}
        changed = tuple(sorted(tool["name"] for tool in seen.tools if tool != old.get(tool["name"])))
        parts.append(f"described otherwise {_quote(changed)}")
    return f"tools changed since Preflight: {'; '.join(parts)}"


def _find_problem(tool: object, names: Sequence[str]) -> str:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return "lists a tool without a name"
    name: str = tool["name"]
    if not name or len(name) > MAX_NAME or not name.isprintable():
        return f"lists a tool whose name is empty, longer than {MAX_NAME} characters or not printable"
    if len(names) >= MAX_TOOLS:
        return f"lists more than {MAX_TOOLS} tools"
    if name in names:
        return f"lists tool {name!r} twice"
    return ""


def _refuse(names: tuple[str, ...], problem: str) -> ToolListing:
    return ToolListing(names=names, error=f"{problem}; it has {_quote(names)}")


def _quote(names: Sequence[str], limit: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
