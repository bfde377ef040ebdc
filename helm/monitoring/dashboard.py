"""The Grafana dashboard: what suites showed over time, and how the harness itself fares.

Its panels query the metrics that `docs/metrics.md` lists. One suite is looked at at a time; the timeline of verdicts
shows all suites of its namespace.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as dashboards
from grafana_foundation_sdk.builders import prometheus, statetimeline, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

UID = "proctor"
_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_SUITE = 'namespace="$namespace",suite="$suite"'
_ARM = f'{_SUITE},server=~"$server",model=~"$model"'
_HALF, _THIRD, _WHOLE = 12, 8, 24
_HEIGHT = 8

_VERDICTS = (
    ("1", "Pass", "green"),
    ("0", "Inconclusive", "yellow"),
    ("-1", "Fail", "red"),
    ("-2", "Error", "dark-red"),
    ("-3", "Cancelled", "text"),
)


def build_dashboard() -> models.Dashboard:
    """Return the dashboard."""
    board = (
        dashboards.Dashboard("Proctor")
        .uid(UID)
        .description("Suites, their arms, and the harness that runs them")
        .tags(["proctor"])
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time("now-30d", "now")
        .refresh("1m")
        .with_variable(dashboards.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_choice("namespace", "label_values(proctor_suite_active_runs, namespace)"))
        .with_variable(_choice("suite", 'label_values(proctor_suite_active_runs{namespace="$namespace"}, suite)'))
        .with_variable(_choice("server", f"label_values(proctor_arm_graded_cells{{{_SUITE}}}, server)", several=True))
        .with_variable(_choice("model", f"label_values(proctor_arm_graded_cells{{{_SUITE}}}, model)", several=True))
    )
    for row, panels in (
        (dashboards.Row("Verdicts and scores"), _score_panels()),
        # One row per model, in it one panel per server: so each interval has a panel of its own.
        (dashboards.Row("Scores of $model with their 95 % intervals").repeat("model"), [_band()]),
        (dashboards.Row("Cost and tokens"), _cost_panels()),
        (dashboards.Row("How cells and tool calls end"), _ending_panels()),
        (dashboards.Row("Harness"), _harness_panels()),
    ):
        board = board.with_row(row)
        for panel in panels:
            board = board.with_panel(panel)
    return board.build()


def _score_panels() -> list[Any]:
    return [
        _timeline("Verdict", "Of the newest finished run, by suite.", 'proctor_suite_verdict{namespace="$namespace"}'),
        _lines("Score by arm", "0 to 1, over the cells of one run.", unit="none", span=_HALF)
        .with_target(_query(f"proctor_arm_score{{{_ARM}}}", "{{server}} × {{model}}"))
        .min(0)
        .max(1),
        _lines("Difference from the baseline", "Paired; above 0 the candidate is better.", unit="none", span=_HALF)
        .with_target(_query(f"proctor_comparison_delta{{{_ARM}}}", "{{server}} × {{model}}"))
        .with_target(_query(f"proctor_comparison_delta_low{{{_ARM}}}", "{{server}} × {{model}} low"))
        .with_target(_query(f"proctor_comparison_delta_high{{{_ARM}}}", "{{server}} × {{model}} high")),
        _lines("Controls", "The oracle belongs near 1, the empty answer near 0.", unit="none", span=_HALF)
        .with_target(_query(f"proctor_suite_control_score{{{_SUITE}}}", "{{control}}"))
        .min(0)
        .max(1),
        _lines("Consistency", "Share of replicate pairs that agree.", unit="percentunit", span=_HALF)
        .with_target(_query(f"proctor_arm_consistency{{{_ARM}}}", "{{server}} × {{model}}"))
        .max(1),
    ]


def _cost_panels() -> list[Any]:
    return [
        _lines("Cost of a run", "Absent where the price is unknown.", unit="currencyUSD", span=_THIRD)
        .with_target(_query(f"proctor_arm_cost_usd{{{_ARM}}}", "{{server}} × {{model}}"))
        .with_target(_query(f"proctor_suite_judge_cost_usd{{{_SUITE}}}", "judge")),
        _lines("Tokens of a run", "By arm, and the judge's.", unit="short", span=_THIRD)
        .with_target(_query(f"proctor_arm_tokens{{{_ARM}}}", "{{server}} × {{model}}"))
        .with_target(_query(f"sum by (suite) (proctor_suite_judge_tokens{{{_SUITE}}})", "judge")),
        _lines("Effort per cell", "Mean tool calls, and mean seconds.", unit="short", span=_THIRD)
        .with_target(_query(f"proctor_arm_tool_calls{{{_ARM}}}", "{{server}} × {{model}} calls"))
        .with_target(_query(f"proctor_arm_cell_seconds{{{_ARM}}}", "{{server}} × {{model}} seconds")),
    ]


def _ending_panels() -> list[Any]:
    return [
        _bars("Cells by outcome", "How ended cells ended.").with_target(
            _query(f"proctor_suite_outcomes{{{_SUITE}}}", "{{outcome}}")
        ),
        _bars("Cells by state", "What became of all cells, controls included.").with_target(
            _query(f"proctor_suite_cells{{{_SUITE}}}", "{{state}}")
        ),
        _bars("Failed tool calls", "By server, and by whose doing it was.").with_target(
            _query(f"sum by (server, class) (proctor_arm_tool_errors{{{_ARM}}})", "{{server}}: {{class}}")
        ),
    ]


def _harness_panels() -> list[Any]:
    total = f"sum without (state) (proctor_suite_cells{{{_SUITE}}})"
    share = f'proctor_suite_cells{{{_SUITE},state="%s"}} / ignoring (state) group_left {total}'
    return [
        _lines("Lost and ungraded cells", "Share of a run's cells.", unit="percentunit", span=_THIRD)
        .with_target(_query(share % "infra_errored", "lost to infrastructure"))
        .with_target(_query(share % "ungraded", "ungraded"))
        .min(0),
        _bars("Time of a run", "By phase.", unit="s").with_target(
            _query(f"proctor_suite_phase_duration_seconds{{{_SUITE}}}", "{{phase}}")
        ),
        _lines("Runs that go on", "Their number, and their cells that wait.", unit="short", span=_THIRD)
        .with_target(_query('sum(proctor_suite_active_runs{namespace="$namespace"})', "runs"))
        .with_target(_query('sum(proctor_suite_active_cells{namespace="$namespace",state="pending"})', "cells waiting"))
        .min(0),
        _lines("A pass of the operator", "95th percentile, by kind.", unit="s", span=_THIRD).with_target(
            _query(_quantile("proctor_reconcile_duration_seconds_bucket", "le, kind"), "{{kind}}")
        ),
        _lines("A gateway's answer", "95th percentile.", unit="s", span=_THIRD).with_target(
            _query(_quantile("proctor_gateway_request_duration_seconds_bucket", "le"), "gateways")
        ),
        _lines(
            "The operator",
            "Failed passes a second, runs in its queue, age of its last look.",
            unit="short",
            span=_THIRD,
        )
        .with_target(_query("sum(rate(proctor_reconcile_errors_total[$__rate_interval]))", "failed passes"))
        .with_target(_query("proctor_operator_queue_depth", "queue"))
        .with_target(_query("time() - proctor_operator_last_pass_timestamp_seconds", "age of the last look")),
    ]


def _choice(name: str, query: str, *, several: bool = False) -> dashboards.QueryVariable:
    choice = (
        dashboards.QueryVariable(name)
        .label(name)
        .query(query)
        .datasource(_SOURCE)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
    return choice.multi(multi=True).include_all(include_all=True) if several else choice


def _query(expression: str, legend: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).legend_format(legend)


def _quantile(buckets: str, by: str) -> str:
    return f"histogram_quantile(0.95, sum by ({by}) (rate({buckets}[$__rate_interval])))"


def _lines(title: str, meaning: str, *, unit: str, span: int) -> timeseries.Panel:
    return (
        timeseries.Panel()
        .title(title)
        .description(meaning)
        .datasource(_SOURCE)
        .unit(unit)
        .span(span)
        .height(_HEIGHT)
        # A value holds until the next run: steps, not slopes.
        .line_interpolation(common.LineInterpolation.STEP_AFTER)
        .line_width(2)
    )


def _bars(title: str, meaning: str, *, unit: str = "short") -> timeseries.Panel:
    return (
        _lines(title, meaning, unit=unit, span=_THIRD)
        .draw_style(common.GraphDrawStyle.LINE)
        .fill_opacity(60)
        .stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
        .min(0)
    )


def _band() -> timeseries.Panel:
    """Return a panel per server whose interval is shaded."""
    panel = (
        _lines("$server × $model", "The mean, and its interval shaded.", unit="none", span=_HALF)
        .repeat("server")
        .repeat_direction("h")
        .with_target(_query(f"proctor_arm_score{{{_ARM}}}", "score"))
        .with_target(_query(f"proctor_arm_score_low{{{_ARM}}}", "low"))
        .with_target(_query(f"proctor_arm_score_high{{{_ARM}}}", "high"))
        .min(0)
        .max(1)
    )
    faint = models.DynamicConfigValue(id_val="custom.lineWidth", value=0)
    shade = models.DynamicConfigValue(id_val="custom.fillOpacity", value=20)
    below = models.DynamicConfigValue(id_val="custom.fillBelowTo", value="low")
    return panel.override_by_name("low", [faint]).override_by_name("high", [faint, shade, below])


def _timeline(title: str, meaning: str, expression: str) -> statetimeline.Panel:
    words = {
        value: models.ValueMappingResult(text=text, color=color, index=index)
        for index, (value, text, color) in enumerate(_VERDICTS)
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(meaning)
        .datasource(_SOURCE)
        .span(_WHOLE)
        .height(_HEIGHT)
        .mappings([models.ValueMap(options=words)])
        .with_target(_query(expression, "{{suite}}"))
    )
