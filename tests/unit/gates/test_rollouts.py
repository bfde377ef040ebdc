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
    (template,) = load_gate("rollouts.yaml")
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


def assess(answers: list[Object | None]) -> str:
    """How a metric ends, as Rollouts' controller assesses its measurements."""
    rule = metric("verdict")
    errors = 0
    for answer in answers[: rule["count"]]:
        if answer is None:
            errors += 1
            if errors > rule["consecutiveErrorLimit"]:
                return "Error"
            continue
        errors = 0
        if holds(rule["failureCondition"], answer):
            return "Failed"
        if holds(rule["successCondition"], answer):
            return "Successful"
    # Neither condition held at any poll: each was an inconclusive measurement, and the limit allows them all.
    return "Inconclusive" if len(answers) >= rule["count"] else "Running"


RUNNING = PROGRESSING["running"]
BORN = PROGRESSING["from birth"]


@pytest.mark.parametrize(
    ("polls", "wanted"),
    [
        ([None, BORN, RUNNING, RUNNING, PASSING["Pass"]], "Successful"),
        ([BORN, RUNNING, STOPPED["Fail"]], "Failed"),
        ([RUNNING, STOPPED["Error"]], "Failed"),
        ([RUNNING, STOPPED["Cancelled"]], "Failed"),
        ([RUNNING] * 3 + [STOPPED["Inconclusive"]] * 237, "Inconclusive"),
        ([RUNNING] * 5, "Running"),
        ([PROGRESSING["an old Pass, and a newer generation"]] * 5, "Running"),
        ([None] * 10 + [PASSING["Pass"]], "Successful"),
        ([None] * 11, "Error"),
    ],
    ids=["pass", "fail", "error", "cancelled", "inconclusive", "running", "stale", "page away", "page gone"],
)
def test_polls_end_as_the_run_does(polls: list[Object | None], wanted: str) -> None:
    """Promotes on Pass, aborts on Fail, pauses for a person on Inconclusive, and waits while it runs."""
    assert assess(fetch(polls)) == wanted


def test_limits_are_those_that_rollouts_accepts() -> None:
    """A metric needs a count, and its limits may equal it but not exceed it; enough polls for a run's whole time."""
    rule = metric("verdict")
    assert rule["inconclusiveLimit"] <= rule["count"]
    assert rule["count"] * 30 >= 7200
    assert rule["interval"] == "30s"
    assert rule["failureLimit"] == 0
