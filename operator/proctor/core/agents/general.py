"""The two policies that know no scenario: one falls for what is loud, one follows what is new."""

# ruff: noqa: S608 - the queries are constants; what a tool returned goes in through `scripted`, which checks its form

from __future__ import annotations

from proctor.core.scenarios.policies import ScriptedPolicy, Step

_FAILED = "lower(StatusCode) LIKE '%error%'"
_UNTIL = "toDateTime64('<<anchor>>', 9, 'UTC')"
_SINCE = f"{_UNTIL} - INTERVAL 10 MINUTE"
_WINDOW = f"Timestamp >= {_SINCE} AND Timestamp <= {_UNTIL}"
_SIGNATURE = "ServiceName, SpanName, replaceRegexpAll(StatusMessage, '[0-9]+', '#')"
"""Messages that differ in their numbers alone are one kind of error."""

_NEW = (
    f"SELECT {_SIGNATURE} FROM otel_traces WHERE {_FAILED} GROUP BY {_SIGNATURE} "
    f"HAVING countIf({_WINDOW}) > 0 AND countIf(Timestamp < {_SINCE}) = 0"
)


def _reading(**values: str) -> str:
    """An SQL expression of one string with markers; the query itself never reads like one."""
    parts = ", ".join(f"'<<{name}', '=', toString({value}), '>>'" for name, value in values.items())
    return f"concat({parts}) AS reading"


LOUDEST = ScriptedPolicy(
    steps=[
        Step(
            query=f"SELECT {_reading(failed='count()', services='uniqExact(ServiceName)')} "
            f"FROM otel_traces WHERE {_FAILED} AND {_WINDOW}",
            markers=["failed", "services"],
        ),
        Step(
            query=f"SELECT {_reading(service='ServiceName', span='SpanName', message='StatusMessage', times='count()')}"
            f" FROM otel_traces WHERE {_FAILED} AND {_WINDOW} GROUP BY ServiceName, SpanName, StatusMessage "
            "ORDER BY count() DESC, ServiceName, SpanName, StatusMessage LIMIT 1",
            markers=["service", "span", "message", "times"],
        ),
    ],
    answer="The root cause is <<service>>: '<<message>>' in <<span>> is the most frequent error of the past "
    "10 minutes, seen <<times>> times among <<failed>> failed spans of <<services>> services.",
)

_DEEPEST = f"SpanId NOT IN (SELECT ParentSpanId FROM otel_traces WHERE TraceId = '<<trace>>' AND {_FAILED})"

NEWEST = ScriptedPolicy(
    steps=[
        Step(
            query=f"SELECT {_reading(kinds='count()')} FROM ({_NEW})",
            markers=["kinds"],
        ),
        Step(
            query=f"SELECT {_reading(trace='TraceId', failed='countIf(' + _FAILED + ')')} FROM otel_traces WHERE "
            f"TraceId IN (SELECT TraceId FROM otel_traces WHERE {_FAILED} AND {_WINDOW} AND ({_SIGNATURE}) IN ({_NEW}))"
            f" GROUP BY TraceId ORDER BY countIf({_FAILED}) DESC, count() DESC, min(Timestamp), TraceId LIMIT 1",
            markers=["trace", "failed"],
        ),
        Step(
            query="SELECT "
            + _reading(
                chain="arrayStringConcat(arrayMap(span -> concat(span.2, ' ', span.3), "
                "arraySort(groupArray((Timestamp, ServiceName, SpanName)))), ', then ')",
                edge="argMin(ServiceName, (ParentSpanId != '', Timestamp))",
                symptom="argMin(StatusMessage, (ParentSpanId != '', Timestamp))",
            )
            + f" FROM otel_traces WHERE TraceId = '<<trace>>' AND {_FAILED}",
            markers=["chain", "edge", "symptom"],
        ),
        Step(
            query="SELECT "
            + _reading(
                service="ServiceName",
                span="SpanName",
                message="StatusMessage",
                milliseconds="intDiv(Duration, 1000000)",
                attributes="arrayStringConcat(arrayMap((key, value) -> concat(key, ' ', value), "
                "mapKeys(SpanAttributes), mapValues(SpanAttributes)), ', ')",
            )
            + f" FROM otel_traces WHERE TraceId = '<<trace>>' AND {_FAILED} AND {_DEEPEST} "
            "ORDER BY Timestamp DESC LIMIT 1",
            markers=["service", "span", "message", "milliseconds", "attributes"],
        ),
        Step(
            query="SELECT "
            + _reading(traces="uniqExact(TraceId)", first="min(Timestamp)", last="max(Timestamp)")
            + f" FROM otel_traces WHERE {_FAILED} AND {_WINDOW} AND (ServiceName, SpanName) IN "
            f"(SELECT ServiceName, SpanName FROM otel_traces WHERE TraceId = '<<trace>>' AND {_FAILED} AND {_DEEPEST}) "
            f"AND ({_SIGNATURE}) IN ({_NEW})",
            markers=["traces", "first", "last"],
        ),
    ],
    answer="""\
Root cause: <<service>> fails in its span '<<span>>': "<<message>>" (<<milliseconds>> ms).

<<traces>> traces fail that way, from <<first>> to <<last>>, and none did before the past 10 minutes.
The failure reaches users as errors of <<edge>> ("<<symptom>>").
One of them, trace <<trace>>: <<chain>>.
Attributes of its deepest failing span: <<attributes>>.""",
)
