"""Every query of the dashboards, asked of a real Prometheus that scraped the real exposition."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.adapters.prometheus import catalogue
from proctor.adapters.prometheus.metrics import Kind, OperatorMetrics
from proctor.api.run import JudgeStatus, Verdict
from proctor.clock import utc_now
from support.measured import make_finished, make_going_on, make_suite_status

ROOT = Path(__file__).resolve().parents[3]
DASHBOARDS = sorted((ROOT / "helm" / "proctor" / "dashboards").glob("*.json"))
RULES = ROOT / "helm" / "proctor" / "rules" / "proctor.yaml"
CHOSEN = {"$namespace": "a", "$suite": "s", "$server": "old|new", "$model": "newest", "$__rate_interval": "10s"}
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Query:
    """One query of one panel."""

    title: str
    expression: str

    @property
    def filled(self) -> str:
        """The expression with a dashboard's choices made."""
        text = self.expression
        for name, value in CHOSEN.items():
            text = text.replace(name, value)
        return text


def _queries() -> list[Query]:
    found = []
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            found += [Query(panel["title"], target["expr"]) for target in panel.get("targets", ())]
    return found


QUERIES = _queries()


@pytest.fixture(scope="module")
def metrics() -> OperatorMetrics:
    """What an operator says with one suite that finished a run and has another going on."""
    metrics = OperatorMetrics("1.2.3")
    metrics.observe_suite("a", "s", make_suite_status(gate=Verdict.PASS, scheduled=True))
    judge = JudgeStatus(
        model="j", votes=3, agreement=Decimal("0.8"), input_tokens=10, output_tokens=5, usd=Decimal("0.01")
    )
    metrics.observe_status("a", "s", "r1", make_finished(infra_errored=1, judge=judge))
    metrics.observe_status("a", "s", "r2", make_going_on())
    metrics.mark_alive(utc_now())
    return metrics


@pytest.fixture(scope="module")
def server(prometheus: Path, metrics: OperatorMetrics, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where a Prometheus answers that scrapes that operator every second."""
    folder = tmp_path_factory.mktemp("prometheus")
    exposition = metrics.serve(0, "127.0.0.1")
    target = f"127.0.0.1:{exposition.port}"
    scrape = {"job_name": "proctor", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    config = {"global": {"scrape_interval": "1s"}, "rule_files": [str(RULES)], "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = _free_port()
    command = [prometheus, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            _await_scrapes(address, metrics)
            yield address
        finally:
            process.terminate()
            exposition.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _await_scrapes(address: str, metrics: OperatorMetrics) -> None:
    """Wait until counters were seen to rise in two scrapes: a rate needs both."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        with metrics.reconciling(Kind.EVAL_RUN):
            metrics.observe_gateway(0.02)
        with metrics.reconciling(Kind.EVAL_SUITE):
            metrics.mark_alive(utc_now())
        try:
            if _ask(address, "rate(proctor_gateway_request_duration_seconds_count[10s]) > 0"):
                return
        except httpx.TransportError:
            pass  # it is just starting
        time.sleep(0.2)
    raise AssertionError(f"no two scrapes within {PATIENCE_SECONDS} s")


def _ask(address: str, expression: str) -> list[dict[str, Any]]:
    reply = httpx.get(f"{address}/api/v1/query", params={"query": expression}, trust_env=False, timeout=30)
    if reply.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return []
    body = reply.json()
    assert body["status"] == "success", f"{expression}: {body}"
    found: list[dict[str, Any]] = body["data"]["result"]
    return found


def test_every_query_returns_figures(server: str, metrics: OperatorMetrics) -> None:
    """Dashboards: each panel's queries return data, and none of it is NaN."""
    assert len(QUERIES) > 20
    for query in QUERIES:
        with metrics.reconciling(Kind.EVAL_RUN), metrics.reconciling(Kind.EVAL_SUITE):
            metrics.observe_gateway(0.02)
        found = _ask(server, query.filled)
        assert found, f"{query.title}: {query.filled}"
        assert all(each["value"][1] != "NaN" for each in found), f"{query.title}: {query.filled}"


@pytest.mark.drill
def test_rules_are_loaded_and_evaluated(server: str) -> None:
    """Alerts: Prometheus itself evaluates each without a fault."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        groups = httpx.get(f"{server}/api/v1/rules", trust_env=False, timeout=30).json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        if all(rule["health"] != "unknown" for rule in rules) or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    assert {rule["health"] for rule in rules} == {"ok"}


def test_choices_find_something_to_choose(server: str) -> None:
    """Dashboards: each variable's query has values."""
    for path in DASHBOARDS:
        for variable in json.loads(path.read_text("utf-8"))["templating"]["list"]:
            if variable["type"] != "query":
                continue
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert match is not None, variable["query"]
            found = _ask(server, Query(variable["name"], match[1]).filled)
            assert {match[2] in each["metric"] for each in found} == {True}, variable["query"]


def test_queries_and_rules_name_only_what_is_exported() -> None:
    """Dashboards and alerts: no series that nothing exports."""
    known = {series.name for series in catalogue.ALL}
    known |= {f"{name}_bucket" for name in known}
    texts = [query.expression for query in QUERIES] + [RULES.read_text("utf-8")]
    named = set(re.findall(r"\bproctor_[a-z_]+", "\n".join(texts)))
    assert named - known == set()
    shown = {re.sub("_bucket$", "", name) for name in named}
    assert {series.name for series in (*catalogue.OF_ARMS, *catalogue.OF_COMPARISONS)} - shown <= {
        "proctor_arm_graded_cells",
        "proctor_comparison_pairs",
    }


def test_dashboards_are_what_the_code_makes() -> None:
    """Dashboards: generated in code, and current."""
    checked = subprocess.run(
        [sys.executable, ROOT / "helm" / "monitoring", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
