"""The operator's metrics: what statuses say, no more, and nothing of what is gone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proctor.adapters.prometheus import catalogue
from proctor.adapters.prometheus.metrics import Kind, OperatorMetrics
from proctor.api.run import JudgeStatus, Verdict
from support.measured import at, make_arm, make_finished, make_going_on, make_suite_status

OF_SUITES = {series.name for series in (*catalogue.OF_SUITES, *catalogue.OF_ARMS, *catalogue.OF_COMPARISONS)}

Sample = tuple[str, frozenset[tuple[str, str]]]


def _scrape(metrics: OperatorMetrics) -> dict[Sample, float]:
    samples: dict[Sample, float] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} twice: Prometheus would refuse the whole scrape"
            samples[key] = sample.value
    return samples


def _of_suites(metrics: OperatorMetrics) -> dict[Sample, float]:
    return {key: value for key, value in _scrape(metrics).items() if key[0] in OF_SUITES}


def _value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    return _scrape(metrics).get((name, frozenset({"namespace": "a", "suite": "s", **labels}.items())))


def _metrics() -> OperatorMetrics:
    metrics = OperatorMetrics("1.2.3")
    metrics.observe_suite("a", "s", make_suite_status())
    return metrics


def test_a_finished_run_is_told_in_full() -> None:
    """Metrics: score, interval, deltas, verdict, outcomes, cost, tokens, tool errors, durations, last completion."""
    metrics = _metrics()
    judge = JudgeStatus(
        model="j", votes=3, agreement=Decimal("0.8"), input_tokens=10, output_tokens=5, usd=Decimal("0.01")
    )
    metrics.observe_status("a", "s", "r1", make_finished(judge=judge))
    new = {"server": "new", "model": "newest"}
    expected: tuple[tuple[str, dict[str, str], float], ...] = (
        ("proctor_suite_verdict", {}, 1),
        ("proctor_suite_last_completed_timestamp_seconds", {}, at(10).timestamp()),
        ("proctor_suite_run_duration_seconds", {}, 600),
        ("proctor_suite_phase_duration_seconds", {"phase": "Seeding"}, 120),
        ("proctor_suite_phase_duration_seconds", {"phase": "Enforcing"}, 60),
        ("proctor_suite_phase_duration_seconds", {"phase": "Running"}, 420),
        ("proctor_suite_cells", {"state": "graded"}, 7),
        ("proctor_suite_cells", {"state": "ungraded"}, 1),
        ("proctor_suite_outcomes", {"outcome": "gave_up"}, 1),
        ("proctor_suite_outcomes", {"outcome": "turn_limit"}, 0),
        ("proctor_suite_control_score", {"control": "oracle"}, 1),
        ("proctor_suite_judge_tokens", {"direction": "output"}, 5),
        ("proctor_suite_judge_cost_usd", {}, 0.01),
        ("proctor_suite_judge_agreement", {}, 0.8),
        ("proctor_arm_score", new, 0.83),
        ("proctor_arm_score_low", new, 0.7),
        ("proctor_arm_score_high", new, 0.9),
        ("proctor_arm_graded_cells", new, 3),
        ("proctor_arm_cost_usd", new, 0.25),
        ("proctor_arm_tokens", new, 1200),
        ("proctor_arm_tool_calls", new, 5),
        ("proctor_arm_tool_errors", {**new, "class": "agent"}, 2),
        ("proctor_arm_tool_errors", {**new, "class": "infra"}, 0),
        ("proctor_arm_cell_seconds", new, 6.6),
        ("proctor_arm_consistency", new, 1),
        ("proctor_comparison_delta", new, -0.02),
        ("proctor_comparison_delta_low", new, -0.05),
        ("proctor_comparison_delta_high", new, 0.01),
        ("proctor_comparison_pairs", new, 3),
        ("proctor_suite_active_runs", {}, 0),
    )
    for name, labels, value in expected:
        assert _value(metrics, name, **labels) == pytest.approx(value), name


def test_what_is_not_known_has_no_series() -> None:
    """Metrics: never NaN: an ungraded arm has no score, a model without a price no cost."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished(arms=(make_arm("old", mean=None, usd=None),)))
    old = {"server": "old", "model": "newest"}
    assert _value(metrics, "proctor_arm_score", **old) is None
    assert _value(metrics, "proctor_arm_cost_usd", **old) is None
    assert _value(metrics, "proctor_suite_judge_agreement") is None
    assert not any(math.isnan(value) for value in _scrape(metrics).values())


