"""Sources of metric points."""

from __future__ import annotations

from typing import assert_never

from proctor.core.scenarios.recipe import Role
from proctor.core.scenarios.recipe_rows import HistogramBucket, Measure, Metric, MetricKind, Temporality
from proctor.core.seeding.scope import Scope
from proctor.core.seeding.sources import Source, SourceBuilder
from proctor.core.seeding.sql import list_strings, quote
from proctor.errors import InvalidInput

_TEMPORALITIES = {Temporality.DELTA: 1, Temporality.CUMULATIVE: 2}
"""OpenTelemetry's numbers."""


def compile_metric(scope: Scope, name: str, metric: Metric, *, role: Role) -> Source:
    """Return the source of a metric point.

    Raises:
        InvalidInput: a part that its kind needs is missing.
    """
    builder = SourceBuilder(scope, f"otel_metrics_{metric.type}", name, metric)
    moment = builder.moment(metric.time, "time")
    since = builder.moment(metric.since, "since") if metric.since else moment
    service_rank = builder.add_resource(moment)
    if metric.omit:
        whole = builder.columns["ResourceAttributes"]
        omitted = list_strings(metric.omit)
        builder.columns["ResourceAttributes"] = f"mapFilter((key, word) -> NOT has({omitted}, key), {whole})"
    builder.columns |= {
        "ScopeName": quote(metric.scope),
        "ScopeVersion": quote(metric.scope_version),
        "MetricName": quote(metric.name),
        "MetricDescription": quote(metric.description),
        "MetricUnit": quote(metric.unit),
        "Attributes": builder.attributes(),
        # The schema's columns are DateTime: whole seconds are all that they hold.
        "StartTimeUnix": f"toDateTime(intDiv({since}, 1000000000))",
        "TimeUnix": f"toDateTime(intDiv({moment}, 1000000000))",
    }
    match metric.type:
        case MetricKind.GAUGE:
            builder.columns["Value"] = _number(builder, _required(scope, name, "value", metric.value))
        case MetricKind.SUM:
            builder.columns["Value"] = _number(builder, _required(scope, name, "value", metric.value))
            builder.columns["IsMonotonic"] = "true" if metric.monotonic else "false"
        case MetricKind.HISTOGRAM | MetricKind.EXPONENTIAL_HISTOGRAM:
            _add_histogram(builder, scope, name, metric)
        case MetricKind.SUMMARY:
            _add_summary(builder, scope, name, metric)
        case _:
            assert_never(metric.type)
    if metric.type not in {MetricKind.GAUGE, MetricKind.SUMMARY}:
        builder.columns["AggregationTemporality"] = str(_TEMPORALITIES[metric.temporality])
    return builder.finish(role, [service_rank])


def _required(scope: Scope, name: str, part: str, measure: Measure | None) -> Measure:
    if measure is None:
        raise InvalidInput(f"{scope.name}.{name}: this kind of metric needs `{part}`")
    return measure


def _number(builder: SourceBuilder, measure: Measure) -> str:
    # One division of two integers is the same on every IEEE 754 machine.
    return f"toFloat64({builder.draw(measure.draw)}) / {measure.per}"


def _add_histogram(builder: SourceBuilder, scope: Scope, name: str, metric: Metric) -> None:
    if not metric.buckets:
        raise InvalidInput(f"{scope.name}.{name}: a histogram needs `buckets`")
    if len({bucket.about.per for bucket in metric.buckets}) != 1:
        raise InvalidInput(f"{scope.name}.{name}: all buckets have the same `per`")
    counts = [f"toUInt64({builder.draw(bucket.count)})" for bucket in metric.buckets]
    builder.columns["Count"] = " + ".join(counts)
    builder.columns["Sum"] = _sum_of(builder, metric.buckets)
    builder.columns["Min"] = _edge(builder, metric.buckets, counts)
    builder.columns["Max"] = _edge(builder, metric.buckets[::-1], counts[::-1])
    listed = f"[{', '.join(counts)}]"
    if metric.type is MetricKind.HISTOGRAM:
        if len(metric.bounds) != len(metric.buckets) - 1:
            raise InvalidInput(f"{scope.name}.{name}: a histogram has one bucket more than bounds")
        bounds = ", ".join(str(float(bound)) for bound in metric.bounds)
        builder.columns["BucketCounts"] = listed
        builder.columns["ExplicitBounds"] = f"CAST([{bounds}], 'Array(Float64)')"
        return
    builder.columns["Scale"] = str(metric.scale)
    builder.columns["PositiveOffset"] = str(metric.offset)
    builder.columns["PositiveBucketCounts"] = listed


def _sum_of(builder: SourceBuilder, buckets: list[HistogramBucket]) -> str:
    # Added up as integers, divided once: the order of additions can't matter.
    terms = [f"toInt64({builder.draw(one.count)}) * toInt64({builder.draw(one.about.draw)})" for one in buckets]
    return f"toFloat64({' + '.join(terms)}) / {buckets[0].about.per}"


def _edge(builder: SourceBuilder, buckets: list[HistogramBucket], counts: list[str]) -> str:
    branches = [f"{count} > 0, {_number(builder, one.about)}" for one, count in zip(buckets, counts, strict=True)]
    return f"multiIf({', '.join(branches)}, 0.)"


def _add_summary(builder: SourceBuilder, scope: Scope, name: str, metric: Metric) -> None:
    if metric.count is None or not metric.quantiles:
        raise InvalidInput(f"{scope.name}.{name}: a summary needs `count` and `quantiles`")
    builder.columns["Count"] = f"toUInt64({builder.draw(metric.count)})"
    builder.columns["Sum"] = _number(builder, _required(scope, name, "total", metric.total))
    quantiles = ", ".join(str(float(one.quantile)) for one in metric.quantiles)
    values = ", ".join(_number(builder, one.value) for one in metric.quantiles)
    builder.columns["ValueAtQuantiles.Quantile"] = f"CAST([{quantiles}], 'Array(Float64)')"
    builder.columns["ValueAtQuantiles.Value"] = f"[{values}]"
