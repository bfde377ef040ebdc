"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_WHERE = "Folder for engines, datasets and runs; else PROCTOR_DATA_DIR, or the user's data folder."

DataDir = Annotated[Path | None, typer.Option("--data-dir", help=_WHERE)]
"""Where this machine's data are."""

Scenarios = Annotated[
    Path | None,
    typer.Option("--scenarios", help="Folder with scenario folders of your own.", exists=True, file_okay=False),
]
"""Where scenarios of one's own are."""
