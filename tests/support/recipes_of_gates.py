"""The recipes under examples/gates, as their products read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

GATES = Path(__file__).resolve().parents[2] / "examples" / "gates"


def load_gate(name: str) -> list[Any]:
    """Return the documents of a recipe."""
    return list(YAML(typ="safe").load_all(GATES / name))
