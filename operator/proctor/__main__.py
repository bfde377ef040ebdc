"""The `proctor` command."""

from __future__ import annotations

USAGE_EXIT_CODE = 64
"""Bad usage; the library's own 2 means Inconclusive here."""


def main() -> None:
    """Run the command line."""
    from typer._click.exceptions import UsageError

    from proctor.cli.app import app

    UsageError.exit_code = USAGE_EXIT_CODE
    app()


if __name__ == "__main__":
    main()
