"""What `proctor run --dry-run` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from proctor.core.reports.plan import render_plan
from proctor.reconcile.planning import describe_plan as plan_suite

if TYPE_CHECKING:
    from proctor.api.suite import EvalSuite


def describe_plan(suite: EvalSuite, *, as_json: bool) -> str:
    """Return the cells of a suite and what they may cost, as a table or as JSON."""
    plan = plan_suite(suite)
    if as_json:
        # Decimals become text: money is never a float.
        return json.dumps(asdict(plan), default=lambda value: format(value, "f"), ensure_ascii=False)
    return render_plan(plan)
