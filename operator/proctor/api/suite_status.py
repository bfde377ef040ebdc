"""Status of an EvalSuite: what a gate reads where Git holds the suite."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints

from proctor.api.fields import MAX_ARMS, Closed, Count, Cron, Image, Instant, Line, Name, Word
from proctor.api.run import Condition, Estimate, RunDigests, Verdict


class ArmScore(Closed):
    """Score of one arm."""

    server: Name = Field(description="Server of the arm.")
    model: Name = Field(description="Model of the arm.")
    score: Estimate = Field(description="Mean with its interval.")


class LastRun(Closed):
    """The newest finished run."""

    name: Name = Field(description="Name of the run.")
    verdict: Verdict = Field(description="Its verdict.")
    scores: Annotated[tuple[ArmScore, ...], Field(max_length=MAX_ARMS)] = Field(default=(), description="Per arm.")
    time: Instant = Field(description="When it ended.")


class LastPassed(Closed):
    """The newest run that passed: what `gate.baseline.lastPassed` runs again."""

    name: Name = Field(description="Name of the run.")
    images: Annotated[dict[Name, Image], Field(max_length=16)] = Field(
        default_factory=dict, description="Images that its servers ran, by server."
    )
    time: Instant = Field(description="When it ended.")


class GateStatus(Closed):
    """What the newest generation's run says; scheduled runs never touch it."""

    verdict: Verdict = Field(description="Verdict of that run.")
    reason: Word = Field(default="", description="Machine word that says why.")
    summary: Line = Field(default="", description="One sentence that says why.")
    run_ref: Name = Field(description="Name of that run.")
    for_generation: Annotated[StrictInt, Field(ge=0)] = Field(description="Generation that was run.")
    images: Annotated[dict[Name, Image], Field(max_length=16)] = Field(
        default_factory=dict, description="What `imageFrom` was found to be, by server; a change makes another run."
    )
    digests: RunDigests = Field(default=RunDigests(), description="What that run was fixed to.")


class ScheduleStatus(Closed):
    """How far the schedule's times are dealt with."""

    cron: Cron = Field(description="The schedule that is followed.")
    since: Instant = Field(description="Times up to this one are dealt with; at first, when the schedule was seen.")
    next: Instant = Field(description="The next time.")


class HistoryStatus(Closed):
    """Finished runs that are kept."""

    passed: Count = Field(default=0, description="Runs that passed.")
    failed: Count = Field(default=0, description="All other finished runs.")


class EvalSuiteStatus(Closed):
    """Where a suite stands."""

    observed_generation: Annotated[StrictInt, Field(ge=-1)] = Field(
        default=-1, description="Generation that this status describes; -1 from birth, so that nothing passes unseen."
    )
    gate: GateStatus | None = Field(default=None, description="For suites with runOnChange.")
    last_run: LastRun | None = Field(default=None, description="The newest finished run.")
    last_passed: LastPassed | None = Field(default=None, description="The newest run that passed.")
    schedule: ScheduleStatus | None = Field(default=None, description="For suites with a schedule.")
    run_request_id: Annotated[str, StringConstraints(max_length=128)] = Field(
        default="", description="The newest request that was met."
    )
    history: HistoryStatus = Field(default=HistoryStatus(), description="Finished runs that are kept.")
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = Field(
        default=(), description="kstatus and the suite's own."
    )
