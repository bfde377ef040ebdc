"""How the programs of the sandbox's image are run: `proctor_agent`, of which nothing is installed."""

from __future__ import annotations

AGENT_FOLDER = "/opt/agent"
"""Where the image has the package; the folder says nothing of what it is for."""

_OPTIONS = ("-I", "-S", "-E", "-B")
"""No site, no environment, no user's folder: a fast start, and nothing but the standard library."""


def run_agent(module: str, *words: str) -> tuple[str, ...]:
    """Return how a module of `proctor_agent` is run, with what its `main` is given."""
    given = "sys.argv[1:]" if words else ""
    boot = f"import sys; sys.path.insert(0, {AGENT_FOLDER!r}); from {module} import main; sys.exit(main({given}))"
    return ("python3", *_OPTIONS, "-c", boot, *words)
