"""The operator's metrics, as its handlers use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from threading import Thread
from time import perf_counter
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proctor.adapters.prometheus import catalogue
from proctor.adapters.prometheus.board import Board
from proctor.api.run import EvalRunStatus
from proctor.api.suite_status import EvalSuiteStatus

_PASS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_GATEWAY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Kind(StrEnum):
    """What a pass was over."""

    EVAL_RUN = "EvalRun"
    EVAL_SUITE = "EvalSuite"


class MetricsServer:
    """Serves the exposition until it is closed."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        self._server, self._thread = server, thread

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class OperatorMetrics:
    """Series about suites, read off their statuses, and about the operator itself.

    Args:
        version: the operator's own.
    """

    def __init__(self, version: str) -> None:
        self._registry = CollectorRegistry()
        self._board = Board()
        self._registry.register(_BoardCollector(self._board))
        series = catalogue.OPERATOR_INFO
        Info(series.name.removesuffix("_info"), series.meaning, registry=self._registry).info({"version": version})
        self._last_pass = _gauge(catalogue.LAST_PASS, self._registry)
        self._waiting = _gauge(catalogue.WAITING, self._registry)
        self._seconds = _histogram(catalogue.RECONCILE_SECONDS, _PASS_BUCKETS, self._registry)
        self._gateway = _histogram(catalogue.GATEWAY_SECONDS, _GATEWAY_BUCKETS, self._registry)
        series = catalogue.RECONCILE_ERRORS
        self._errors = Counter(series.name, series.meaning, series.labels, registry=self._registry)
        for kind in Kind:
            # From birth: a rate needs a zero to rise from.
            self._errors.labels(kind)
            self._seconds.labels(kind)

    def observe_status(self, namespace: str, suite: str, run: str, status: EvalRunStatus) -> None:
        """Take note of a run's status: after every patch of it, and once for each run that there is at the start."""
        self._board.put_run(namespace, suite, run, status)

    def forget_run(self, namespace: str, suite: str, run: str) -> None:
        """Take note that a run is gone; what an older one says then stands for its suite."""
        self._board.drop_run(namespace, suite, run)

    def observe_suite(self, namespace: str, suite: str, status: EvalSuiteStatus) -> None:
        """Take note of a suite; without it, nothing is said of its runs."""
        self._board.put_suite(namespace, suite, status)

    def forget_suite(self, namespace: str, suite: str) -> None:
        """Take note that a suite is gone: all its series go."""
        self._board.drop_suite(namespace, suite)

    @contextmanager
    def reconciling(self, kind: Kind) -> Iterator[None]:
        """Time one pass; an exception counts as an error, and goes on up."""
        begun = perf_counter()
        try:
            yield
        except BaseException as e:
            if isinstance(e, Exception):
                self.count_error(kind)
            raise
        finally:
            self._seconds.labels(kind).observe(perf_counter() - begun)

    def count_error(self, kind: Kind) -> None:
        """Count a pass that failed without an exception that leaves it."""
        self._errors.labels(kind).inc()

    def observe_gateway(self, seconds: float) -> None:
        """Take note of how long a gateway took to answer the operator."""
        self._gateway.observe(seconds)

    def set_waiting(self, runs: int) -> None:
        """Say how many runs wait for a pass."""
        self._waiting.set(runs)

    def mark_alive(self, now: datetime) -> None:
        """Say that all runs were gone through."""
        self._last_pass.set(now.timestamp())

    def render(self) -> bytes:
        """Return the exposition."""
        return generate_latest(self._registry)

    def serve(self, port: int, host: str = "0.0.0.0") -> MetricsServer:  # noqa: S104 - scraped from other pods
        """Serve the exposition in a thread, at /metrics."""
        return MetricsServer(*start_http_server(port, host, self._registry))


class _BoardCollector(Collector):
    """Makes the series of suites anew for every scrape, so that none outlives what it speaks of."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        """Yield one family per series that says something."""
        families: dict[str, GaugeMetricFamily] = {}
        said: set[tuple[str, tuple[str, ...]]] = set()
        for reading in self._board.read():
            series = reading.series
            if (series.name, reading.labels) in said:
                # A series twice would make Prometheus refuse the whole scrape.
                continue
            said.add((series.name, reading.labels))
            family = families.setdefault(
                series.name, GaugeMetricFamily(series.name, series.meaning, labels=series.labels)
            )
            family.add_metric(reading.labels, reading.value)
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """Yield the names that may come, so that nothing else takes one."""
        for series in (*catalogue.OF_SUITES, *catalogue.OF_ARMS, *catalogue.OF_COMPARISONS):
            yield GaugeMetricFamily(series.name, series.meaning, labels=series.labels)


def _gauge(series: catalogue.Series, registry: CollectorRegistry) -> Gauge:
    return Gauge(series.name, series.meaning, series.labels, registry=registry)


def _histogram(series: catalogue.Series, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(series.name, series.meaning, series.labels, buckets=buckets, registry=registry)
