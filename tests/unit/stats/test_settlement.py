"""Observations and rules → verdict: a table of cases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest

from proctor.core.ids import Arm, CellKey
from proctor.core.stats import (
    BaselineArm,
    CellFate,
    GateRules,
    Judgement,
    Observation,
    Reason,
    Side,
    judge_controls,
    settle,
)
from proctor.core.stats.figures import consistency_of, pass_k_of
from support.observations import controls, graded, lost

BASE, CAND = "base", "cand"
CONTROLS = controls(["s"], [BASE, CAND])
RULES = GateRules(
    max_drop=0.05,
    baseline=BaselineArm(Side.SERVER, BASE),
    played_through=frozenset({BASE, CAND}),
    scripted=frozenset({"m"}),
    seed=11,
)
STEADY = [0.80, 0.82, 0.81, 0.79, 0.80, 0.82, 0.81, 0.79]


def shifted(by: float) -> list[float]:
    return [score + by for score in STEADY]


def jittered(by: float) -> list[float]:
    return [score + by + (0.01 if index % 3 else -0.01) for index, score in enumerate(STEADY)]


@dataclass(frozen=True)
class Case:
    """One finished run and what it has to come to."""

    id: str
    cells: list[Observation]
    verdict: Judgement
    reason: Reason
    rules: GateRules = RULES
    controls: list[Observation] = field(default_factory=lambda: CONTROLS)


def pair(candidate: list[float], baseline: list[float] = STEADY) -> list[Observation]:
    return graded("s", BASE, baseline) + graded("s", CAND, candidate)


def without(cells: list[Observation], fate: CellFate, count: int, server: str = CAND) -> list[Observation]:
    """The same cells, the last `count` of a server lost."""
    dropped = [each.cell for each in cells if each.cell.server == server][-count:]
    return [lost(each.cell, fate) if each.cell in dropped else each for each in cells]


MINIMUM = GateRules(minimum=0.7, seed=11)
MANY = graded("s", BASE, STEADY * 10) + graded("s", CAND, jittered(0.0) * 10)
"""Scores that vary prove little in few cells; 80 pairs can show that nothing fell by more than 0.05."""
REAL = replace(RULES, scripted=frozenset())
LOOSE = replace(RULES, max_infra_percent=100, max_ungraded_percent=100)

CASES = [
    Case("same-scores", pair(STEADY), Judgement.PASS, Reason.WITHIN_MAX_DROP),
    Case("noise", MANY, Judgement.PASS, Reason.WITHIN_MAX_DROP),
    Case("noise-in-few-cells", pair(jittered(0.0)), Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE),
    Case("better", pair(jittered(0.1) * 6, STEADY * 6), Judgement.PASS, Reason.WITHIN_MAX_DROP),
    Case("same-scores-of-a-real-model", pair(STEADY), Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE, REAL),
    Case(
        "constant-scores-of-a-real-model",
        pair([1.0] * 8, [1.0] * 8),
        Judgement.INCONCLUSIVE,
        Reason.INTERVAL_TOO_WIDE,
        REAL,
    ),
    Case("same-scores-in-enough-cells", pair([1.0] * 75, [1.0] * 75), Judgement.PASS, Reason.WITHIN_MAX_DROP, REAL),
    Case("a-real-model-much-worse", pair([0.1] * 8, [0.9] * 8), Judgement.FAIL, Reason.MAX_DROP_EXCEEDED, REAL),
    Case("worse", pair(jittered(-0.2)), Judgement.FAIL, Reason.MAX_DROP_EXCEEDED),
    Case("worse-without-variance", pair(shifted(-0.2)), Judgement.FAIL, Reason.MAX_DROP_EXCEEDED),
    Case("exactly-max-drop-without-variance", pair(shifted(-0.05)), Judgement.PASS, Reason.WITHIN_MAX_DROP),
    Case("near-the-limit", pair(jittered(-0.05)), Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE),
    Case("one-pair", pair([0.8], [0.8]), Judgement.INCONCLUSIVE, Reason.TOO_FEW_REPLICATES),
    Case(
        "both-thresholds",
        pair(STEADY * 4, STEADY * 4),
        Judgement.PASS,
        Reason.WITHIN_LIMITS,
        replace(RULES, minimum=0.7),
    ),
    Case("minimum-holds", graded("s", CAND, STEADY * 4), Judgement.PASS, Reason.ABOVE_MINIMUM, MINIMUM),
    Case("below-minimum", graded("s", CAND, jittered(-0.4)), Judgement.FAIL, Reason.BELOW_MINIMUM, MINIMUM),
    Case(
        "around-minimum", graded("s", CAND, jittered(-0.1)), Judgement.INCONCLUSIVE, Reason.INTERVAL_TOO_WIDE, MINIMUM
    ),
    Case(
        "the-baseline-may-be-below-minimum",
        pair(STEADY * 4, shifted(-0.5) * 4),
        Judgement.PASS,
        Reason.WITHIN_LIMITS,
        replace(RULES, minimum=0.7),
    ),
    Case("no-threshold", pair(shifted(-0.5)), Judgement.PASS, Reason.MEASURED_ONLY, replace(RULES, max_drop=None)),
    Case(
        "no-earlier-pass",
        pair(STEADY),
        Judgement.INCONCLUSIVE,
        Reason.NO_BASELINE,
        GateRules(max_drop=0.05, baseline_missing=True),
    ),
    Case(
        "no-earlier-pass-but-a-minimum",
        pair(STEADY * 4, STEADY * 4),
        Judgement.PASS,
        Reason.ABOVE_MINIMUM,
        GateRules(minimum=0.7, max_drop=0.05, baseline_missing=True),
    ),
    Case("infra-within-budget", without(MANY, CellFate.INFRA_ERRORED, 16), Judgement.PASS, Reason.WITHIN_MAX_DROP),
    Case(
        "infra-above-budget",
        without(MANY, CellFate.INFRA_ERRORED, 17),
        Judgement.ERROR,
        Reason.TOO_MANY_INFRA_ERRORS,
    ),
    Case("ungraded-above-budget", without(MANY, CellFate.UNGRADED, 17), Judgement.ERROR, Reason.TOO_MANY_UNGRADED),
    Case("ungraded-would-decide", without(MANY, CellFate.UNGRADED, 16), Judgement.INCONCLUSIVE, Reason.UNGRADED_DECIDE),
    Case(
        "ungraded-baseline-hides-nothing",
        without(MANY, CellFate.UNGRADED, 16, BASE),
        Judgement.PASS,
        Reason.WITHIN_MAX_DROP,
    ),
    Case(
        "a-scenario-without-pairs",
        pair(STEADY) + [lost(CellKey("t", server, "m", 1), CellFate.INFRA_ERRORED) for server in (BASE, CAND)],
        Judgement.INCONCLUSIVE,
        Reason.TOO_FEW_REPLICATES,
        LOOSE,
    ),
    Case(
        "nothing-graded",
        without(without(pair(STEADY), CellFate.INFRA_ERRORED, 8), CellFate.INFRA_ERRORED, 8, BASE),
        Judgement.INCONCLUSIVE,
        Reason.TOO_FEW_REPLICATES,
        LOOSE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_verdicts(case: Case) -> None:
    """Statistics and verdict, M-A10, P5: each rule of the gate, its reason, and one sentence for people."""
    settlement = settle([*case.controls, *case.cells], case.rules)
    assert (settlement.verdict, settlement.reason) == (case.verdict, case.reason)
    assert settlement.summary
    assert len(settlement.summary) <= 256
    assert "nan" not in settlement.summary.lower()


def test_one_bad_arm_among_good_ones_fails() -> None:
    """Verdict: for every candidate and model."""
    cells = pair(STEADY) + graded("s", BASE, STEADY, model="n") + graded("s", CAND, jittered(-0.3), model="n")
    settlement = settle([*CONTROLS, *cells], RULES)
    assert settlement.verdict is Judgement.FAIL
    assert settlement.summary.startswith("cand × n ")
    assert [each.candidate for each in settlement.comparisons] == [Arm(CAND, "m"), Arm(CAND, "n")]


def test_models_are_compared_within_each_server() -> None:
    """Manifest: baseline {model: NAME}."""
    cells = [*graded("s", BASE, STEADY, model="old"), *graded("s", BASE, jittered(-0.2), model="new")]
    rules = replace(RULES, baseline=BaselineArm(Side.MODEL, "old"))
    settlement = settle([*CONTROLS, *cells], rules)
    assert settlement.verdict is Judgement.FAIL
    assert settlement.comparisons[0].baseline == Arm(BASE, "old")


def test_pairs_share_scenario_and_replicate() -> None:
    """Grading rule 10: unmatched cells are no pairs."""
    cells = without(pair(jittered(0.0)), CellFate.INFRA_ERRORED, 3)
    (comparison,) = settle([*CONTROLS, *cells], LOOSE).comparisons
    assert comparison.pairs == 5


def test_an_open_question_names_what_would_settle_it() -> None:
    """P31: Inconclusive with the minimum detectable difference and the replicates needed."""
    wide = [0.9, 0.7, 0.8, 0.6, 0.9, 0.7, 0.9, 0.7]
    settlement = settle([*CONTROLS, *pair(wide)], RULES)
    assert settlement.verdict is Judgement.INCONCLUSIVE
    (comparison,) = settlement.comparisons
    assert comparison.replicates_needed is not None
    assert comparison.replicates_needed > 8
    assert f"about {comparison.replicates_needed} replicates" in settlement.summary
    assert comparison.minimum_detectable is not None
    assert 0.2 < comparison.minimum_detectable < 0.4


def test_the_summary_reads_like_a_sentence() -> None:
    """Manifest's example: candidate, interval, baseline, difference, pairs, losses."""
    settlement = settle([*CONTROLS, *without(MANY, CellFate.INFRA_ERRORED, 1)], RULES)
    assert "cand × m 0.8" in settlement.summary
    assert " vs 0.8" in settlement.summary
    assert ": Δ " in settlement.summary
    assert "79 pairs; 1 of 164 infra" in settlement.summary


