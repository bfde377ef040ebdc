"""The status of a run that has no frozen suite: it waits for one, or was refused."""

from __future__ import annotations

from datetime import datetime

from proctor.api.gate import Enforcement
from proctor.api.run import EvalRunStatus, Phase, Verdict
from proctor.reconcile.conditions import Standing, build_conditions
from proctor.reconcile.observed import Isolation
from proctor.reconcile.status import cut_line


def build_unstarted(
    before: EvalRunStatus, *, verdict: Verdict, reason: str, summary: str, generation: int, now: datetime
) -> EvalRunStatus:
    """Return the status; an Error here lets nothing through, whatever the suite would have said."""
    terminal = verdict is not Verdict.PENDING
    line = cut_line(summary)
    standing = Standing(
        verdict=verdict,
        enforcement=Enforcement.ENFORCE,
        reason=reason,
        summary=line,
        suspended=False,
        seeded=False,
        isolation=Isolation.UNPROVEN,
        cells_may_start=False,
        graded=False,
    )
    return before.model_copy(
        update={
            "observed_generation": generation,
            "verdict": verdict,
            "reason": reason,
            "summary": line,
            "phase": Phase.COMPLETE if terminal else Phase.PREFLIGHT,
            "ended": now if terminal else None,
            "conditions": build_conditions(standing, before.conditions, generation=generation, now=now),
        }
    )
