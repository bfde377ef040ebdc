"""Every series that the operator exports: its name, labels and meaning, stated once.

Labels name a namespace, a suite, a server or a model, or are words of a closed set; nothing that grows with runs, cells
or tools is one. `docs/metrics.md` is written from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from proctor.api.run import Verdict

VERDICT_VALUES = {
    Verdict.PASS: 1,
    Verdict.INCONCLUSIVE: 0,
    Verdict.FAIL: -1,
    Verdict.ERROR: -2,
    Verdict.CANCELLED: -3,
}
"""A verdict as a number: one series that changes, so that `== 1` can only mean Pass."""

SUITE = ("namespace", "suite")
ARM = (*SUITE, "server", "model")


class SeriesType(StrEnum):
    """What Prometheus calls the type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric.

    Attributes:
        name: as it is queried, without the suffixes of a histogram.
        labels: in the order in which readings give their values.
        meaning: one sentence, for people.
        words: the closed set that the last label is from; empty if it is a name.
    """

    name: str
    meaning: str
    labels: tuple[str, ...] = SUITE
    type: SeriesType = SeriesType.GAUGE
    words: tuple[str, ...] = ()


_VALUES = ", ".join(f"{value} {verdict.value}" for verdict, value in VERDICT_VALUES.items())

VERDICT = Series(name="proctor_suite_verdict", meaning=f"Verdict of the newest finished run: {_VALUES}.")
GATE_VERDICT = Series(
    name="proctor_suite_gate_verdict",
    meaning="Verdict that a gate on the suite sees, as above; absent while its run goes on and for suites without one.",
)
LAST_COMPLETED = Series(
    name="proctor_suite_last_completed_timestamp_seconds", meaning="When the newest finished run ended."
)
RUN_DURATION = Series(
    name="proctor_suite_run_duration_seconds", meaning="How long it took, from its first look to its verdict."
)
PHASE_DURATION = Series(
    name="proctor_suite_phase_duration_seconds",
    labels=(*SUITE, "phase"),
    words=("Seeding", "Enforcing", "Running"),
    meaning="What of it went into a phase that it came through: data, isolation, cells and their grades.",
)
CELLS = Series(
    name="proctor_suite_cells",
    labels=(*SUITE, "state"),
    words=("graded", "ungraded", "infra_errored", "cancelled"),
    meaning="Its cells by what became of them, controls included.",
)
OUTCOMES = Series(
    name="proctor_suite_outcomes",
    labels=(*SUITE, "outcome"),
    words=("completed", "gave_up", "turn_limit", "time_limit", "budget_limit", "agent_error", "infra_error"),
    meaning="Its ended cells by how they ended.",
)
CONTROL_SCORE = Series(
    name="proctor_suite_control_score",
    labels=(*SUITE, "control"),
    words=("oracle", "noop"),
    meaning="The worst score of a control: the known-good answer's lowest, the empty answer's highest.",
)
JUDGE_TOKENS = Series(
    name="proctor_suite_judge_tokens",
    labels=(*SUITE, "direction"),
    words=("input", "output"),
    meaning="What judging it took, of a suite with a judge.",
)
JUDGE_COST = Series(name="proctor_suite_judge_cost_usd", meaning="What that cost; absent where the price is unknown.")
JUDGE_AGREEMENT = Series(
    name="proctor_suite_judge_agreement", meaning="Krippendorff's alpha of the judge's votes; absent with one vote."
)
SUITE_INFO = Series(
    name="proctor_suite_info",
    type=SeriesType.INFO,
    labels=(*SUITE, "suite_digest", "gate_digest", "rubric_digest", "judge_digest"),
    meaning="Always 1; what the newest finished run was fixed to.",
)
ACTIVE_RUNS = Series(name="proctor_suite_active_runs", meaning="Runs that have no verdict yet.")
ACTIVE_CELLS = Series(
    name="proctor_suite_active_cells",
    labels=(*SUITE, "state"),
    words=("pending", "running", "done"),
    meaning="Cells of runs that have no verdict yet; pending ones are the queue.",
)
ACTIVE_SINCE = Series(
    name="proctor_suite_active_since_timestamp_seconds",
    meaning="When the oldest run began that has no verdict yet; absent without one.",
)
NEXT_RUN = Series(
    name="proctor_suite_next_run_timestamp_seconds",
    meaning="When the schedule starts the next run; absent without one.",
)
SCHEDULE_INTERVAL = Series(
    name="proctor_suite_schedule_interval_seconds", meaning="From one scheduled run to the next; absent without one."
)

SCORE = Series(name="proctor_arm_score", labels=ARM, meaning="Mean score over an arm's cells, 0 to 1.")
SCORE_LOW = Series(name="proctor_arm_score_low", labels=ARM, meaning="Lower end of its 95 % interval.")
SCORE_HIGH = Series(name="proctor_arm_score_high", labels=ARM, meaning="Upper end of its 95 % interval.")
ARM_GRADED = Series(name="proctor_arm_graded_cells", labels=ARM, meaning="Cells that the score is of.")
ARM_COST = Series(
    name="proctor_arm_cost_usd", labels=ARM, meaning="What the arm cost; absent where the price is unknown."
)
ARM_TOKENS = Series(name="proctor_arm_tokens", labels=ARM, meaning="All tokens of the arm.")
ARM_TOOL_CALLS = Series(name="proctor_arm_tool_calls", labels=ARM, meaning="Mean tool calls per cell.")
ARM_TOOL_ERRORS = Series(
    name="proctor_arm_tool_errors",
    labels=(*ARM, "class"),
    words=("agent", "server", "infra", "denied"),
    meaning="Tool calls that failed, by whose doing it was.",
)
ARM_CELL_SECONDS = Series(
    name="proctor_arm_cell_seconds", labels=ARM, meaning="Mean time per cell, without waiting for the provider."
)
ARM_CONSISTENCY = Series(
    name="proctor_arm_consistency", labels=ARM, meaning="Share of replicate pairs whose scores are within 0.1."
)

DELTA = Series(
    name="proctor_comparison_delta",
    labels=ARM,
    meaning="Mean paired difference of an arm, the candidate, from its baseline.",
)
DELTA_LOW = Series(name="proctor_comparison_delta_low", labels=ARM, meaning="Lower end of its 95 % interval.")
DELTA_HIGH = Series(name="proctor_comparison_delta_high", labels=ARM, meaning="Upper end of its 95 % interval.")
PAIRS = Series(name="proctor_comparison_pairs", labels=ARM, meaning="Pairs with a grade on both sides.")

OPERATOR_INFO = Series(
    name="proctor_operator_info", type=SeriesType.INFO, labels=("version",), meaning="Always 1; the operator's version."
)
LAST_PASS = Series(
    name="proctor_operator_last_pass_timestamp_seconds",
    labels=(),
    meaning="When the operator last went through all runs; it does so every ten seconds.",
)
WAITING = Series(name="proctor_operator_queue_depth", labels=(), meaning="Runs that wait for the operator's next pass.")
RECONCILE_SECONDS = Series(
    name="proctor_reconcile_duration_seconds",
    type=SeriesType.HISTOGRAM,
    labels=("kind",),
    words=("EvalRun", "EvalSuite"),
    meaning="How long one pass over an object took, failed ones included.",
)
RECONCILE_ERRORS = Series(
    name="proctor_reconcile_errors_total",
    type=SeriesType.COUNTER,
    labels=("kind",),
    words=("EvalRun", "EvalSuite"),
    meaning="Passes that failed; they are tried again.",
)
GATEWAY_SECONDS = Series(
    name="proctor_gateway_request_duration_seconds",
    type=SeriesType.HISTOGRAM,
    labels=(),
    meaning="How long the gateways of runs took to answer the operator.",
)

OF_SUITES = (
    VERDICT,
    GATE_VERDICT,
    LAST_COMPLETED,
    RUN_DURATION,
    PHASE_DURATION,
    CELLS,
    OUTCOMES,
    CONTROL_SCORE,
    JUDGE_TOKENS,
    JUDGE_COST,
    JUDGE_AGREEMENT,
    SUITE_INFO,
    ACTIVE_RUNS,
    ACTIVE_CELLS,
    ACTIVE_SINCE,
    NEXT_RUN,
    SCHEDULE_INTERVAL,
)
OF_ARMS = (
    SCORE,
    SCORE_LOW,
    SCORE_HIGH,
    ARM_GRADED,
    ARM_COST,
    ARM_TOKENS,
    ARM_TOOL_CALLS,
    ARM_TOOL_ERRORS,
    ARM_CELL_SECONDS,
    ARM_CONSISTENCY,
)
OF_COMPARISONS = (DELTA, DELTA_LOW, DELTA_HIGH, PAIRS)
OF_OPERATOR = (OPERATOR_INFO, LAST_PASS, WAITING, RECONCILE_SECONDS, RECONCILE_ERRORS, GATEWAY_SECONDS)
ALL = (*OF_SUITES, *OF_ARMS, *OF_COMPARISONS, *OF_OPERATOR)
