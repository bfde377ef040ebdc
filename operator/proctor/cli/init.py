"""`proctor init`: a commented manifest to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.exits import explained


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init")(init)


def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("suite.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented EvalSuite that is valid as it stands. Exit codes: 0 written, 64 the file exists."""
    from proctor.api.starter import STARTER
    from proctor.errors import InvalidInput

    with explained():
        try:
            with path.open("w" if force else "x", encoding="utf-8") as file:
                file.write(STARTER)
        except FileExistsError as error:
            raise InvalidInput(f"{path} exists: name another file, or replace it with --force") from error
        except OSError as error:
            raise InvalidInput(f"writing {path}: {error.strerror}") from error
    typer.echo(f"wrote {path}; next: proctor validate {path}, then proctor run {path}")
