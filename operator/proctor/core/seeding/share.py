"""Which rows of a dataset one of several workers loads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from proctor.errors import InvalidInput

MAX_PARTS = 256

_FORM = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Share:
    """One of several equal ranges of every source's row numbers.

    Attributes:
        part: which one, counted from 0.
        parts: of how many.
    """

    part: int
    parts: int

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.parts <= MAX_PARTS:
            raise InvalidInput(f"part {self}: write 1/N to N/N, with N at most {MAX_PARTS}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``2/4``: the second of four.

        Raises:
            InvalidInput: it is no such text, or there is no such part.
        """
        found = _FORM.fullmatch(text)
        if not found:
            raise InvalidInput(f"part {text[:20]!r}: write it like 2/4, the second of four")
        return cls(int(found[1]) - 1, int(found[2]))

    def __str__(self) -> str:
        return f"{self.part + 1}/{self.parts}"