@pytest.mark.parametrize(("verdict", "value"), catalogue.VERDICT_VALUES.items())
def test_only_pass_is_one(verdict: Verdict, value: int) -> None:
    """Metrics: `proctor_suite_verdict == 1` can't be true of anything but Pass."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished(verdict))
    assert _value(metrics, "proctor_suite_verdict") == value
    assert (value == 1) == (verdict is Verdict.PASS)


def test_every_verdict_has_a_value() -> None:
    """Metrics: all but Pending, and no two alike."""
    assert set(catalogue.VERDICT_VALUES) == set(Verdict) - {Verdict.PENDING}
    assert len(set(catalogue.VERDICT_VALUES.values())) == len(catalogue.VERDICT_VALUES)


def test_runs_that_go_on_are_counted_and_leave_the_last_verdict_alone() -> None:
    """Metrics: queue depth; a run without a verdict says nothing of scores."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished())
    metrics.observe_status("a", "s", "r2", make_going_on())
    metrics.observe_status("a", "s", "r3", make_going_on(pending=1, running=0, graded=0))
    assert _value(metrics, "proctor_suite_verdict") == 1
    assert _value(metrics, "proctor_suite_active_runs") == 2
    assert _value(metrics, "proctor_suite_active_cells", state="pending") == 6
    assert _value(metrics, "proctor_suite_active_cells", state="done") == 1
    assert _value(metrics, "proctor_suite_active_since_timestamp_seconds") == at(20).timestamp()


def test_a_restart_says_the_same_in_whatever_order_it_looks() -> None:
    """Metrics: rebuilt after a restart from statuses alone."""
    looks: tuple[Callable[[OperatorMetrics], None], ...] = (
        lambda metrics: metrics.observe_suite("a", "s", make_suite_status(gate=Verdict.PASS, scheduled=True)),
        lambda metrics: metrics.observe_status("a", "s", "r1", make_finished(Verdict.FAIL)),
        lambda metrics: metrics.observe_status("a", "s", "r2", make_finished(ended=at(60))),
        lambda metrics: metrics.observe_status("a", "s", "r3", make_going_on()),
    )
    scrapes = []
    for order in itertools.permutations(looks):
        metrics = OperatorMetrics("1.2.3")
        for look in order:
            look(metrics)
        scrapes.append(_of_suites(metrics))
    assert all(scrape == scrapes[0] for scrape in scrapes)
    assert scrapes[0][("proctor_suite_verdict", frozenset({("namespace", "a"), ("suite", "s")}))] == 1


def test_a_suite_takes_its_series_with_it() -> None:
    """P38: removed with their suite; runs that outlive it bring none of them back."""
    metrics = _metrics()
    metrics.observe_suite("a", "other", make_suite_status())
    metrics.observe_status("a", "s", "r1", make_finished())
    metrics.forget_suite("a", "s")
    assert {dict(labels)["suite"] for _, labels in _of_suites(metrics)} == {"other"}
    metrics.observe_status("a", "s", "r1", make_finished())
    assert {dict(labels)["suite"] for _, labels in _of_suites(metrics)} == {"other"}


def test_a_run_that_is_gone_leaves_the_word_to_the_one_before() -> None:
    """Metrics: what a restart would say is what is said."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished(Verdict.FAIL))
    metrics.observe_status("a", "s", "r2", make_finished(ended=at(60)))
    metrics.forget_run("a", "s", "r2")
    assert _value(metrics, "proctor_suite_verdict") == -1
    metrics.forget_run("a", "s", "r1")
    assert _value(metrics, "proctor_suite_verdict") is None
    metrics.forget_run("a", "unknown", "r1")


def test_a_changed_arm_leaves_no_series_behind() -> None:
    """Metrics: label sets are bounded by what the newest run has."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished())
    metrics.observe_status("a", "s", "r2", make_finished(ended=at(60), arms=(make_arm("third"),)))
    servers = {dict(labels).get("server") for name, labels in _of_suites(metrics) if name.startswith("proctor_arm")}
    assert servers == {"third"}


