"""What of a suite one machine ignores, and what it can't do without a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.api.suite import EvalSuiteSpec, History, Limits, Sandbox


def ignored_locally(spec: EvalSuiteSpec) -> list[str]:
    """Return the fields that are given and have no effect on one machine, each with what happens instead."""
    return [*_ignored_of_servers(spec), *_ignored_of_run(spec)]


def unsupported_locally(spec: EvalSuiteSpec) -> list[str]:
    """Return what keeps a suite from running on one machine, each with the fix; empty if nothing does."""
    problems = []
    for index, server in enumerate(spec.servers):
        field = f"spec.servers[{index}]"
        if server.http is not None and server.http.url is None and server.http.command is None:
            problems.append(f"{field}.http: an image alone can't be started on one machine: add command, or use url")
    return problems


def _ignored_of_servers(spec: EvalSuiteSpec) -> Iterator[str]:
    for index, server in enumerate(spec.servers):
        field = f"spec.servers[{index}]"
        kind = "stdio" if server.stdio is not None else "http"
        if server.image is not None:
            yield f"{field}.{kind}.image: the command runs from this machine instead"
        if server.image_from is not None:
            yield f"{field}.imageFrom: there is no Deployment to look at; the command runs instead"
        if server.provision is not None and server.provision.image is not None:
            yield f"{field}.provision.image: the command runs from this machine instead"


def _ignored_of_run(spec: EvalSuiteSpec) -> Iterator[str]:
    for index, scenario in enumerate(spec.scenarios):
        if scenario.config_map_ref is not None:
            yield f"spec.scenarios[{index}].configMapRef, answerRef: looked up under --scenarios DIR/{scenario.name}/"
    if spec.agent.command is not None and spec.agent.command.image is not None:
        yield "spec.agent.command.image: the command runs from this machine instead"
    if spec.gate.baseline is not None and spec.gate.baseline.last_passed:
        yield "spec.gate.baseline.lastPassed: images of earlier runs are not started; only minimum is judged"
    if spec.limits.pending_deadline_seconds != Limits().pending_deadline_seconds:
        yield "spec.limits.pendingDeadlineSeconds: no sandbox waits for a node"
    yield from _ignored_of_starting(spec)
    given = spec.sandbox.model_fields_set if spec.sandbox != Sandbox() else set()
    fields = (f"sandbox.{Sandbox.model_fields[name].alias}" for name in Sandbox.model_fields if name in given)
    yield from (f"spec.{field}: sandboxes are bubblewrap, not pods" for field in fields)


def _ignored_of_starting(spec: EvalSuiteSpec) -> Iterator[str]:
    if spec.schedule is not None:
        yield "spec.schedule: start runs from cron or CI"
    if spec.run_on_change:
        yield "spec.runOnChange: nothing watches the suite; start a run yourself"
    if spec.run_request_id:
        yield "spec.runRequestId: start a run yourself"
    if spec.history != History():
        yield "spec.history: runs are kept until you delete them"
