"""How an agent ends: its answer, one harmless line that says why, and an exit code."""

from __future__ import annotations

from collections.abc import Callable

from proctor_agent.failures import EXIT_OUT_OF_MEMORY, AgentFailure, Malformed
from proctor_agent.wire import Gateway


def send_answer(gateway: Gateway, text: str, ended: str) -> str:
    """Send the answer, where there is one; return why the agent ended.

    Raises:
        AgentFailure: the gateway did not take it.
    """
    if not text.strip():
        return f"{ended}; there is no answer to send"
    gateway.fetch("PUT", "/answer", text.encode("utf-8", "replace"))
    return ended


def report_end(run: Callable[[], str]) -> int:
    """Run an agent, print why it ended, and return its exit code; `proctor_agent.failures` lists them."""
    try:
        print(_printable(run()))
    except AgentFailure as failure:
        print(_printable(f"{type(failure).__name__}: {failure}"))
        return failure.exit_code
    except RecursionError:
        # What was read well can still be too deep to be written.
        print("Malformed: nested too deeply")
        return Malformed.exit_code
    except MemoryError:
        print("out of memory")
        return EXIT_OUT_OF_MEMORY
    return 0


def _printable(text: str) -> str:
    """Return one harmless line: what it quotes was written by a model or a server."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:1000]
