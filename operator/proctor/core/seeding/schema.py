"""The tables: structural clones of ClickStack's OpenTelemetry tables, without their TTL.

Columns, codecs, skip indexes, engines, partitions and sorting keys are those of production, since what an agent may
find out cheaply depends on them. The TTL is left out: it would drop historical rows as they are inserted.
"""

from __future__ import annotations

from collections.abc import Iterable

from proctor.core.seeding.sql import name_table

TRACES = "otel_traces"
LOGS = "otel_logs"
METRIC_PREFIX = "otel_metrics_"

_MAP = "Map(LowCardinality(String), String)"
_LOW = "LowCardinality(String)"
_ZSTD = "CODEC(ZSTD(1))"
_KUBERNETES = (
    "k8s.cluster.name",
    "k8s.container.name",
    "k8s.deployment.name",
    "k8s.namespace.name",
    "k8s.node.name",
    "k8s.pod.name",
    "k8s.pod.uid",
    "deployment.environment.name",
)


def tables_for(used: Iterable[str]) -> tuple[str, ...]:
    """Return the raw tables of a dataset: traces and logs always, metric tables where used."""
    return tuple(sorted({TRACES, LOGS, *used}))


def create_table(database: str, table: str) -> str:
    """Return the statement that creates a raw table."""
    name = name_table(database, table)
    if table == TRACES:
        return _create(name, _TRACE_COLUMNS, _TRACE_LAYOUT)
    if table == LOGS:
        return _create(name, _LOG_COLUMNS, _LOG_LAYOUT)
    return _create(name, _metric_columns(table.removeprefix(METRIC_PREFIX)), _METRIC_LAYOUT)


def _create(name: str, lines: Iterable[str], layout: str) -> str:
    body = ",\n    ".join(lines)
    return f"CREATE TABLE {name}\n(\n    {body}\n)\n{layout}"


def _plain(names: str, kind: str) -> list[str]:
    return [f"`{name}` {kind} {_ZSTD}" for name in names.split()]


def _items(alias: str, column: str) -> str:
    pairs = f"arrayMap((k, v) -> concat(k, '=', v), mapKeys({column}), mapValues({column}))"
    return f"`{alias}` Array(String) ALIAS {pairs}"


def _bloom(index: str, expression: str, rate: str = "0.01") -> str:
    return f"INDEX {index} {expression} TYPE bloom_filter({rate}) GRANULARITY 1"


def _text(index: str, expression: str, tokenizer: str = "array") -> str:
    return f"INDEX {index} {expression} TYPE text(tokenizer = '{tokenizer}')"


_TRACE_COLUMNS = [
    "`Timestamp` DateTime64(9) CODEC(Delta(8), ZSTD(1))",
    *_plain("TraceId SpanId ParentSpanId TraceState", "String"),
    *_plain("SpanName SpanKind ServiceName", _LOW),
    *_plain("ResourceAttributes", _MAP),
    *_plain("ScopeName ScopeVersion", "String"),
    *_plain("SpanAttributes", _MAP),
    *_plain("Duration", "UInt64"),
    *_plain("StatusCode", _LOW),
    *_plain("StatusMessage", "String"),
    *_plain("Events.Timestamp", "Array(DateTime64(9))"),
    *_plain("Events.Name", f"Array({_LOW})"),
    *_plain("Events.Attributes", f"Array({_MAP})"),
    *_plain("Links.TraceId Links.SpanId Links.TraceState", "Array(String)"),
    *_plain("Links.Attributes", f"Array({_MAP})"),
    f"`__hdx_materialized_rum.sessionId` String MATERIALIZED ResourceAttributes['rum.sessionId'] {_ZSTD}",
    "`SampleRate` UInt64 MATERIALIZED greatest(toUInt64OrZero(SpanAttributes['SampleRate']), 1) CODEC(T64, ZSTD(1))",
    _items("ResourceAttributeItems", "ResourceAttributes"),
    _items("SpanAttributeItems", "SpanAttributes"),
    _bloom("idx_trace_id", "TraceId", "0.001"),
    _bloom("idx_rum_session_id", "`__hdx_materialized_rum.sessionId`", "0.001"),
    _bloom("idx_res_attr_key", "mapKeys(ResourceAttributes)"),
    _bloom("idx_span_attr_key", "mapKeys(SpanAttributes)"),
    _text("idx_res_attr_items", "ResourceAttributeItems"),
    _text("idx_span_attr_items", "SpanAttributeItems"),
    "INDEX idx_duration Duration TYPE minmax GRANULARITY 1",
    "INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8",
]
_TRACE_LAYOUT = (
    "ENGINE = MergeTree\nPARTITION BY toDate(Timestamp)\nORDER BY (ServiceName, SpanName, toDateTime(Timestamp))\n"
    "SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1"
)

