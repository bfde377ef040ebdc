"""EvalRun: counts that add up, a status that fits, and decimals that survive."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pydantic import ValidationError

from proctor.api.fields import MAX_ARMS, NameRef
from proctor.api.run import (
    ArmStatus,
    CellCounts,
    ComparisonStatus,
    Condition,
    ConditionStatus,
    ConditionType,
    Estimate,
    EvalRun,
    EvalRunSpec,
    EvalRunStatus,
    Failure,
    RunDigests,
    ServerOverride,
    Verdict,
)
from proctor.api.suite import Metadata
from proctor.core.trajectory.outcome import Outcome

LONG = "a" * 50
FIGURE = Decimal("-0.123456")


def _full_status() -> EvalRunStatus:
    """The largest status that the types admit, with wide characters where text is free."""
    estimate = Estimate(mean=FIGURE, low=FIGURE, high=FIGURE)
    names = [f"{index:02d}{'a' * 48}" for index in range(32)]
    digest = "f" * 64
    return EvalRunStatus(
        observed_generation=2**40,
        verdict=Verdict.INCONCLUSIVE,
        reason="R" * 64,
        summary="Δ" * 256,
        digests=RunDigests(
            suite=digest,
            datasets=dict.fromkeys(names, digest),
            rubric=digest,
            judge=digest,
            gate=digest,
            tools=dict.fromkeys(names[:16], digest),
        ),
        cells=CellCounts(total=2000, graded=2000),
        arms=(
            ArmStatus(
                server=LONG,
                model=LONG,
                score=estimate,
                standard_deviation=FIGURE,
                graded=2000,
                tool_calls="1" * 16,
                tokens=10**9,
                usd=Decimal("999999.999999"),
                seconds="1" * 16,
                consistency=FIGURE,
            ),
        )
        * MAX_ARMS,
        comparisons=(
            ComparisonStatus(
                model=LONG,
                baseline=LONG,
                candidate=LONG,
                pairs=2000,
                delta=FIGURE,
                low=FIGURE,
                high=FIGURE,
                minimum_detectable=FIGURE,
                p=FIGURE,
                replicates_needed=10_000,
            ),
        )
        * MAX_ARMS,
        top_failures=(Failure(cell="c" * 256, score=FIGURE, outcome=Outcome.COMPLETED, message="Δ" * 256),) * 10,
        conditions=tuple(
            Condition(
                type=kind,
                status=ConditionStatus.UNKNOWN,
                reason="R" * 64,
                message="m" * 1024,
                observed_generation=2**40,
                last_transition_time=datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC),
            )
            for kind in ConditionType
        ),
    )


def test_the_largest_status_fits() -> None:
    """API conventions: a status of 2 000 cells and 50 arms stays within 64 KiB."""
    status = _full_status()
    assert len(json.dumps(status.to_file(), ensure_ascii=False).encode()) <= 64 * 1024


def test_a_run_survives_writing_and_reading() -> None:
    """Manifest: the local run.json is this EvalRun; decimals stay exact, instants keep their zone."""
    run = EvalRun(
        metadata=Metadata(name="made-1", uid="u", generation=1),
        spec=EvalRunSpec(suite_ref=NameRef(name="made"), servers=(ServerOverride(name="a", image="x@sha256:ab"),)),
        status=_full_status(),
    )
    assert EvalRun.model_validate(json.loads(json.dumps(run.to_file()))) == run


def test_a_new_run_is_pending_and_unseen() -> None:
    """API conventions: verdict is never left out; observedGeneration −1 from birth, so that nothing passes unseen."""
    written = EvalRun(metadata=Metadata(name="a"), spec=EvalRunSpec(suite_ref=NameRef(name="a"))).to_file()
    assert written["status"]["verdict"] == "Pending"
    assert written["status"]["observedGeneration"] == -1


def test_counts_always_add_up() -> None:
    """P29, manifest: total is the sum of the rest, always."""
    with pytest.raises(ValidationError, match="sum of the rest"):
        CellCounts(total=3, graded=1, pending=1)


def test_names_of_outcomes_are_the_outcomes_own() -> None:
    """Manifest: gave_up, turn_limit, … keep their names in the status."""
    written = EvalRunStatus().to_file()["outcomes"]
    assert set(written) == {outcome.value for outcome in Outcome}


@pytest.mark.parametrize("field", ["servers", "models"])
def test_an_override_names_each_thing_once(field: str) -> None:
    """Bad input: duplicate names."""
    items = {"servers": {"name": "a", "image": "x"}, "models": {"name": "a", "scripted": {"policy": "noop"}}}
    with pytest.raises(ValidationError, match="already item 0"):
        EvalRunSpec.model_validate({"suiteRef": {"name": "s"}, field: [items[field]] * 2})
