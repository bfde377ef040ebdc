"""What one pass works on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from proctor.core.ids import CellKey
from proctor.reconcile.extending import awaits_growth, read_grown_progress
from proctor.reconcile.observed import Observed
from proctor.reconcile.preparing import is_prepared, is_seeded
from proctor.reconcile.progress import CellProgress
from proctor.reconcile.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True)
class Look:
    """The run, what was seen of its children, and what follows from it for every cell.

    Attributes:
        progress: of every cell that the run has by now, in the suite's order.
        now: the instant of the pass.
    """

    run: RunSnapshot
    observed: Observed
    progress: tuple[CellProgress, ...]
    now: datetime

    @property
    def seeded(self) -> bool:
        """Every scenario's dataset is committed."""
        return is_seeded(self.run.scenarios, self.observed)

    @property
    def prepared(self) -> bool:
        """Agents may start."""
        return is_prepared(self.run.scenarios, self.observed)

    @property
    def controls_final(self) -> bool:
        """Every control cell has its grade, or never will."""
        return all(cell.final for cell in self.progress if cell.key.control is not None)

    @property
    def ran(self) -> bool:
        """No cell will get another attempt."""
        return all(cell.ran for cell in self.progress)

    @property
    def awaits_growth(self) -> bool:
        """More cells may follow, once the grades are there that decide it."""
        return awaits_growth(self.run, self.progress)

    @property
    def by_key(self) -> dict[CellKey, CellProgress]:
        """Progress by cell."""
        return {cell.key: cell for cell in self.progress}


def take_look(run: RunSnapshot, observed: Observed, now: datetime, *, may_grow: bool = False) -> Look:
    """Derive every cell's progress from what was seen.

    Args:
        run: the run.
        observed: what was seen.
        now: the instant of the pass.
        may_grow: a further block of replicates may be begun now, where the suite allows one.
    """
    return Look(run, observed, read_grown_progress(run, observed, may_grow=may_grow), now)
