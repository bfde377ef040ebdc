"""What a machine has and lacks for running suites, and the one command that mends each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proctor.core.reports.grid import width_of
from proctor.core.reports.inert import make_inert


class State(StrEnum):
    """What a look at one thing found."""

    OK = "ok"
    LACKS = "lacks"
    """No run can go without it."""
    WITHOUT = "without"
    """Runs go without it, but for what it is for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what.
        state: what was found.
        what: in a few words.
        mend: the one command, or the one thing to do; empty where nothing is to be done.
    """

    name: str
    state: State
    what: str
    mend: str = ""


def can_run(findings: Sequence[Finding]) -> bool:
    """Say whether a run can go on this machine."""
    return all(finding.state is not State.LACKS for finding in findings)


def render_findings(findings: Sequence[Finding]) -> str:
    """Render one line per thing, the mend below it where there is one."""
    width = max(width_of(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<7}  {finding.name:<{width}}  {make_inert(finding.what)}")
        if finding.mend:
            lines.append(f"{'':<7}  {'':<{width}}  → {make_inert(finding.mend)}")
    lacking = sum(finding.state is State.LACKS for finding in findings)
    lines.append("a run can go" if not lacking else f"no run can go: {lacking} of {len(findings)} things are missing")
    return "\n".join(lines)


def build_findings_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "canRun": can_run(findings),
        "findings": [
            {"name": one.name, "state": one.state.value, "what": one.what, "mend": one.mend} for one in findings
        ],
    }
