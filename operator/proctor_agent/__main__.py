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
from proctor_agent.ending import report_end
from proctor_agent.failures import EXIT_USAGE
from proctor_agent.wire import find_gateway


def main() -> int:
    """Run one investigation and return the exit code."""
    gateway = find_gateway(os.environ)
    if gateway is None:
        print("set PROCTOR_GATEWAY to unix:/path or http://host:port, and PROCTOR_TOKEN")
        return EXIT_USAGE
    return report_end(Conversation(gateway, stream=os.environ.get("PROCTOR_STREAM") != "0").run)


if __name__ == "__main__":
    sys.exit(main())
