"""What was seen of a run's children: the only thing, beside the run itself, that decisions rest on.

Nothing here is remembered by the decider. Whoever observes — the one-machine executor from its processes, an operator
from its pods — fills it anew for every pass, so that a crash at any line loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import AttemptRecord, ProcessExit


class Readiness(StrEnum):
    """How far a child is that a run needs."""

    ABSENT = "absent"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    """It will not come up by itself, and no further start can help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSeen:
    """The dataset of one scenario.

    Attributes:
        prepared: READY once its record is committed.
        served: READY once agents' servers can query it.
        digest: its identity (recipe, anchor, seed, volume, generator version); empty until known.
        message: what is wrong, for people.
    """

    prepared: Readiness = Readiness.ABSENT
    served: Readiness = Readiness.ABSENT
    digest: str = ""
    message: str = ""


class Isolation(StrEnum):
    """Whether sandboxes were shown to reach nothing but the gateway."""

    UNPROVEN = "unproven"
    ENFORCED = "enforced"
    BROKEN = "broken"
    WAIVED = "waived"
    """A person chose to run without; the run says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySeen:
    """The gateway of the run.

    Attributes:
        starts: how often it has been started; bounds restarts.
        message: its own last words, where it failed.
    """

    state: Readiness = Readiness.ABSENT
    starts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSeen:
    """What one server under test answered before the first cell, through one scenario's dataset.

    Attributes:
        tools_digest: digest of its tool list; empty where it gave none.
        reason: machine word of the failure; empty where it is fine.
        message: the server's own last words.
    """

    server: str
    scenario: str
    tools_digest: str = ""
    reason: str = ""
    message: str = ""


class AttemptState(StrEnum):
    """How far a started attempt is that the gateway does not list as ended."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    """Its process is gone; the gateway has not been told."""
    ENDING = "ending"
    """The gateway was told; the store has not acknowledged its rows."""
    LOST = "lost"
    """Its gateway or its sandbox went away under it; an infrastructure failure once its process is gone too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeen:
    """One attempt that was started.

    Attributes:
        created: when it was asked for.
        running: when its process began; None before that.
        waited_us: microseconds that it has waited for an overloaded provider.
        exit: how its process ended; None while it has not.
        stopping: it has been told to stop.
    """

    key: AttemptKey
    state: AttemptState
    created: datetime
    running: datetime | None = None
    waited_us: int = 0
    exit: ProcessExit | None = None
    stopping: bool = False


class GraderState(StrEnum):
    """How far the grader is."""

    ABSENT = "absent"
    RUNNING = "running"
    FINISHED = "finished"
    """It was told that no more attempts come, and has graded all."""
    FAILED = "failed"
    """It died; it may be started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeSeen:
    """The grade of one cell, as the grader's summary has it.

    Attributes:
        attempt: the attempt that was graded.
        score: None where the cell is ungraded.
        reason: why it is ungraded.
    """

    attempt: int
    score: Decimal | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderSeen:
    """The grader and its summary.

    Attributes:
        starts: how often it has been started; bounds restarts.
        finishing: it was told that no more attempts come.
        rubric_digest: of the rubric that it grades by; empty until known.
        judge_digest: of the judge model and its prompt; empty until known, or without a judge.
        agreement: of the judge's votes; None where nothing can be said of it.
        judge_tokens: what judging took, in and out.
        judge_usd: what that cost; None without a price.
        fault: why no grade of its can be trusted, such as planted answers that the judge ranked wrongly.
        message: its own last words, where it failed.
    """

    state: GraderState = GraderState.ABSENT
    starts: int = 0
    finishing: bool = False
    grades: Mapping[CellKey, GradeSeen] = field(default_factory=lambda: MappingProxyType({}))
    rubric_digest: str = ""
    judge_digest: str = ""
    agreement: Decimal | None = None
    judge_tokens: tuple[int, int] = (0, 0)
    judge_usd: Decimal | None = None
    fault: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """Something that no retry can mend, met while observing or applying.

    Attributes:
        reason: machine word, such as ``DiskFull``.
        message: what happened to which object, and what to do.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that was seen in one look.

    Attributes:
        datasets: by scenario.
        probes: None until every server was probed once.
        probing: a probe is going on.
        attempts: every attempt that was ever started and is neither in `ended` nor in `withdrawn`.
        ended: every attempt whose rows the store has acknowledged.
        withdrawn: attempts whose executor was stopped by a person or died. Nobody's failure: they count against no
            bound, and a record of one counts only if it is valid.
        faults: in the order in which they were met.
    """

    datasets: Mapping[str, DatasetSeen] = field(default_factory=lambda: MappingProxyType({}))
    isolation: Isolation = Isolation.UNPROVEN
    isolation_message: str = ""
    gateway: GatewaySeen = field(default_factory=GatewaySeen)
    probes: tuple[ProbeSeen, ...] | None = None
    probing: bool = False
    attempts: tuple[AttemptSeen, ...] = ()
    ended: tuple[AttemptRecord, ...] = ()
    withdrawn: frozenset[AttemptKey] = frozenset()
    grader: GraderSeen = field(default_factory=GraderSeen)
    faults: tuple[FaultSeen, ...] = ()
