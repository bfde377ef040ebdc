"""What a dataset is called, and by which inputs. Light to import: finding a dataset must not take a second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from proctor.core.digests import digest_bytes, digest_json
from proctor.errors import InvalidInput

GENERATOR_VERSION = "1"
"""Changed with every change that makes other rows from the same recipe; part of a dataset's hash."""

RECIPE_FILE = "recipe.yaml"
ANSWER_FILE = "answer.yaml"
VARIANTS_FILE = "variants.yaml"

WRITTEN_SEED = 42
"""The dataset seed that has a scenario as its files are written; any other redraws what variants.yaml lists."""

_HASH_DIGITS = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_VOLUME = 1000
"""A bound against typing errors."""


class HasDigest(Protocol):
    """A recipe, seen from afar."""

    @property
    def digest(self) -> str:
        """What it is known by."""
        ...


def dataset_hash(recipe: HasDigest | str, seed: int, anchor: datetime, volume: Decimal) -> str:
    """Return the name of the dataset that these make: equal inputs, equal rows.

    Args:
        recipe: the recipe, or its digest.
        seed: the seed.
        anchor: the anchor.
        volume: the share of the background's rows.

    Raises:
        InvalidInput: the anchor has no zone, or the volume is out of range.
    """
    identity = {
        "generator": GENERATOR_VERSION,
        "recipe": recipe if isinstance(recipe, str) else recipe.digest,
        "seed": seed,
        "anchor": anchor_nanoseconds(anchor),
        "volume": f"{checked_volume(volume).normalize():f}",
    }
    return digest_json(identity)[:_HASH_DIGITS]


def anchor_nanoseconds(anchor: datetime) -> int:
    """Return an instant as nanoseconds since the epoch, exactly.

    Raises:
        InvalidInput: the anchor has no zone.
    """
    if anchor.tzinfo is None:
        raise InvalidInput(f"anchor {anchor}: it has no zone; append 'Z' or an offset")
    return (anchor - _EPOCH) // timedelta(microseconds=1) * 1000


def checked_volume(volume: Decimal) -> Decimal:
    """Return the volume.

    Raises:
        InvalidInput: it is out of range.
    """
    if not volume.is_finite() or not 0 < volume <= _LARGEST_VOLUME:
        raise InvalidInput(f"volume {volume}: must be above 0 and at most {_LARGEST_VOLUME}")
    return volume


def recipe_digest(folder: Path, seed: int = WRITTEN_SEED) -> str:
    """Return what `load_recipe(folder, seed).digest` is, without parsing.

    Raises:
        InvalidInput: there is no recipe.
    """
    return digest_recipe(read_recipe(folder), read_variants(folder), seed)


def digest_recipe(recipe: str, variants: str | None, seed: int) -> str:
    """Return the digest of what a recipe is made from: where the seed redraws it, the variants too.

    Args:
        recipe: the text of recipe.yaml.
        variants: the text of variants.yaml, if there is one.
        seed: the dataset's seed.
    """
    if variants is None or seed == WRITTEN_SEED:
        return digest_bytes(recipe.encode())
    return digest_json({"recipe": recipe, "variants": variants})


def read_recipe(folder: Path) -> str:
    """Return the text of a scenario folder's recipe.

    Raises:
        InvalidInput: there is none.
    """
    path = folder / RECIPE_FILE
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"recipe {path}: can't be read: {error}") from error


def answer_digest(folder: Path) -> str | None:
    """Return the digest of a scenario folder's answer key, without parsing; None if it has none.

    Raises:
        InvalidInput: it can't be read.
    """
    path = folder / ANSWER_FILE
    try:
        return digest_bytes(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"answer key {path}: can't be read: {error}") from error


def read_variants(folder: Path) -> str | None:
    """Return the text of a scenario folder's variants; None if it has none.

    Raises:
        InvalidInput: they can't be read.
    """
    path = folder / VARIANTS_FILE
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"variants {path}: can't be read: {error}") from error
