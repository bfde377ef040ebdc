"""What one pass works on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from proctor.core.ids import CellKey
from proctor.reconcile.cells import expand_cells
from proctor.reconcile.observed import Observed
from proctor.reconcile.preparing import is_prepared, is_seeded
from proctor.reconcile.progress import CellProgress, read_progress
from proctor.reconcile.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True)
class Look:
    """The run, what was seen of its children, and what follows from it for every cell.

    Attributes:
        progress: of every cell, in the suite's order.
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
    def by_key(self) -> dict[CellKey, CellProgress]:
        """Progress by cell."""
        return {cell.key: cell for cell in self.progress}


def take_look(run: RunSnapshot, observed: Observed, now: datetime) -> Look:
    """Derive every cell's progress from what was seen."""
    cells = expand_cells(run.suite)
    return Look(run, observed, read_progress(cells, observed, infra_retries=run.suite.limits.infra_retries), now)
