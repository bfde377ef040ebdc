"""The phase of a run: one word for people, derived from what was seen and never decided on."""

from __future__ import annotations

from proctor.api.run import Phase
from proctor.reconcile.fixing import is_fixed
from proctor.reconcile.look import Look


def derive_phase(look: Look, *, terminal: bool) -> Phase:
    """Return the phase that describes the run after this pass."""
    if terminal:
        return Phase.COMPLETE
    if not look.seeded:
        # Nothing was asked for yet in the first pass; the executor has checked commands, secrets and hosts by then.
        return Phase.SEEDING if look.observed.datasets else Phase.PREFLIGHT
    if not look.prepared and not any(cell.ran for cell in look.progress):
        return Phase.ENFORCING
    return _derive_cell_phase(look)


def _derive_cell_phase(look: Look) -> Phase:
    if look.ran:
        return Phase.GRADING
    if look.run.suspend:
        return Phase.SUSPENDED
    return Phase.RUNNING if is_fixed(look.run) and look.controls_final else Phase.CONTROLS
