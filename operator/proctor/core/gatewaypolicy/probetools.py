"""Which tools Preflight calls to see that a server answers at all: those with which a call can do the least (M-A4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.core.gatewaypolicy.toollist import Tool

MAX_TRIED = 3
"""Some tools want an argument that their schema calls optional; three of that kind are no longer an accident."""

_CONDITIONS = ("anyOf", "oneOf", "allOf", "not", "if", "minProperties", "dependentRequired", "$ref")
"""Keywords by which a schema can ask for arguments without saying `required`."""


@dataclass(frozen=True, slots=True)
class ProbeTool:
    """A tool to be called without arguments.

    Attributes:
        name: the tool.
        suffices: whether its schema promises that no argument is needed; else the server is right to refuse the call.
    """

    name: str
    suffices: bool


def choose_probe_tools(tools: Sequence[Tool]) -> tuple[ProbeTool, ...]:
    """Return the tools to call, in order, until one gives a result.

    Tools that the server itself says may destroy something are left alone. Those that promise to need no argument come
    first, read-only ones before the rest; without any such, one tool that will refuse the call.

    Args:
        tools: the tools that agents are served.

    Returns:
        At most three, or one that needs arguments; nothing if no tool may be called.
    """
    harmless = sorted((tool for tool in tools if not _may_destroy(tool)), key=lambda tool: not _is_read_only(tool))
    ready = [ProbeTool(tool["name"], suffices=True) for tool in harmless if _takes_nothing(tool.get("inputSchema"))]
    if ready:
        return tuple(ready[:MAX_TRIED])
    return tuple(ProbeTool(tool["name"], suffices=False) for tool in harmless[:1])


def _takes_nothing(schema: object) -> bool:
    if not isinstance(schema, Mapping) or any(word in schema for word in _CONDITIONS):
        return False
    return schema.get("required") in (None, [])


def _is_read_only(tool: Tool) -> bool:
    return _hint(tool, "readOnlyHint") is True


def _may_destroy(tool: Tool) -> bool:
    """Whether the server says so; MCP's default for a tool that is declared to write is that it does."""
    if _is_read_only(tool):
        return False
    destroys = _hint(tool, "destructiveHint")
    return destroys is True or (_hint(tool, "readOnlyHint") is False and destroys is not False)


def _hint(tool: Tool, name: str) -> object:
    annotations = tool.get("annotations")
    return annotations.get(name) if isinstance(annotations, Mapping) else None
