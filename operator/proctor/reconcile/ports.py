"""What an executor has to provide so that decisions become effects; one machine and a cluster are two of them."""

from __future__ import annotations

from typing import Protocol

from proctor.api.run import EvalRunStatus
from proctor.reconcile.observed import Observed
from proctor.reconcile.plan import Action
from proctor.reconcile.snapshot import RunSnapshot


class Observer(Protocol):
    """Looks at the children of a run."""

    async def observe(self, run: RunSnapshot) -> Observed:
        """Return what exists now; never from memory alone.

        Raises:
            Retryable: the look failed; nothing may be concluded from it.
        """
        ...


class Applier(Protocol):
    """Brings effects about."""

    async def apply(self, run: RunSnapshot, action: Action) -> None:
        """Start an effect; return without waiting for its end. Applying an action twice does it once.

        Raises:
            Retryable: a later pass decides it again.
            Terminal: it can never be done; the next look must report it as a fault.
        """
        ...


class StatusWriter(Protocol):
    """Keeps a run's status."""

    async def write(self, run: RunSnapshot, status: EvalRunStatus) -> RunSnapshot:
        """Write the status in one patch and return the run with it.

        Raises:
            Retryable: nothing was written.
        """
        ...
