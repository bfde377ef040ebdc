"""What a stream emits for each of its rows: spans, logs, metric points."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from proctor.core.scenarios.recipe_terms import AttributeKey, Closed, Name, Text, When, Word

Attributes = Annotated[dict[AttributeKey, Text], Field(max_length=40)]
Moments = Annotated[list[Name], Field(min_length=1, max_length=8)]
"""A time draw, and spans of time that are added to it."""


class SpanKind(StrEnum):
    """OpenTelemetry's kinds, as ClickStack stores them."""

    SERVER = "Server"
    CLIENT = "Client"
    INTERNAL = "Internal"
    PRODUCER = "Producer"
    CONSUMER = "Consumer"


class ExtraAttributes(Closed):
    """Attributes that only some rows have."""

    when: When = Field(description="The rows that have them.")
    attributes: Attributes = Field(description="Key and text.")


class Emission(Closed):
    """What spans, logs and metric points have in common."""

    when: When | None = Field(default=None, description="Emitted only on rows where this holds.")
    resource: Name = Field(description="The instance draw whose resource attributes the row carries.")
    scope: Word = Field(default="io.opentelemetry.auto", description="The instrumentation scope's name.")
    scope_version: Word = Field(default="2.11.0", description="The instrumentation scope's version.")
    attributes: Attributes = Field(default_factory=dict, description="Attributes that every row has.")
    extra: list[ExtraAttributes] = Field(
        default_factory=list, max_length=3, description="Attributes that only some rows have."
    )


class Span(Emission):
    """One hop of a trace."""

    parent: Name | None = Field(default=None, description="The span of the same stream that called this one.")
    name: Text = Field(description="The span's name.")
    kind: SpanKind = Field(default=SpanKind.SERVER, description="OpenTelemetry's span kind.")
    start: Moments = Field(description="A time draw, and spans of time added to it: `[at, lead]`.")
    duration: Name = Field(description="The draw that gives its length.")
    status: Text = Field(default="Unset", description="`Unset`, `Ok` or `Error`.")
    status_message: Text = Field(default="", description="What went wrong, where it did.")


class Log(Emission):
    """One log record."""

    span: Name | None = Field(default=None, description="The span that it belongs to: trace and span id are shared.")
    time: Moments = Field(description="A time draw, and spans of time added to it.")
    severity: Text = Field(default="INFO", description="The severity text, as the service spells it.")
    body: Text = Field(description="The message.")


class MetricKind(StrEnum):
    """The five kinds of metric."""

    GAUGE = "gauge"
    SUM = "sum"
    HISTOGRAM = "histogram"
    EXPONENTIAL_HISTOGRAM = "exponential_histogram"
    SUMMARY = "summary"


class Temporality(StrEnum):
    """Whether a sum or histogram counts since its start or since the last scrape."""

    DELTA = "delta"
    CUMULATIVE = "cumulative"


class Measure(Closed):
    """A number of a metric: a draw over a divisor, so that integers can carry decimals."""

    draw: Name = Field(description="The draw.")
    per: Annotated[int, Field(ge=1, le=10**12)] = Field(default=1, description="What the draw is divided by.")


class Quantile(Closed):
    """One quantile of a summary."""

    quantile: Word = Field(pattern=r"^(0(\.\d{1,6})?|1)$", description="Which: `0.99`.")
    value: Measure = Field(description="Its value.")


class HistogramBucket(Closed):
    """One bucket of a histogram: how many observations fell into it, and about how large each was."""

    count: Name = Field(description="The draw that counts them.")
    about: Measure = Field(description="The size of one; all of them together make the sum.")


class Metric(Emission):
    """One metric point."""

    type: MetricKind = Field(description="The kind of metric.")
    name: Word = Field(description="The metric's name.")
    description: str = Field(default="", max_length=500, description="What it measures.")
    unit: str = Field(default="", max_length=40, description="Its unit.")
    time: Moments = Field(description="The scrape's instant.")
    since: Moments | None = Field(default=None, description="When counting began; the scrape itself if left out.")
    omit: list[AttributeKey] = Field(
        default_factory=list,
        max_length=16,
        description="Resource attributes that it lacks: a number of the whole service has no pod.",
    )
    value: Measure | None = Field(default=None, description="Of a gauge or sum: the value.")
    monotonic: bool = Field(default=True, description="Of a sum: whether it only grows.")
    temporality: Temporality = Field(default=Temporality.DELTA, description="Of a sum or histogram.")
    bounds: list[Word] = Field(default_factory=list, max_length=200, description="Of a histogram: upper bounds.")
    buckets: list[HistogramBucket] = Field(
        default_factory=list, max_length=201, description="Of both histograms: the buckets, smallest first."
    )
    scale: Annotated[int, Field(ge=-10, le=20)] = Field(default=0, description="Of an exponential histogram.")
    offset: Annotated[int, Field(ge=-10_000, le=10_000)] = Field(
        default=0, description="Of an exponential histogram: the index of the first bucket."
    )
    count: Name | None = Field(default=None, description="Of a summary: how many observations.")
    total: Measure | None = Field(default=None, description="Of a summary: their sum.")
    quantiles: list[Quantile] = Field(default_factory=list, max_length=20, description="Of a summary.")
