"""Argo Rollouts' analysis: its conditions over the answers that the page gives, poll by poll."""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from starlette.testclient import TestClient

from proctor.web.app import build_app
from support.readers import TOKEN, MemoryReader
from support.recipes_of_gates import load_gate
from support.statuses import PASSING, PROGRESSING, STOPPED, Object

ENVIRONMENT = celpy.Environment()


def metric(name: str) -> dict[str, Any]:
    template, *_ = load_gate("rollouts.yaml")
    (found,) = [each for each in template["spec"]["metrics"] if each["name"] == name]
    return dict(found)


def holds(condition: str, result: Object) -> bool:
    # The condition is of the part that expr and CEL write and mean alike: equality, and membership in a list.
    program = ENVIRONMENT.program(ENVIRONMENT.compile(condition))
    return bool(program.evaluate({"result": celpy.json_to_cel(result)}))


def fetch(bodies: list[Object | None]) -> list[Object | None]:
    """The page's answers to one poll after another; None for a poll that is an error."""
    template = metric("verdict")["provider"]["web"]
    path = template["url"].partition("proctor-web.proctor-system")[2]
    for name, value in (("namespace", "evals"), ("run", "nightly")):
        path = path.replace("{{args." + name + "}}", value)
    (header,) = template["headers"]
    client = TestClient(build_app(MemoryReader(bodies), TOKEN))
    replies = [
        client.get(path, headers={header["key"]: header["value"].replace("{{args.token}}", TOKEN)}) for _ in bodies
    ]
    return [reply.json() if reply.status_code == 200 else None for reply in replies]


def measure(rule: dict[str, Any], answer: Object | None) -> str:
    """What one poll is to a metric."""
    if answer is None:
        return "Error"
    if holds(rule["failureCondition"], answer):
        return "Failed"
    return "Successful" if holds(rule["successCondition"], answer) else "Inconclusive"


def assess(name: str, answers: list[Object | None]) -> tuple[int, str]:
    """How a metric ends, and at which poll, as Rollouts' controller assesses its measurements."""
    rule = metric(name)
    seen = {"Failed": 0, "Inconclusive": 0, "Error": 0, "Successful": 0}
    limits = {
        "Failed": rule["failureLimit"],
        "Inconclusive": rule["inconclusiveLimit"],
        "Error": rule["consecutiveErrorLimit"],
    }
    for poll, answer in enumerate(answers, 1):
        phase = measure(rule, answer)
        seen["Error"] = seen["Error"] if phase == "Error" else 0
        seen[phase] += 1
        if seen[phase] > limits.get(phase, rule["consecutiveSuccessLimit"] - 1):
            return poll, phase
        if seen["Failed"] + seen["Inconclusive"] == rule["count"]:
            return poll, "Inconclusive"
    return len(answers), "Running"


def analyse(answers: list[Object | None]) -> str:
    """How the analysis ends: as the first metric does that does not succeed, else once both have."""
    ends = sorted(assess(name, answers) for name in ("verdict", "decided"))
    bad = [end for _, end in ends if end not in {"Successful", "Running"}]
    return bad[0] if bad else max((end for _, end in ends), key=["Successful", "Running"].index)


RUNNING = PROGRESSING["running"]
BORN = PROGRESSING["from birth"]


@pytest.mark.parametrize(
    ("polls", "wanted"),
    [
        ([None, BORN, RUNNING, RUNNING, PASSING["Pass"]], "Successful"),
        ([BORN, RUNNING, STOPPED["Fail"]], "Failed"),
        ([RUNNING, STOPPED["Error"]], "Failed"),
        ([RUNNING, STOPPED["Cancelled"]], "Failed"),
        ([RUNNING] * 3 + [STOPPED["Inconclusive"]], "Inconclusive"),
        ([RUNNING] * 239, "Running"),
        ([RUNNING] * 240, "Inconclusive"),
        ([RUNNING] * 5, "Running"),
        ([PROGRESSING["an old Pass, and a newer generation"]] * 5, "Running"),
        ([None] * 10 + [PASSING["Pass"]], "Successful"),
        ([None] * 11, "Error"),
    ],
    ids=[
        "pass",
        "fail",
        "error",
        "cancelled",
        "inconclusive",
        "long",
        "too long",
        "running",
        "stale",
        "page away",
        "page gone",
    ],
)
def test_polls_end_as_the_run_does(polls: list[Object | None], wanted: str) -> None:
    """Promotes on Pass, aborts on Fail, pauses for a person on Inconclusive, and waits while it runs."""
    assert analyse(fetch(polls)) == wanted


@pytest.mark.parametrize("name", ["verdict", "decided"])
def test_limits_are_those_that_rollouts_accepts(name: str) -> None:
    """A metric needs a count, and its limits may equal it but not exceed it; enough polls for a run's whole time."""
    rule = metric(name)
    assert rule["inconclusiveLimit"] <= rule["count"]
    assert rule["failureLimit"] + rule["consecutiveSuccessLimit"] <= rule["count"]
    assert rule["count"] * 30 >= 7200
    assert rule["interval"] == "30s"
