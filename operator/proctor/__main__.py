"""The `proctor` command."""

from __future__ import annotations

USAGE_EXIT_CODE = 64
"""Bad usage; the library's own 2 means Inconclusive here."""


def main() -> None:
    """Run the command line."""
    import gc
    import sys

    # Imports make some ten thousand objects that live for ever: looking through them for garbage again and again takes
    # a seventh of a short command's time.
    gc.set_threshold(50_000, 20, 20)

    from typer._click.exceptions import UsageError

    from proctor.cli.commands import build_app

    UsageError.exit_code = USAGE_EXIT_CODE
    build_app(sys.argv[1] if len(sys.argv) > 1 else None)()


if __name__ == "__main__":
    main()
