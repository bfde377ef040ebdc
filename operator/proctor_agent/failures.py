"""Why an agent's run ends early, and the exit code that says so.

===== ==========================================================================================
code  meaning
===== ==========================================================================================
0     it answered, or stopped at a budget of the gateway, which keeps its own record of that
10    the gateway can't be reached, or closed the connection in the middle
11    the gateway or the model refused a request
12    a reply was not what its protocol promises
13    out of its own memory
14    Claude Code ended without a result
64    the environment lacks what it needs
125   whoever started it was gone before it began
===== ==========================================================================================
"""

from __future__ import annotations

EXIT_OUT_OF_MEMORY = 13
EXIT_USAGE = 64


class AgentFailure(Exception):  # noqa: N818 - the subclasses say what failed
    """The run can't go on."""

    exit_code = 1


class Unreachable(AgentFailure):
    """The gateway can't be reached, or closed the connection in the middle of a reply."""

    exit_code = 10


class Refused(AgentFailure):
    """A request was refused.

    Args:
        status: the HTTP status; 200 for an error inside a stream.
        kind: the error's type, one of the gateway's ``proctor_…`` words or the provider's.
        message: what it said.
    """

    exit_code = 11

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{status} {kind}: {message}")
        self.kind = kind
        self.message = message

    @property
    def is_limit(self) -> bool:
        """Whether a budget is used up: nothing is wrong, it is time to answer."""
        return self.kind.startswith("proctor_") and self.kind.endswith("_limit")

    @property
    def is_about_the_call(self) -> bool:
        """Whether only this call is refused, so that the model may try another."""
        return self.kind in _CALL_REFUSALS


_CALL_REFUSALS = frozenset(
    {"proctor_tool_refused", "proctor_malformed_request", "proctor_request_too_large", "proctor_path_refused"}
)


class Malformed(AgentFailure):
    """A reply was not what its protocol promises."""

    exit_code = 12


class NoResult(AgentFailure):
    """The agent's program ended without a result."""

    exit_code = 14
