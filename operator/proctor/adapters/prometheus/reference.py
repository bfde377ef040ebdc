"""`docs/metrics.md`, from the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.adapters.prometheus.catalogue import OF_ARMS, OF_COMPARISONS, OF_OPERATOR, OF_SUITES, Series, SeriesType

_INTRO = """\
<!-- Written by `proctor generate` from operator/proctor/adapters/prometheus/catalogue.py. Do not edit. -->
# Metrics

The operator exports these at `/metrics` on port 9090; the chart's `metrics.serviceMonitor.enabled=true` has them
scraped by a Prometheus operator, `metrics.prometheusRule.enabled=true` adds alerts, and
`metrics.dashboards.enabled=true` a Grafana dashboard ([operations](operations.md)).

What a series says of a suite is what its newest finished run says. It is read off the objects' statuses: a restarted
operator says what the one before it said, and a deleted suite takes its series with it. A label is a name that a suite
gives, or a word of the closed set that stands here, so the number of series is bounded by the suites. What is not known
(the price of a model, the score of an arm without a graded cell) has no series; nothing is ever NaN.

A gate that asks Prometheus has to ask for freshness too, and to take an empty answer for a failure:

```text
proctor_suite_verdict{namespace="default",suite="quickstart"} == 1
  and on (namespace, suite) time() - proctor_suite_last_completed_timestamp_seconds < 3600
  and on (namespace, suite) proctor_suite_info{suite_digest="…"}
```
"""


def render_metrics() -> str:
    """Return the page."""
    parts = (
        ("Suites", "", OF_SUITES),
        ("Arms", "An arm is a server and a model.", OF_ARMS),
        ("Comparisons", "`server` and `model` name the candidate; a suite has one baseline.", OF_COMPARISONS),
        ("The operator", "", OF_OPERATOR),
    )
    return "\n".join([_INTRO, *(_render_part(*part) for part in parts)])


def _render_part(title: str, intro: str, listed: Sequence[Series]) -> str:
    lines = [f"## {title}\n", *([f"{intro}\n"] if intro else [])]
    lines += ["| series | labels | meaning |", "|---|---|---|"]
    for series in listed:
        labels = ", ".join(f"`{label}`" for label in series.labels) or "–"
        words = f" `{series.labels[-1]}`: {', '.join(series.words)}." if series.words else ""
        kind = "" if series.type in {SeriesType.GAUGE, SeriesType.INFO} else f" ({series.type})"
        lines.append(f"| `{series.name}`{kind} | {labels} | {series.meaning}{words} |")
    return "\n".join(lines) + "\n"
