"""The whole command line, for whoever looks at all of it."""

from __future__ import annotations

from proctor.cli.commands import build_app

app = build_app()
