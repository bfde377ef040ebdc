"""The recipes under examples/gates, as their products read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

GATES = Path(__file__).resolve().parents[2] / "examples" / "gates"


def load_gate(name: str, here: Mapping[str, str] | None = None) -> list[Any]:
    """Return the documents of a recipe.

    Args:
        name: of its file.
        here: what stands for something of one's own in it, and what that is here; the recipe has each of these texts.
    """
    text = (GATES / name).read_text("utf-8")
    for placeholder, own in (here or {}).items():
        assert placeholder in text, f"{name} says no {placeholder!r}"
        text = text.replace(placeholder, own)
    return list(YAML(typ="safe").load_all(text))
