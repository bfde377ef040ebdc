"""EvalRun: one execution of a suite, with immutable inputs; the local ``run.json`` holds this very object."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StringConstraints, model_validator

from proctor.api.fields import (
    MAX_ARMS,
    Closed,
    Count,
    Digest,
    Figure,
    Flag,
    Image,
    Instant,
    Line,
    ModelId,
    Money,
    Name,
    NameRef,
    Word,
    refuse,
    repeated,
)
from proctor.api.gate import Enforcement
from proctor.api.model import Model
from proctor.api.suite import Metadata
from proctor.core.trajectory.outcome import Outcome


class Verdict(StrEnum):
    """A run's outcome; Pending until it is terminal, and never changed after that."""

    PENDING = "Pending"
    PASS = "Pass"  # noqa: S105 - a verdict, not a password
    FAIL = "Fail"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"
    CANCELLED = "Cancelled"

    @property
    def terminal(self) -> bool:
        """Whether it is final."""
        return self is not Verdict.PENDING


class Phase(StrEnum):
    """Where a run is; for people, machines read the verdict."""

    PENDING = "Pending"
    PREFLIGHT = "Preflight"
    SEEDING = "Seeding"
    ENFORCING = "Enforcing"
    CONTROLS = "Controls"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    GRADING = "Grading"
    COMPLETE = "Complete"


class ServerOverride(Closed):
    """Another image for one server of the suite."""

    name: Name = Field(description="Name of the server in the suite.")
    image: Image = Field(description="Image to run instead.")


class TtlStrategy(Closed):
    """When a finished run is deleted; left out, it is kept until the suite's history drops it."""

    seconds_after_pass: Annotated[StrictInt, Field(ge=0, le=31_536_000)] | None = Field(
        default=None, description="After Pass."
    )
    seconds_after_fail: Annotated[StrictInt, Field(ge=0, le=31_536_000)] | None = Field(
        default=None, description="After Fail or Inconclusive."
    )
    seconds_after_error: Annotated[StrictInt, Field(ge=0, le=31_536_000)] | None = Field(
        default=None, description="After Error or Cancelled."
    )


class EvalRunSpec(Closed):
    """Which suite to run, and what to change about it; immutable but for suspend, cancel and ttlStrategy."""

    suite_ref: NameRef = Field(description="The suite; it is frozen when the run starts, and never read again.")
    servers: Annotated[tuple[ServerOverride, ...], Field(max_length=16)] | None = Field(
        default=None, description="Other images, by name of the server."
    )
    replicates: Annotated[StrictInt, Field(ge=1, le=200)] | None = Field(
        default=None, description="Instead of the suite's replicates."
    )
    models: Annotated[tuple[Model, ...], Field(min_length=1, max_length=16)] | None = Field(
        default=None, description="Models that replace the suite's of the same name, or are added to them."
    )
    suspend: Flag | None = Field(default=None, description="Start no new cells; open ones end.")
    cancel: Flag | None = Field(default=None, description="End the run; grades and trajectories are kept.")
    ttl_strategy: TtlStrategy | None = Field(default=None, description="When the finished run is deleted.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        servers = repeated([server.name for server in self.servers or ()], "servers", "server")
        refuse(servers + repeated([model.name for model in self.models or ()], "models", "model"))
        return self


class RunDigests(Closed):
    """What the run was fixed to before its first cell; a change in the middle is an Error."""

    suite: Digest | None = Field(default=None, description="The frozen suite.")
    datasets: Annotated[dict[Name, Digest], Field(max_length=32)] = Field(
        default_factory=dict, description="Datasets by scenario."
    )
    rubric: Digest | None = Field(default=None, description="The rubrics of all scenarios.")
    judge: Digest | None = Field(default=None, description="The judge's model and prompts.")
    gate: Digest | None = Field(default=None, description="The gate's thresholds.")
    tools: Annotated[dict[Name, Digest], Field(max_length=16)] = Field(
        default_factory=dict, description="Tool lists by server, pinned in Preflight."
    )


class CellCounts(Closed):
    """Cells by how far they are; `total` is the sum of the rest, controls included."""

    total: Count = Field(default=0, description="All cells.")
    graded: Count = Field(default=0, description="Ended, with a grade.")
    ungraded: Count = Field(default=0, description="Ended, but no grade could be formed.")
    infra_errored: Count = Field(default=0, description="Lost to infrastructure, retries used up.")
    cancelled: Count = Field(default=0, description="Ended by request.")
    running: Count = Field(default=0, description="Open, or ended and not yet graded.")
    pending: Count = Field(default=0, description="Not started.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        rest = self.graded + self.ungraded + self.infra_errored + self.cancelled + self.running + self.pending
        if rest != self.total:
            raise ValueError(f"total {self.total} is not the sum of the rest, {rest}")
        return self


class Estimate(Closed):
    """A mean with its interval."""

    mean: Figure = Field(description="Mean over cells.")
    low: Figure = Field(description="Lower end of the 95 % interval.")
    high: Figure = Field(description="Upper end of the 95 % interval.")


class ToolErrors(Closed):
    """Tool calls that failed, by whose doing it was."""

    agent: Count = Field(default=0, description="The agent's own mistakes.")
    server: Count = Field(default=0, description="Calls that the server failed.")
    infra: Count = Field(default=0, description="Calls lost to infrastructure.")
    denied: Count = Field(default=0, description="Requests that policy refused.")


class ArmStatus(Closed):
    """What one arm showed."""

    server: Name = Field(description="Server of the arm.")
    model: Name = Field(description="Model of the arm.")
    score: Estimate | None = Field(default=None, description="Absent without a graded cell.")
    standard_deviation: Figure | None = Field(default=None, description="Of the scores, within scenarios.")
    deterministic: Flag = Field(
        default=False, description="Scripted, graded by checks alone, and without variation: the interval is the point."
    )
    graded: Count = Field(default=0, description="Cells that the score is of.")
    tool_calls: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Mean tool calls per cell."
    )
    tool_errors: ToolErrors | None = Field(default=None, description="Of its counting attempts; absent without one.")
    tokens: Count | None = Field(default=None, description="All tokens.")
    usd: Money | None = Field(default=None, description="Cost; absent where the price is unknown.")
    seconds: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Mean time per cell."
    )
    consistency: Figure | None = Field(
        default=None, description="Share of replicate pairs whose scores differ by less than 0.1."
    )


