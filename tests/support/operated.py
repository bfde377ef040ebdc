"""Makers of runs that the operator drives, on a cluster that exists only in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.adapters.kube.kinds import EVAL_RUN, POD
from proctor.api.run import EvalRunStatus
from proctor.bootstrap.operator_settings import OperatorSettings
from proctor.cluster.driver import PassReport, RunDriver
from proctor.cluster.installation import Installation
from proctor.errors import Retryable
from support.memory_api import ApiDied, Json, MemoryApi
from support.played_pods import PlayedGateway, PlayedPods
from support.runs import make_suite

DIGEST = "@sha256:" + "ab" * 32
MOST_TURNS = 200


def make_settings(**changes: Any) -> OperatorSettings:
    given: Json = {
        "images": {"operator": f"proctor/operator{DIGEST}", "sandbox": f"proctor/sandbox{DIGEST}"},
        "serverImages": {"left": f"proctor/left{DIGEST}", "right": f"proctor/right{DIGEST}"},
        "clickhouse": {"kind": "Embedded", "host": "proctor-clickhouse.proctor-system.svc"},
        "canary": {"forbidden": ["10.96.0.1:443"]},
    }
    return OperatorSettings.model_validate(given | changes)


def make_api() -> MemoryApi:
    """A cluster with the chart's store, and nothing else of Proctor."""
    api = MemoryApi()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "proctor-clickhouse", "namespace": "proctor-system"},
        "spec": {"selector": {"app.kubernetes.io/component": "clickhouse"}},
    }
    api.put(service)
    return api


def make_installation(api: MemoryApi, gateway: Callable[[], Any], **changes: Any) -> Installation:
    return Installation(
        kube=api.client(),
        settings=make_settings(**changes),
        master_key=b"m" * 32,
        namespace="proctor-system",
        dial=lambda _address, _token: gateway(),
        clock=api.clock,
    )


def put_suite(api: MemoryApi, **changes: Any) -> Json:
    return api.put(
        {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalSuite",
            "metadata": {"name": "quick", "namespace": "team"},
            "spec": make_suite(**changes).to_file(),
        }
    )


def put_run(api: MemoryApi, **spec: Any) -> Json:
    return api.put(
        {
            "apiVersion": "proctor.dev/v1alpha1",
            "kind": "EvalRun",
            "metadata": {"name": "quick-1", "namespace": "team"},
            "spec": {"suiteRef": {"name": "quick"}, **spec},
        }
    )


@dataclass
class Operated:
    """One run, its cluster, and an operator that may be started anew at any time.

    Attributes:
        passes: made so far, by all operators.
        heard: seconds that the gateway took to answer, each time.
    """

    api: MemoryApi
    gateway: PlayedGateway
    pods: PlayedPods
    changes: Json = field(default_factory=dict)
    passes: int = 0
    heard: list[float] = field(default_factory=list)
    driver: RunDriver | None = None
    started: set[str] = field(default_factory=set)

    @property
    def run(self) -> Json:
        return self.api.one(EVAL_RUN, "quick-1")

    @property
    def status(self) -> EvalRunStatus:
        return EvalRunStatus.model_validate(self.run["status"])

    async def kill(self) -> None:
        """End the operator; the next pass is another one's."""
        if self.driver is not None:
            await self.driver.close()
        self.driver = None

    async def make_pass(self) -> PassReport:
        if self.driver is None:
            installation = make_installation(self.api, lambda: self.gateway, **self.changes)
            installation = replace(installation, gateway_heard=self.heard.append)
            self.driver = RunDriver(installation, "team", "quick-1", lambda: None)
        self.passes += 1
        report = await self.driver.make_pass()
        for _ in range(5):
            await asyncio.sleep(0)  # what goes on beside the passes gets its turns
        self.started |= {pod["metadata"]["name"] for pod in self.api.every(POD) if "-a-" in pod["metadata"]["name"]}
        return report

    async def drive(self, *, until: Callable[[EvalRunStatus], bool] | None = None) -> EvalRunStatus:
        """Pass, second by second, until the run is finished, or until its status is as asked."""
        for _ in range(MOST_TURNS):
            try:
                report = await self.make_pass()
            except Retryable:
                report = PassReport(finished=False, busy=True)
            except ApiDied:
                await self.kill()
                report = PassReport(finished=False, busy=True)
            if report.finished or (until is not None and until(self.status)):
                return self.status
            self.pods.turn()
            self.api.pass_time(1)
        raise AssertionError(f"not finished after {MOST_TURNS} turns: {self.status}")


def operate(*, suite: Json | None = None, run: Json | None = None, **changes: Any) -> Operated:
    """A suite and a run of it on a fresh cluster."""
    api = make_api()
    spec = put_suite(api, **(suite or {}))["spec"]
    uid = put_run(api, **(run or {}))["metadata"]["uid"]
    gateway = PlayedGateway(
        run=uid,
        servers=tuple(server["name"] for server in spec["servers"]),
        scenarios=tuple(scenario["name"] for scenario in spec["scenarios"]),
    )
    gateway.doom = api.doom
    return Operated(api, gateway, PlayedPods(api, gateway), changes)