def test_two_arms_of_one_name_do_not_cost_the_scrape() -> None:
    """Metrics: whatever a status holds, the exposition stays readable."""
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished(arms=(make_arm("old", mean="0.5"), make_arm("old"))))
    assert _value(metrics, "proctor_arm_score", server="old", model="newest") == 0.5


def test_labels_are_names_or_words_of_a_closed_set() -> None:
    """Metrics: label sets bounded: nothing that grows with runs or cells is a label."""
    names = {"namespace", "suite", "server", "model"}
    digests = {label for label in catalogue.SUITE_INFO.labels if label.endswith("_digest")}
    for series in catalogue.ALL:
        others = set(series.labels) - names - digests - {"version"}
        assert len(others) == (1 if series.words else 0), series.name
    metrics = _metrics()
    metrics.observe_status("a", "s", "r1", make_finished())
    words = {series.name: set(series.words) for series in catalogue.ALL if series.words}
    for name, labels in _of_suites(metrics):
        rest = {value for label, value in labels if label not in names | digests}
        assert rest <= words.get(name, set()), name


def test_a_suite_says_what_its_gate_sees_and_when_its_schedule_is_due() -> None:
    """Metrics: freshness of scheduled suites; a gate whose run goes on says nothing."""
    metrics = _metrics()
    assert _value(metrics, "proctor_suite_gate_verdict") is None
    metrics.observe_suite("a", "s", make_suite_status(gate=Verdict.PENDING))
    assert _value(metrics, "proctor_suite_gate_verdict") is None
    metrics.observe_suite("a", "s", make_suite_status(gate=Verdict.FAIL, scheduled=True))
    assert _value(metrics, "proctor_suite_gate_verdict") == -1
    assert _value(metrics, "proctor_suite_next_run_timestamp_seconds") == at(60).timestamp()
    assert _value(metrics, "proctor_suite_schedule_interval_seconds") == 3600


def test_passes_are_timed_and_their_errors_counted() -> None:
    """Metrics: reconcile duration and errors, gateway latency, queue depth, the operator's own freshness."""
    metrics = OperatorMetrics("1.2.3")
    run = frozenset({("kind", "EvalRun")})
    assert _scrape(metrics)["proctor_reconcile_errors_total", run] == 0
    with metrics.reconciling(Kind.EVAL_RUN):
        pass
    with pytest.raises(ZeroDivisionError), metrics.reconciling(Kind.EVAL_RUN):
        raise ZeroDivisionError
    metrics.count_error(Kind.EVAL_RUN)
    metrics.observe_gateway(0.2)
    metrics.set_waiting(3)
    metrics.mark_alive(at(1))
    scrape = _scrape(metrics)
    assert scrape["proctor_reconcile_errors_total", run] == 2
    assert scrape["proctor_reconcile_duration_seconds_count", run] == 2
    assert scrape["proctor_gateway_request_duration_seconds_sum", frozenset()] == pytest.approx(0.2)
    assert scrape["proctor_operator_queue_depth", frozenset()] == 3
    assert scrape["proctor_operator_last_pass_timestamp_seconds", frozenset()] == at(1).timestamp()
    assert scrape["proctor_operator_info", frozenset({("version", "1.2.3")})] == 1


def test_all_that_is_exported_is_in_the_catalogue_and_the_other_way_round() -> None:
    """Metrics: docs/metrics.md lists what there is."""
    metrics = OperatorMetrics("1.2.3")
    metrics.observe_suite("a", "s", make_suite_status(gate=Verdict.PASS, scheduled=True))
    judge = JudgeStatus(model="j", votes=3, agreement=Decimal("0.8"), usd=Decimal("0.01"))
    metrics.observe_status("a", "s", "r1", make_finished(judge=judge))
    metrics.observe_status("a", "s", "r2", make_going_on())
    exported = {name for name, _ in _scrape(metrics)}
    plain = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in exported}
    assert {name for name in plain if not name.endswith("_created")} == {series.name for series in catalogue.ALL}
