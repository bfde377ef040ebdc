"""Names of the things that are scheduled, graded and counted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Control(StrEnum):
    """The two cells per scenario and server that show the instrument itself works."""

    ORACLE = "oracle"
    NOOP = "noop"


_CONTROL_MARK = "~"
"""No manifest name may start with it, so a control can't be mistaken for a model of the suite."""


@dataclass(frozen=True, order=True, slots=True)
class Arm:
    """Server × model: what is compared."""

    server: str
    model: str

    def __str__(self) -> str:
        return f"{self.server} × {self.model}"


@dataclass(frozen=True, order=True, slots=True)
class CellKey:
    """Scenario × arm × replicate: the smallest thing scheduled, graded and counted.

    Attributes:
        scenario: the scenario's name in the suite.
        server: the server's name in the suite.
        model: the model's name in the suite, or ``~oracle`` / ``~noop`` for a control.
        replicate: counted from 1.
    """

    scenario: str
    server: str
    model: str
    replicate: int

    @classmethod
    def for_control(cls, scenario: str, server: str, control: Control) -> Self:
        """Return the key of a control cell; there is one of each per scenario and server."""
        return cls(scenario, server, f"{_CONTROL_MARK}{control}", 1)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the form that ``str`` writes.

        Raises:
            ValueError: the text is not ``scenario/server/model/replicate``.
        """
        parts = text.split("/")
        if len(parts) != 4 or not all(parts) or not parts[3].isdecimal():  # noqa: PLR2004 - the four named above
            raise ValueError(f"cell {text!r} is not scenario/server/model/replicate")
        return cls(parts[0], parts[1], parts[2], int(parts[3]))

    @property
    def arm(self) -> Arm:
        """The arm that the cell belongs to."""
        return Arm(self.server, self.model)

    @property
    def control(self) -> Control | None:
        """Which control this is; None for a cell that is judged."""
        if self.model.startswith(_CONTROL_MARK):
            return Control(self.model.removeprefix(_CONTROL_MARK))
        return None

    def __str__(self) -> str:
        return f"{self.scenario}/{self.server}/{self.model}/{self.replicate}"


@dataclass(frozen=True, order=True, slots=True)
class AttemptKey:
    """One try of a cell; a second one follows only an infrastructure failure.

    Attributes:
        run: the EvalRun's uid.
        cell: the cell.
        attempt: counted from 1.
    """

    run: str
    cell: CellKey
    attempt: int

    @property
    def opaque_id(self) -> str:
        """A name that tells nothing about scenario, server or model: all that an agent may see (S20)."""
        return hashlib.sha256(f"{self.run}\n{self.cell}\n{self.attempt}".encode()).hexdigest()[:20]

    @property
    def columns(self) -> dict[str, str | int]:
        """The attempt as tables and exports have it: one column each, in this order."""
        cell = self.cell
        return {
            "run": self.run,
            "scenario": cell.scenario,
            "server": cell.server,
            "model": cell.model,
            "replicate": cell.replicate,
            "attempt": self.attempt,
        }

    def __str__(self) -> str:
        return f"{self.cell}#{self.attempt}"
