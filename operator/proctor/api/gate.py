"""The gate: what a run has to show to pass."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from proctor.api.fields import Closed, Name, Percent, Share, one_of, refuse


class Enforcement(StrEnum):
    """Whether a verdict other than Pass stops what waits for the run."""

    ENFORCE = "Enforce"
    AUDIT = "Audit"


class Baseline(Closed):
    """What the candidates are compared with."""

    server: Name | None = Field(default=None, description="A server of this suite; the others are candidates.")
    model: Name | None = Field(default=None, description="A model of this suite; the others are candidates.")
    last_passed: Literal[True] | None = Field(
        default=None, description="The server images of the last run that passed, run again as arms of this run."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(one_of(self, "server", "model", "last_passed"))
        return self


class ControlLimits(Closed):
    """Where the control cells have to end for the run's scores to mean anything."""

    oracle_at_least: Share = Field(default=Decimal("0.95"), description="Floor of the known-good answer's score.")
    noop_at_most: Share = Field(default=Decimal("0.05"), description="Ceiling of the empty answer's score.")


class Gate(Closed):
    """Thresholds, the baseline, and how much may be missing."""

    enforcement: Enforcement = Field(description="Enforce: only Pass lets through. Audit: only Error stops.")
    baseline: Baseline | None = Field(default=None, description="What `maxDrop` is measured against.")
    minimum: Share | None = Field(default=None, description="Least score: the interval's lower bound must reach it.")
    max_drop: Share | None = Field(
        default=None,
        description="Most that a candidate may score below the baseline, by the interval of paired differences.",
    )
    max_infra_errored_percent: Percent = Field(default=10, description="More cells lost to infrastructure: Error.")
    max_ungraded_percent: Percent = Field(default=10, description="More cells without a grade: Error.")
    controls: ControlLimits = Field(default=ControlLimits(), description="Limits for the control cells.")
