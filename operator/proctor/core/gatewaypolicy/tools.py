"""Which tools of a server an agent may see and call (S18): one answer for the list and for the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """The suite's choice for one server; exactly one of the two is given.

    Names are exact and case-sensitive. A denied name also denies what differs from it only in case: a server must not
    be able to offer the same tool under a second spelling.

    Attributes:
        allowed: the only tools that agents may use; None if `denied` decides.
        denied: tools that they may not use.
    """

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()

    @classmethod
    def of(cls, allowed: Iterable[str] | None, denied: Iterable[str] | None) -> ToolPolicy:
        """Return the policy for the two lists of a manifest."""
        return cls(None if allowed is None else frozenset(allowed), frozenset(denied or ()))

    def permits(self, name: str) -> bool:
        """Say whether agents may see and call a tool of this name."""
        if self.allowed is not None:
            return name in self.allowed
        return name.casefold() not in {denied.casefold() for denied in self.denied}

    def select(self, tools: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Return the tools that agents may see, in the server's order."""
        return tuple(tool for tool in tools if self.permits(tool["name"]))

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that the policy mentions and the server doesn't have: a typing error in the suite."""
        return tuple(sorted((self.allowed or self.denied) - set(names)))


class CallCheck(StrEnum):
    """What becomes of a call before the server sees it."""

    PASS = "pass"  # noqa: S105 - a word, not a secret
    DENIED = "denied"  # the policy forbids it, or it is another spelling of a tool
    UNKNOWN = "unknown"  # the server has nothing of the kind: the agent's mistake


def check_call(name: str, *, served: Iterable[str], all_names: Iterable[str]) -> CallCheck:
    """Decide on a call by name.

    Args:
        name: the tool that is called.
        served: the tools on the list that the agent is served.
        all_names: all tools of the server.
    """
    if name in set(served):
        return CallCheck.PASS
    if name.casefold() in {known.casefold() for known in all_names}:
        return CallCheck.DENIED
    return CallCheck.UNKNOWN