class ComparisonStatus(Closed):
    """A candidate beside its baseline, over pairs of the same scenario, replicate and dataset."""

    model: Name | None = Field(default=None, description="Model of both sides, where servers are compared.")
    server: Name | None = Field(default=None, description="Server of both sides, where models are compared.")
    baseline: Name = Field(description="The baseline's name.")
    candidate: Name = Field(description="The candidate's name.")
    pairs: Count = Field(description="Pairs with a grade on both sides.")
    delta: Figure | None = Field(default=None, description="Mean paired difference, candidate less baseline.")
    low: Figure | None = Field(default=None, description="Lower end of its 95 % interval.")
    high: Figure | None = Field(default=None, description="Upper end of its 95 % interval.")
    minimum_detectable: Figure | None = Field(
        default=None, description="Smallest difference found in 80 of 100 runs of this size."
    )
    p: Figure | None = Field(
        default=None, description="Permutation p-value after Holm's correction; reported, not used."
    )
    replicates_needed: Count | None = Field(
        default=None, description="Replicates that would settle an inconclusive comparison."
    )


class AdaptiveStop(StrEnum):
    """Why a run with adaptive replicates has no more of them."""

    SETTLED = "Settled"  # the verdict is settled
    MAX_REPLICATES = "MaxReplicates"  # it is not, and there may be no more
    HALTED = "Halted"  # more would not settle it: the run was cancelled, an Error, or has no baseline


class AdaptiveStatus(Closed):
    """How far a run with adaptive replicates has grown; absent in a run of a fixed size."""

    replicates: Count = Field(description="Replicates that it has by now.")
    max_replicates: Count = Field(description="Most that it may have.")
    block: Count = Field(description="Blocks that were begun; the first is the suite's replicates.")
    blocks: Count = Field(description="Most blocks that there may be.")
    stopped: AdaptiveStop | None = Field(default=None, description="Why there are no more; absent while there may be.")


class ControlsStatus(Closed):
    """The worst score of each control."""

    oracle: Figure | None = Field(default=None, description="The known-good answer's lowest score.")
    noop: Figure | None = Field(default=None, description="The empty answer's highest score.")


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """What can be said of a run, and what each answer means."""

    READY = "Ready"  # True: terminal, and the gate lets it through. False: not yet, or stopped
    RECONCILING = "Reconciling"  # True: going on. False: terminal or suspended
    STALLED = "Stalled"  # True: terminal and the gate stops it, or the spec can never run
    SEEDED = "Seeded"  # True: every dataset is committed
    NETWORK_ENFORCED = "NetworkEnforced"  # True: the canary found nothing reachable that must not be
    RUNNING = "Running"  # True: cells may start
    GRADED = "Graded"  # True: every ended cell has a grade or is ungraded
    COMPLETE = "Complete"  # True: terminal, whatever the verdict
    PASSED = "Passed"  # Unknown until terminal, and for Inconclusive, Error and Cancelled


