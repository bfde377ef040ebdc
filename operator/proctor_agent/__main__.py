"""The builtin agent: ``python -m proctor_agent``.

Environment, all that it reads:
    PROCTOR_GATEWAY: where the gateway is, ``unix:/path`` or ``http://host:port``.
    PROCTOR_TOKEN: the token of this attempt.
    PROCTOR_STREAM: ``0`` to take replies whole instead of streamed.

It writes one line to standard output: why it ended. `proctor_agent.failures` lists its exit codes.
"""

from __future__ import annotations

import os
import sys

from proctor_agent.conversation import Conversation
from proctor_agent.failures import EXIT_OUT_OF_MEMORY, EXIT_USAGE, AgentFailure
from proctor_agent.wire import Gateway, check_address


def main() -> int:
    """Run one investigation and return the exit code."""
    address, token = os.environ.get("PROCTOR_GATEWAY", ""), os.environ.get("PROCTOR_TOKEN", "")
    if not check_address(address) or not token.isascii() or not token.isprintable() or not token:
        print("set PROCTOR_GATEWAY to unix:/path or http://host:port, and PROCTOR_TOKEN")
        return EXIT_USAGE
    conversation = Conversation(Gateway(address, token), stream=os.environ.get("PROCTOR_STREAM") != "0")
    try:
        print(_printable(conversation.run()))
    except AgentFailure as failure:
        print(_printable(f"{type(failure).__name__}: {failure}"))
        return failure.exit_code
    except MemoryError:
        print("out of memory")
        return EXIT_OUT_OF_MEMORY
    return 0


def _printable(text: str) -> str:
    """Return one harmless line: what it quotes was written by a model or a server."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:1000]


if __name__ == "__main__":
    sys.exit(main())