@pytest.mark.parametrize(
    ("oracle", "noop", "baseline", "expected"),
    [
        pytest.param({}, 0.0, BASE, None, id="in-line"),
        pytest.param({BASE: 0.95, CAND: 0.95}, 0.05, BASE, None, id="on-the-limits"),
        pytest.param({}, 0.3, BASE, (Judgement.ERROR, Reason.NOOP_ABOVE_CEILING), id="noop-scores"),
        pytest.param({CAND: 0.4}, 0.0, BASE, (Judgement.FAIL, Reason.CONTROL_REGRESSION), id="candidate-breaks-it"),
        pytest.param({BASE: 0.4}, 0.0, BASE, (Judgement.ERROR, Reason.ORACLE_BELOW_FLOOR), id="baseline-is-broken"),
        pytest.param(
            {BASE: 0.4, CAND: 0.4}, 0.0, BASE, (Judgement.ERROR, Reason.ORACLE_BELOW_FLOOR), id="broken-everywhere"
        ),
        pytest.param({CAND: 0.4}, 0.0, None, (Judgement.ERROR, Reason.ORACLE_BELOW_FLOOR), id="without-baseline"),
        pytest.param(
            {CAND: 0.4}, 0.3, BASE, (Judgement.ERROR, Reason.NOOP_ABOVE_CEILING), id="the-grader-is-asked-first"
        ),
    ],
)
def test_controls(
    oracle: dict[str, float], noop: float, baseline: str | None, expected: tuple[Judgement, Reason] | None
) -> None:
    """Manifest's controls: ours, the grader's, or the candidate's fault."""
    rules = replace(RULES, baseline=BaselineArm(Side.SERVER, baseline) if baseline else None)
    observed = controls(["s", "t"], [BASE, CAND], oracle=oracle, noop=noop)
    finding = judge_controls(observed, rules)
    assert (None if finding is None else (finding.verdict, finding.reason)) == expected
    if expected is not None:
        settlement = settle([*observed, *pair(STEADY)], rules)
        assert (settlement.verdict, settlement.reason) == expected


