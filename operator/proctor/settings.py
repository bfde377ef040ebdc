"""Where things are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

DATA_DIR_VARIABLE = "PROCTOR_DATA_DIR"


def resolve_data_dir(chosen: Path | None) -> Path:
    """Return the folder for engines, datasets, runs and results, as an absolute path.

    Args:
        chosen: what the command was given; else it is the environment's choice, else in the user's data dir.
    """
    return (chosen or _default_data_dir()).expanduser().absolute()


def _default_data_dir() -> Path:
    named = os.environ.get(DATA_DIR_VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_data_path("proctor")


def shipped_scenarios_dir() -> Path:
    """Return the folder of the scenarios that ship with Proctor: inside the wheel, or a checkout's root."""
    package = Path(__file__).resolve().parent
    packaged = package / "_scenarios"
    return packaged if packaged.is_dir() else package.parents[1] / "scenarios"


def example_scenario_dir() -> Path:
    """Return the folder of the worked example, from which `proctor scenario new` makes others."""
    return Path(__file__).resolve().parent / "core" / "scenarios" / "example"
