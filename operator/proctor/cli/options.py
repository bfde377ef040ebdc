"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_WHERE = "Folder for engines, datasets and runs; else PROCTOR_DATA_DIR, or the user's data folder."

DataDir = Annotated[Path | None, typer.Option("--data-dir", help=_WHERE)]
"""Where this machine's data are."""