def test_a_candidate_measured_on_the_reference_server_is_no_regression() -> None:
    """Manifest's controls: without sqlTool the oracle ran elsewhere, so its score says nothing about the server."""
    rules = replace(RULES, played_through=frozenset({BASE}))
    finding = judge_controls(controls(["s"], [BASE, CAND], oracle={CAND: 0.4}), rules)
    assert finding is not None
    assert finding.verdict is Judgement.ERROR


def test_nothing_happening_is_an_error() -> None:
    """Architecture: a run without control scores can't pass."""
    assert settle(pair(STEADY), RULES).reason is Reason.CONTROLS_NOT_MEASURED
    silent = [lost(each.cell, CellFate.INFRA_ERRORED) for each in CONTROLS]
    assert settle([*silent, *pair(STEADY)], RULES).reason is Reason.CONTROLS_NOT_MEASURED
    assert settle([], RULES).verdict is Judgement.ERROR


def test_a_known_price_is_summed_and_an_unknown_one_is_unknown() -> None:
    """Statistics: unknown price ⇒ no USD, never 0."""
    priced = [replace(each, usd=Decimal("0.10")) for each in graded("s", BASE, STEADY)]
    figures = settle([*CONTROLS, *priced], MINIMUM).arms[0]
    assert figures.usd == Decimal("0.80")
    figures = settle([*CONTROLS, *priced[:-1], replace(priced[-1], usd=None)], MINIMUM).arms[0]
    assert figures.usd is None


def test_consistency_and_pass_k() -> None:
    """Statistics: share of replicate pairs that differ by less than 0.1; chance that k of k succeed."""
    assert consistency_of([[0.5, 0.5, 0.9], [0.1, 0.2]]) == pytest.approx(1 / 4)
    assert consistency_of([[0.5]]) is None
    assert pass_k_of([[1.0, 1.0, 1.0, 0.0]], 0.7) == pytest.approx(1 / 4)
    assert pass_k_of([[1.0, 1.0]], 0.7) is None


def test_impossible_observations_are_refused() -> None:
    """Statistics: a score belongs to a graded cell, and only to it."""
    with pytest.raises(ValueError, match="score"):
        Observation(cell=CellKey("s", "a", "m", 1), fate=CellFate.UNGRADED, score=0.0)
    with pytest.raises(ValueError, match="score"):
        Observation(cell=CellKey("s", "a", "m", 1), fate=CellFate.GRADED)