class Condition(Closed):
    """One thing that holds, does not hold, or is not known."""

    type: ConditionType = Field(description="What is spoken of.")
    status: ConditionStatus = Field(description="Whether it holds.")
    reason: Word = Field(description="Machine word.")
    message: Annotated[str, StringConstraints(max_length=1024)] = Field(default="", description="For people.")
    observed_generation: Annotated[StrictInt, Field(ge=-1)] = Field(description="Generation of the spec spoken of.")
    last_transition_time: Instant = Field(description="When the status last changed.")


class JudgeStatus(Closed):
    """Who judged, and how far its votes can be relied on."""

    model: ModelId = Field(description="The judge's model.")
    votes: Count = Field(description="Votes per answer.")
    agreement: Figure | None = Field(
        default=None,
        description="Krippendorff's alpha of the votes; absent with one vote, and where all scores are the same.",
    )
    input_tokens: Count = Field(default=0, description="What judging took, planted answers and retries included.")
    output_tokens: Count = Field(default=0, description="As above.")
    usd: Money | None = Field(default=None, description="What these tokens cost; absent without a price, never 0.")


class Failure(Closed):
    """One of the worst cells."""

    cell: Annotated[str, StringConstraints(max_length=256)] = Field(description="scenario/server/model/replicate.")
    score: Figure | None = Field(default=None, description="Its score; absent if ungraded.")
    outcome: Outcome | None = Field(default=None, description="How it ended.")
    message: Line = Field(default="", description="Why, in one line.")


class Outcomes(Closed):
    """How ended cells ended, beside the counts."""

    completed: Count = Field(default=0, alias="completed", description="Answered.")
    gave_up: Count = Field(default=0, alias="gave_up", description="Ended without an answer, or without one tool call.")
    turn_limit: Count = Field(default=0, alias="turn_limit", description="Used up its turns.")
    time_limit: Count = Field(default=0, alias="time_limit", description="Used up its time.")
    budget_limit: Count = Field(default=0, alias="budget_limit", description="Used up calls, tokens or dollars.")
    agent_error: Count = Field(default=0, alias="agent_error", description="Crashed, or ran out of its own resources.")
    infra_error: Count = Field(default=0, alias="infra_error", description="Lost to infrastructure.")


class EvalRunStatus(Closed):
    """What a gate may rely on: written in one patch, together with observedGeneration."""

    observed_generation: Annotated[StrictInt, Field(ge=-1)] = Field(
        default=-1, description="Generation that this status describes; -1 from birth, so that nothing passes unseen."
    )
    verdict: Verdict = Field(default=Verdict.PENDING, description="The outcome.")
    enforcement: Enforcement | None = Field(default=None, description="Copied from the frozen suite.")
    reason: Word = Field(default="", description="Machine word that says why.")
    summary: Line = Field(default="", description="One sentence that says why.")
    phase: Phase = Field(default=Phase.PENDING, description="For people; machines read verdict and conditions.")
    started: Instant | None = Field(default=None, description="When the run started.")
    ended: Instant | None = Field(default=None, description="When it became terminal.")
    digests: RunDigests = Field(default=RunDigests(), description="What the run was fixed to before its first cell.")
    images: Annotated[dict[Name, Image], Field(max_length=32)] = Field(
        default_factory=dict, description="Images that its servers run, by server; empty on one machine."
    )
    cells: CellCounts = Field(default=CellCounts(), description="Cells by how far they are.")
    outcomes: Outcomes = Field(default=Outcomes(), description="How ended cells ended.")
    adaptive: AdaptiveStatus | None = Field(default=None, description="Of a suite with adaptive replicates.")
    arms: Annotated[tuple[ArmStatus, ...], Field(max_length=MAX_ARMS)] = Field(default=(), description="Per arm.")
    comparisons: Annotated[tuple[ComparisonStatus, ...], Field(max_length=MAX_ARMS)] = Field(
        default=(), description="Per candidate."
    )
    controls: ControlsStatus = Field(default=ControlsStatus(), description="The worst control scores.")
    judge: JudgeStatus | None = Field(default=None, description="Of a suite with a judge.")
    top_failures: Annotated[tuple[Failure, ...], Field(max_length=10)] = Field(
        default=(), description="The worst cells."
    )
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = Field(
        default=(), description="kstatus and the run's own."
    )

    @property
    def terminal(self) -> bool:
        """Whether the verdict is final."""
        return self.verdict.terminal


class EvalRun(Closed):
    """One execution of a suite."""

    api_version: Literal["proctor.dev/v1alpha1"] = Field(default="proctor.dev/v1alpha1", description="API version.")
    kind: Literal["EvalRun"] = Field(default="EvalRun", description="This kind.")
    metadata: Metadata = Field(description="What identifies the run.")
    spec: EvalRunSpec = Field(description="Which suite to run, and what to change about it.")
    status: EvalRunStatus = Field(default=EvalRunStatus(), description="What the run showed.")
