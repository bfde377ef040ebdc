"""Makers for tests of recipes and datasets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from proctor.core.scenarios.recipe import Recipe, load_recipe
from proctor.core.seeding.plan import SeedPlan, compile_plan

ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = Path(__file__).resolve().parent / "recipes" / "everything"
SHIPPED = ROOT / "scenarios" / "error-root-cause"


def make_recipe(**parts: Any) -> Recipe:
    """Make a valid recipe of one service and one stream; parts replace its own."""
    whole: dict[str, Any] = {
        "version": 1,
        "window": "1h",
        "resources": {"namespaces": ["blue"], "nodes": ["n1", "n2"], "regions": ["north"], "versions": ["1.0.0"]},
        "services": {"api": {"instances": 2}},
        "pools": {"colours": {"values": {"red": 3, "green": 1}}},
        "streams": {"requests": make_stream()},
    }
    return Recipe.model_validate(whole | parts)


def make_stream(*, rows: int = 100, **parts: Any) -> dict[str, Any]:
    """Make a stream of one span and one log; `draws` and `texts` are added, other parts replaced."""
    draws: Mapping[str, Any] = {
        "at": {"time": [{"from": "-1h"}]},
        "pod": {"instance": "api"},
        "colour": {"pick": "colours"},
        "took": {"between": ["1ms", "2ms"]},
    }
    stream = {
        "rows": rows,
        "draws": {**draws, **parts.pop("draws", {})},
        "spans": {
            "root": {
                "resource": "pod",
                "name": "GET /{colour}",
                "start": ["at"],
                "duration": "took",
                "attributes": {"colour": "{colour}"},
            }
        },
        "logs": {"line": {"resource": "pod", "time": ["at"], "span": "root", "body": "saw {colour}"}},
    }
    return stream | parts


def make_plan(recipe: Recipe, *, seed: int = 42, anchor: datetime = ANCHOR, volume: str = "1") -> SeedPlan:
    """Compile a recipe."""
    return compile_plan(recipe, seed=seed, anchor=anchor, volume=Decimal(volume))


def load_everything() -> Recipe:
    """Read the recipe that uses every kind of draw and emission."""
    return load_recipe(EVERYTHING)
