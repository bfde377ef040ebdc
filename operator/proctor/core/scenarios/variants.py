"""Variants: a dictionary from which each dataset seed draws a scenario's surface. The structure of the truth stays.

A scenario's files are written as one dataset seed, `WRITTEN_SEED`, has them. For any other, this is the one place where
words, times and sizes are redrawn, when a file of the folder is loaded: whatever comes after knows the redrawn
documents only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, Field, StringConstraints, model_validator

from proctor.core.digests import digest_json
from proctor.core.scenarios.document import Document, FactName, load_document, parse_document
from proctor.core.scenarios.recipe_terms import Duration, parse_duration
from proctor.core.scenarios.redraw import Place, Redraw
from proctor.core.seeding.identity import VARIANTS_FILE, WRITTEN_SEED, read_variants

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,78}[A-Za-z0-9]$")]
"""What may stand in a name, a text, a pattern and a query alike: nothing in it has a meaning there."""

PlaceText = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+){1,11}$", max_length=200)
]
"""A place in the recipe: ``groups.refused_mails.rows``, ``groups.lost_checkouts.draws.at.time.0.from``."""

Figure = (
    Annotated[int, Field(ge=0, le=10**12)]
    | Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,12}(\.[0-9]{1,6})?[a-z]{0,2}$")]
)
"""A whole number, a share (`"0.4"`) or a span of time (`30s`), as the recipe has it at that place."""

ModelT = TypeVar("ModelT", bound=BaseModel)

_MAX_STEPS = 10_000


class Moved(Document):
    """A stretch of time that lies elsewhere in each draw."""

    by: tuple[Duration, Duration] = Field(description="Between which bounds it is moved: `[-8m, 10m]`.")
    step: Duration = Field(default="1m", description="By whole numbers of this.")
    places: list[PlaceText] = Field(
        min_length=1, max_length=20, description="The spans of time in the recipe that are moved together."
    )

    @model_validator(mode="after")
    def _has_steps(self) -> Self:
        least, most, step = (parse_duration(text) for text in (*self.by, self.step))
        if not (least < most and 0 < step <= most - least <= step * _MAX_STEPS):
            raise ValueError(f"`by` is two bounds, smaller first, that lie one to {_MAX_STEPS} steps apart")
        return self


class OneOf(Document):
    """A number, share or span of time that is another one in each draw."""

    of: list[Figure] = Field(min_length=2, max_length=30, description="What it may be: `[100, 150, 220]`.")
    places: list[PlaceText] = Field(
        min_length=1, max_length=20, description="The places in the recipe that have it, all of them the same."
    )

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if len({type(value) for value in self.of}) > 1:
            raise ValueError("`of` is either whole numbers or texts")
        return self


class Variants(Document):
    """What is redrawn; all of it by the dataset's seed alone."""

    words: dict[Word, Annotated[list[Word], Field(min_length=2, max_length=30)]] = Field(
        default={},
        max_length=200,
        description="Whole words of the folder's files (services, hosts, regions …), and what may stand for each.",
    )
    shuffled: list[Annotated[list[Word], Field(min_length=2, max_length=30)]] = Field(
        default=[], max_length=40, description="Words that change places with each other: which of several it is."
    )
    times: dict[FactName, Moved] = Field(default={}, max_length=40, description="Stretches of time that move.")
    values: dict[FactName, OneOf] = Field(
        default={}, max_length=40, description="Figures that differ: how strong a decoy is, how large a share."
    )
    sizes: list[Annotated[list[PlaceText], Field(min_length=2, max_length=20)]] = Field(
        default=[],
        max_length=20,
        description="Places of whole numbers that change places: which of several decoys is strongest.",
    )

    @model_validator(mode="after")
    def _is_unambiguous(self) -> Self:
        written = [*self.words, *(word for group in self.shuffled for word in group)]
        listed = [*written, *(word for others in self.words.values() for word in others)]
        repeated = _first_repeated([word.lower() for word in listed])
        if repeated is not None:
            raise ValueError(f"{repeated!r} stands here twice: two things would have one name")
        redrawn: list[Moved | OneOf] = [*self.times.values(), *self.values.values()]
        named = [*(one.places for one in redrawn), *self.sizes]
        repeated = _first_repeated([place for places in named for place in places])
        if repeated is not None:
            raise ValueError(f"{repeated!r} stands here twice: it can be redrawn but once")
        return self

    def draw(self, seed: int) -> Redraw:
        """Return what a dataset seed draws."""
        words = {word: others[_chance(seed, "word", word) % len(others)] for word, others in self.words.items()}
        for group in self.shuffled:
            words |= zip(group, _shuffle(group, seed), strict=True)
        moved: dict[Place, int] = {}
        for name, one in self.times.items():
            least, most, step = (parse_duration(text) for text in (*one.by, one.step))
            by = least + step * (_chance(seed, "time", name) % ((most - least) // step + 1))
            moved |= {read_place(place): by for place in one.places}
        dealt = {
            read_place(place): read_place(source)
            for group in self.sizes
            for place, source in zip(group, _shuffle(group, seed), strict=True)
        }
        values = {
            read_place(place): one.of[_chance(seed, "value", name) % len(one.of)]
            for name, one in self.values.items()
            for place in one.places
        }
        return Redraw({old: new for old, new in words.items() if old != new}, moved, dealt, values)


def load_part(folder: Path, file: str, model: type[ModelT], seed: int) -> ModelT:
    """Read one file of a scenario folder as a dataset seed has it.

    Raises:
        InvalidInput: there is none, or it is not what it should be.
    """
    return load_document(folder / file, model, find_redraw(folder, seed))


def find_redraw(folder: Path, seed: int) -> Redraw | None:
    """Return what a dataset seed redraws of a scenario folder; None if it has the files as they are written.

    Raises:
        InvalidInput: the folder's variants are at fault.
    """
    if seed == WRITTEN_SEED:
        return None
    text = read_variants(folder)
    return None if text is None else _parse(text, str(folder / VARIANTS_FILE)).draw(seed)


def read_place(text: str) -> Place:
    """Return the keys and places in lists that a place's text names."""
    return tuple(int(part) if part.isdecimal() else part for part in text.split("."))


@lru_cache(maxsize=32)
def _parse(text: str, source: str) -> Variants:
    return parse_document(text, Variants, source)


def _first_repeated(texts: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def _chance(seed: int, *of: str) -> int:
    return int(digest_json([seed, *of])[:15], 16)


def _shuffle(group: Sequence[str], seed: int) -> Iterator[str]:
    return iter(sorted(group, key=lambda one: _chance(seed, "order", *group, one)))
