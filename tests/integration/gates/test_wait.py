"""`proctor wait` and the snippets that call it, against an API server that fails as real ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli.app import app
from support.api_server import DROPPED, ScriptedApi, serve_api
from support.recipes_of_gates import GATES, load_gate
from support.statuses import PASSING, PROGRESSING, STOPPED, SUITES_PASSING, SUITES_STOPPED

RUNNING = PROGRESSING["running"]
ServeApi = Callable[..., ScriptedApi]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[ServeApi]:
    with ExitStack() as stack:
        yield lambda *replies: stack.enter_context(serve_api(tmp_path, replies))


def invoke(api: ScriptedApi, *words: str) -> Any:
    return CliRunner().invoke(app, ["wait", *words, "--kubeconfig", str(api.kubeconfig)])


@pytest.mark.parametrize(
    ("verdict", "code"), [("Pass", 0), ("Fail", 1), ("Inconclusive", 2), ("Error", 3), ("Cancelled", 3)]
)
def test_exit_codes_are_those_of_proctor_run(verdict: str, code: int, serve: ServeApi) -> None:
    """0 Pass, 1 Fail, 2 Inconclusive, 3 Error or Cancelled."""
    api = serve((PASSING | STOPPED)[verdict])
    outcome = invoke(api, "nightly")
    assert outcome.exit_code == code
    assert outcome.stdout == f"{verdict} (Because): it is so\n"
    assert api.paths == ["/apis/proctor.dev/v1alpha1/namespaces/evals/evalruns/nightly"]


def test_it_survives_what_drops_and_refuses_to_be_hurried(serve: ServeApi) -> None:
    """A closed connection, a restarting API server and a stale status are no verdict."""
    api = serve(DROPPED, 500, 503, PROGRESSING["an old Pass, and a newer generation"], PASSING["Pass"])
    outcome = invoke(api, "nightly")
    assert outcome.exit_code == 0
    assert len(api.paths) == 5


def test_its_time_may_be_bounded(serve: ServeApi) -> None:
    outcome = invoke(serve(RUNNING), "nightly", "--timeout", "1")
    assert outcome.exit_code == 4
    assert "no verdict after 1 s" in outcome.stderr


def test_what_it_may_not_read_is_an_error(serve: ServeApi) -> None:
    outcome = invoke(serve(403), "nightly", "-n", "other")
    assert outcome.exit_code == 3
    assert "reading EvalRun other/nightly: 403" in outcome.stderr


def test_the_answer_as_json(serve: ServeApi) -> None:
    outcome = invoke(serve(SUITES_PASSING["Pass"]), "sql-servers", "--suite", "--json")
    assert json.loads(outcome.stdout) | {"verdict": "Pass", "run": "sql-servers-1"} == json.loads(outcome.stdout)


def run_script(script: str, api: ScriptedApi, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run what a pipeline runs; `kubectl` only says what it was asked."""
    stub = folder / "bin" / "kubectl"
    stub.parent.mkdir(exist_ok=True)
    stub.write_text('#!/bin/sh\necho "kubectl $*"\n')
    stub.chmod(0o755)
    own = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{stub.parent}:{own}:{os.environ['PATH']}", "KUBECONFIG": str(api.kubeconfig)}
    return subprocess.run(
        ["sh", "-ec", script, *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(("body", "code"), [(SUITES_PASSING["Pass"], 0), (SUITES_STOPPED["Fail"], 1)])
def test_github_actions_step_ends_as_the_gate_does(body: Any, code: int, serve: ServeApi, tmp_path: Path) -> None:
    (workflow,) = load_gate("github-actions.yaml")
    (step,) = [step for step in workflow["jobs"]["gate"]["steps"] if step.get("name") == "gate"]
    done = run_script(step["run"], serve(body), tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("kubectl apply --filename=suite.yaml\n")


@pytest.mark.parametrize(("body", "code"), [(SUITES_PASSING["Pass"], 0), (SUITES_STOPPED["Inconclusive"], 2)])
def test_tekton_step_ends_as_the_gate_does(body: Any, code: int, serve: ServeApi, tmp_path: Path) -> None:
    (task,) = load_gate("tekton.yaml")
    (step,) = task["spec"]["steps"]
    assert step["command"] == ["sh", "-c"]
    (script,) = step["args"]
    verdict = tmp_path / "verdict"
    filled = {"$(params.suite)": "sql-servers", "$(params.namespace)": "evals", "$(results.verdict.path)": str(verdict)}
    for name, value in filled.items():
        script = script.replace(name, value)
    done = run_script(script, serve(body), tmp_path)
    assert done.returncode == code, done.stderr
    assert json.loads(verdict.read_text())["verdict"] == body["status"]["gate"]["verdict"]


def test_the_rollouts_job_offers_one_run(serve: ServeApi, tmp_path: Path) -> None:
    """What it applies is an EvalRun of the candidate's image, under a name that follows from the pod template."""
    (template,) = (one for one in load_gate("rollouts.yaml") if one["kind"] == "AnalysisTemplate")
    (metric,) = [metric for metric in template["spec"]["metrics"] if metric["name"] == "start"]
    (container,) = metric["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    (script,) = container["args"]
    assert container["command"] == ["sh", "-ec"]
    image = f"registry.example.com/mcp@sha256:{'a' * 64}"
    filled = {"run": "5d4f", "namespace": "evals", "suite": "sql-servers", "server": "candidate", "image": image}
    for name, value in filled.items():
        script = script.replace("{{args." + name + "}}", value)
    done = run_script(script.replace("kubectl apply --filename=-", "cat"), serve(RUNNING), tmp_path)
    from ruamel.yaml import YAML

    from proctor.api.run import EvalRun

    run = EvalRun.model_validate(YAML(typ="safe").load(done.stdout))
    assert (run.metadata.name, run.metadata.namespace, run.spec.suite_ref.name) == ("5d4f", "evals", "sql-servers")
    assert run.spec.servers is not None
    assert [(server.name, server.image) for server in run.spec.servers] == [("candidate", image)]
    assert "{{" not in script


def test_the_kubectl_script_asks_twice(serve: ServeApi, tmp_path: Path) -> None:
    """Complete, whatever the verdict; then Ready, which an open gate alone has."""
    done = run_script(f"sh {GATES / 'kubectl-wait.sh'} evals nightly", serve(RUNNING), tmp_path)
    asked = [line for line in done.stdout.splitlines() if "wait" in line]
    assert ["--for=condition=Complete" in asked[0], "--for=condition=Ready" in asked[1]] == [True, True]
