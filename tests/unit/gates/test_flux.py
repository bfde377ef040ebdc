"""Flux' healthCheckExprs, evaluated as kustomize-controller does, and kstatus' own rules beside them."""

from __future__ import annotations

from typing import Any

import celpy
import pytest

from support.recipes_of_gates import load_gate
from support.statuses import (
    PASSING,
    PROGRESSING,
    STOPPED,
    SUITE_UNGATED,
    SUITES_PASSING,
    SUITES_PROGRESSING,
    SUITES_STOPPED,
    SUSPENDED,
    UNKNOWN,
    Object,
    refused_suite,
)

ENVIRONMENT = celpy.Environment()


def evaluate(expression: str, body: Object) -> bool:
    program = ENVIRONMENT.program(ENVIRONMENT.compile(expression))
    variables = {name: celpy.json_to_cel(value) for name, value in body.items()}
    return bool(program.evaluate(variables))


def status_by_expressions(body: Object) -> str:
    """The order of fluxcd/pkg: a stale generation, then inProgress, failed, current, else in progress."""
    (evals, _) = load_gate("flux.yaml")
    (expressions,) = [each for each in evals["spec"]["healthCheckExprs"] if each["kind"] == body["kind"]]
    for name, status in (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")):
        if evaluate(expressions[name], body):
            return status
    return "InProgress"


def status_by_kstatus(body: Object) -> str:
    """kstatus' rules for a kind that it does not know."""
    status = body["status"]
    if status.get("observedGeneration", body["metadata"]["generation"]) != body["metadata"]["generation"]:
        return "InProgress"
    said = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    if said.get("Stalled") == "True":
        return "Failed"
    if said.get("Reconciling") == "True" or said.get("Ready") in {"False", "Unknown"}:
        return "InProgress"
    return "Current"


def cases(states: dict[str, dict[str, Object]]) -> list[Any]:
    """Every state that has a status: one is there from birth, for kstatus takes its absence for success."""
    return [
        pytest.param(body, wanted, id=f"{body['kind']}: {name}")
        for wanted, bodies in states.items()
        for name, body in bodies.items()
        if "status" in body
    ]


CASES = [
    *cases({"InProgress": PROGRESSING | {"suspended": SUSPENDED}, "Current": PASSING, "Failed": STOPPED}),
    *cases({"Failed": {"a word of the future": UNKNOWN}}),
    *cases({"InProgress": SUITES_PROGRESSING, "Current": SUITES_PASSING, "Failed": SUITES_STOPPED}),
    *cases({"Current": {"no gate": SUITE_UNGATED}, "Failed": {"refused": refused_suite()}}),
]


@pytest.mark.parametrize(("body", "wanted"), CASES)
def test_health_check_expressions(body: Object, wanted: str) -> None:
    """What depends on the evaluations is applied at Current alone."""
    assert status_by_expressions(body) == wanted


@pytest.mark.parametrize(("body", "wanted"), CASES)
def test_kstatus_alone_says_the_same(body: Object, wanted: str) -> None:
    """`wait: true` and `healthChecks` without expressions are gates too; `--wait` of other tools as well."""
    assert status_by_kstatus(body) == wanted


def test_the_app_waits_for_the_evaluations() -> None:
    evals, app = load_gate("flux.yaml")
    assert evals["spec"]["wait"] is True
    assert app["spec"]["dependsOn"] == [{"name": evals["metadata"]["name"]}]
