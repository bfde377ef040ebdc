"""Where things are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

DATA_DIR_VARIABLE = "PROCTOR_DATA_DIR"


def default_data_dir() -> Path:
    """Return the folder for engines, datasets, runs and results: the environment's choice, else the user's data dir."""
    chosen = os.environ.get(DATA_DIR_VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs

    return platformdirs.user_data_path("proctor")


def shipped_scenarios_dir() -> Path:
    """Return the folder of the scenarios that ship with Proctor: inside the wheel, or a checkout's root."""
    package = Path(__file__).resolve().parent
    packaged = package / "_scenarios"
    return packaged if packaged.is_dir() else package.parents[1] / "scenarios"
