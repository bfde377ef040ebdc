"""What the run's own programs are told when they start; secrets go over their standard input alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from proctor.adapters.clickhouse.endpoint import Endpoint, render_login
from proctor.adapters.clickhouse.results import DEFAULT_DATABASE
from proctor.api.suite import EvalSuiteSpec, ScenarioRef
from proctor.bootstrap.gateway_config import DEFAULT_ALLOWED_HOSTS
from proctor.core.scenarios.answer import load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.policies import read_policies
from proctor.errors import Terminal
from proctor.local.request import RunRequest
from proctor.local.rundir import RunDir
from proctor.local.serving import RunDatasets

RESULTS_DATABASE = DEFAULT_DATABASE


class ResultsSide(Protocol):
    """Where results go."""

    async def ready(self) -> Endpoint:
        """Return the administrator's endpoint once it answers.

        Raises:
            Terminal: it never will.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Builds the configurations of the gateway and the grader.

    Attributes:
        request: what was asked for.
        run: the run's uid.
        suite: the frozen suite.
        directory: the run's files.
        results: the results engine, or where results go.
        datasets: the run's datasets.
        secrets: values by ``name/key``.
    """

    request: RunRequest
    run: str
    suite: EvalSuiteSpec
    directory: RunDir
    results: ResultsSide
    datasets: RunDatasets
    secrets: Mapping[str, str] = field(repr=False)

    async def build_gateway(self) -> Mapping[str, Any]:
        """Return the gateway's configuration, but for what is drawn at every start.

        Raises:
            InvalidInput: a scenario's brief or policies are at fault.
            Terminal: there is nowhere to keep results.
        """
        return {
            "run": self.run,
            "suite": self.suite.to_file(),
            "scenarios": {scenario.name: self._build_scenario(scenario) for scenario in self.suite.scenarios},
            "secrets": dict(self.secrets),
            "store": render_login((await self.results.ready()).in_database(RESULTS_DATABASE)),
            "spoolDir": str(self.directory.spool),
            "sandbox": self.request.sandbox.value,
            "privateDirs": [str(path) for path in self.request.private_dirs],
            "allowedHosts": [*DEFAULT_ALLOWED_HOSTS, *self.request.allowed_hosts],
        }

    async def build_grader(self) -> Mapping[str, Any]:
        """Return the grader's configuration.

        Raises:
            Terminal: there is nowhere to keep results, or no facts to grade by.
        """
        return {
            "run": self.run,
            "suite": self.suite.to_file(),
            "store": render_login((await self.results.ready()).in_database(RESULTS_DATABASE)),
            "scenarios": {
                scenario.name: {
                    "directory": str(self.request.scenario_dir(scenario.name)),
                    "facts": self._read_facts(scenario.name),
                    **self._name_dataset(scenario.name),
                }
                for scenario in self.suite.scenarios
            },
            "secrets": self._judge_secrets(),
            "allowedHosts": [*DEFAULT_ALLOWED_HOSTS, *self.request.allowed_hosts],
            "summary": str(self.directory.summary),
        }

    def _build_scenario(self, ref: ScenarioRef) -> dict[str, Any]:
        folder = self.request.scenario_dir(ref.name)
        return {
            "brief": load_brief(folder, ref.seed).model_dump(mode="json"),
            "policies": read_policies(folder, ref.seed),
            "dataset": render_login(self.datasets.endpoint_of(ref.name)),
        }

    def _name_dataset(self, name: str) -> dict[str, Any]:
        """Say where the dataset is, where an answer's queries are run over it."""
        if load_answer(self.request.scenario_dir(name)).artifact is None:
            return {}
        return {"dataset": render_login(self.datasets.endpoint_of(name))}

    def _read_facts(self, name: str) -> dict[str, Any]:
        record = self.datasets.record_of(name)
        sheet = self.datasets.answer_source(name)
        digest = record.sheets.get(sheet or "")
        if digest is None:
            raise Terminal(f"dataset of scenario {name}: its record has no facts for the answer key")
        return dict(record.model_dump(mode="json")["facts"][digest])

    def _judge_secrets(self) -> dict[str, str]:
        judge = self.suite.judge.anthropic
        if judge is None:
            return {}
        name = f"{judge.secret_key_ref.name}/{judge.secret_key_ref.key}"
        return {name: self.secrets[name]}
