"""The `proctor` command."""

from __future__ import annotations

USAGE_EXIT_CODE = 64
"""Bad usage; the library's own 2 means Inconclusive here."""


def main() -> None:
    """Run the command line."""
    import sys

    from typer._click.exceptions import UsageError

    from proctor.cli.commands import build_app

    UsageError.exit_code = USAGE_EXIT_CODE
    build_app(sys.argv[1] if len(sys.argv) > 1 else None)()


if __name__ == "__main__":
    main()