_LOG_COLUMNS = [
    "`Timestamp` DateTime64(9) CODEC(Delta(8), ZSTD(1))",
    *_plain("TraceId SpanId", "String"),
    "`TraceFlags` UInt8",
    *_plain("SeverityText", _LOW),
    "`SeverityNumber` UInt8",
    *_plain("ServiceName", _LOW),
    *_plain("Body", "String"),
    *_plain("ResourceSchemaUrl", _LOW),
    *_plain("ResourceAttributes", _MAP),
    *_plain("ScopeSchemaUrl", _LOW),
    *_plain("ScopeName", "String"),
    *_plain("ScopeVersion", _LOW),
    *_plain("ScopeAttributes LogAttributes", _MAP),
    *_plain("EventName", "String"),
    *(f"`__hdx_materialized_{key}` {_LOW} MATERIALIZED ResourceAttributes['{key}'] {_ZSTD}" for key in _KUBERNETES),
    _items("ResourceAttributeItems", "ResourceAttributes"),
    _items("ScopeAttributeItems", "ScopeAttributes"),
    _items("LogAttributeItems", "LogAttributes"),
    _text("idx_trace_id", "TraceId"),
    _text("idx_res_attr_key", "mapKeys(ResourceAttributes)"),
    _text("idx_res_attr_items", "ResourceAttributeItems"),
    _text("idx_scope_attr_key", "mapKeys(ScopeAttributes)"),
    _text("idx_scope_attr_items", "ScopeAttributeItems"),
    _text("idx_log_attr_key", "mapKeys(LogAttributes)"),
    _text("idx_log_attr_items", "LogAttributeItems"),
    _text("idx_lower_body", "lower(Body)", "splitByNonAlpha"),
]
_LOG_LAYOUT = (
    "ENGINE = MergeTree\nPARTITION BY toDate(Timestamp)\n"
    "ORDER BY (toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)\n"
    "SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1,"
    " enable_block_number_column = 1, enable_block_offset_column = 1"
)

_METRIC_COLUMNS = [
    *_plain("ResourceAttributes", _MAP),
    *_plain("ResourceSchemaUrl ScopeName ScopeVersion", "String"),
    *_plain("ScopeAttributes", _MAP),
    *_plain("ScopeDroppedAttrCount", "UInt32"),
    *_plain("ScopeSchemaUrl", "String"),
    *_plain("ServiceName MetricName", _LOW),
    *_plain("MetricDescription MetricUnit", "String"),
    *_plain("Attributes", _MAP),
    "`StartTimeUnix` DateTime CODEC(Delta(4), ZSTD(1))",
    "`TimeUnix` DateTime CODEC(Delta(4), ZSTD(1))",
    *_plain("Flags", "UInt32"),
]
_EXEMPLARS = [
    *_plain("Exemplars.FilteredAttributes", f"Array({_MAP})"),
    *_plain("Exemplars.TimeUnix", "Array(DateTime)"),
    *_plain("Exemplars.Value", "Array(Float64)"),
    *_plain("Exemplars.SpanId Exemplars.TraceId", "Array(String)"),
]
_METRIC_INDEXES = [
    _bloom("idx_res_attr_key", "mapKeys(ResourceAttributes)"),
    _bloom("idx_res_attr_value", "mapValues(ResourceAttributes)"),
    _bloom("idx_scope_attr_key", "mapKeys(ScopeAttributes)"),
    _bloom("idx_scope_attr_value", "mapValues(ScopeAttributes)"),
    _bloom("idx_attr_key", "mapKeys(Attributes)"),
    _bloom("idx_attr_value", "mapValues(Attributes)"),
    "INDEX idx_time_minmax TimeUnix TYPE minmax GRANULARITY 1",
]
_METRIC_VALUES = {
    "gauge": _plain("Value", "Float64"),
    "sum": [*_plain("Value", "Float64"), *_plain("AggregationTemporality", "Int32"), *_plain("IsMonotonic", "Bool")],
    "histogram": [
        *_plain("Count", "UInt64"),
        *_plain("Sum", "Float64"),
        *_plain("BucketCounts", "Array(UInt64)"),
        *_plain("ExplicitBounds", "Array(Float64)"),
        *_plain("Min Max", "Float64"),
        *_plain("AggregationTemporality", "Int32"),
    ],
    "exponential_histogram": [
        *_plain("Count", "UInt64"),
        *_plain("Sum", "Float64"),
        *_plain("Scale", "Int32"),
        *_plain("ZeroCount", "UInt64"),
        *_plain("PositiveOffset", "Int32"),
        *_plain("PositiveBucketCounts", "Array(UInt64)"),
        *_plain("NegativeOffset", "Int32"),
        *_plain("NegativeBucketCounts", "Array(UInt64)"),
        *_plain("Min Max", "Float64"),
        *_plain("AggregationTemporality", "Int32"),
    ],
    "summary": [
        *_plain("Count", "UInt64"),
        *_plain("Sum", "Float64"),
        *_plain("ValueAtQuantiles.Quantile ValueAtQuantiles.Value", "Array(Float64)"),
    ],
}
METRICS = tuple(f"{METRIC_PREFIX}{kind}" for kind in _METRIC_VALUES)
_METRIC_LAYOUT = (
    "ENGINE = MergeTree\nPARTITION BY toDate(TimeUnix)\n"
    "ORDER BY (ServiceName, MetricName, toStartOfHour(TimeUnix), cityHash64(Attributes), TimeUnix)\n"
    "SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1"
)


def _metric_columns(kind: str) -> list[str]:
    exemplars = [] if kind == "summary" else _EXEMPLARS
    return [*_METRIC_COLUMNS, *_METRIC_VALUES[kind], *exemplars, *_METRIC_INDEXES]
