"""EvalRuns and EvalSuites as an API server has them, in every state that a gate may meet."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
GENERATION = 3


def run_body(status: Object | None, *, generation: int = GENERATION, **spec: Any) -> Object:
    body: Object = {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": "nightly", "namespace": "evals", "generation": generation, "uid": "4f1c"},
        "spec": {"suiteRef": {"name": "sql-servers"}} | spec,
    }
    return body if status is None else body | {"status": status}


def conditions(holds: str, *, message: str = "it is so") -> list[Object]:
    return [
        {
            "type": kind,
            "status": "True" if kind == holds else "False",
            "reason": "Because",
            "message": message,
            "observedGeneration": GENERATION,
            "lastTransitionTime": "2026-11-30T12:00:00Z",
        }
        for kind in ("Ready", "Reconciling", "Stalled")
    ]


def run_status(verdict: str | None, *, holds: str, enforcement: str = "Enforce", observed: int = GENERATION) -> Object:
    status = {
        "observedGeneration": observed,
        "verdict": verdict,
        "enforcement": enforcement,
        "reason": "Because",
        "summary": "it is so",
        "conditions": conditions(holds),
    }
    return {name: value for name, value in status.items() if value is not None}


def suite_body(
    status: Object | None, *, generation: int = GENERATION, on_change: bool = True, enforcement: str = "Enforce"
) -> Object:
    spec = {"runOnChange": on_change, "gate": {"enforcement": enforcement, "minimum": "0.7"}}
    body: Object = {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalSuite",
        "metadata": {"name": "sql-servers", "namespace": "evals", "generation": generation, "uid": "5a17"},
        "spec": spec,
    }
    return body if status is None else body | {"status": status}


def suite_status(
    verdict: str | None, *, holds: str, observed: int = GENERATION, for_generation: int = GENERATION
) -> Object:
    status: Object = {"observedGeneration": observed, "conditions": conditions(holds)}
    if verdict is None:
        return status
    told = {"reason": "Because", "summary": "it is so"} if verdict != "Pending" else {}
    gate = {"verdict": verdict, "runRef": "sql-servers-1", "forGeneration": for_generation, **told}
    return status | {"gate": gate}


BORN: Object = {"observedGeneration": -1}

PROGRESSING: dict[str, Object] = {
    "no status at all": run_body(None),
    "from birth": run_body(BORN),
    "running": run_body(run_status("Pending", holds="Reconciling")),
    "no verdict yet": run_body(run_status(None, holds="Reconciling")),
    "an old Pass, and a newer generation": run_body(run_status("Pass", holds="Ready"), generation=GENERATION + 1),
}
PASSING: dict[str, Object] = {
    "Pass": run_body(run_status("Pass", holds="Ready")),
    "Audit and Fail": run_body(run_status("Fail", holds="Ready", enforcement="Audit")),
    "Audit and Inconclusive": run_body(run_status("Inconclusive", holds="Ready", enforcement="Audit")),
}
STOPPED: dict[str, Object] = {
    **{word: run_body(run_status(word, holds="Stalled")) for word in ("Fail", "Inconclusive", "Error", "Cancelled")},
    "Audit and Error": run_body(run_status("Error", holds="Stalled", enforcement="Audit")),
}
UNKNOWN = run_body(run_status("Maybe", holds="Stalled"))
SUSPENDED = run_body(run_status("Pending", holds="nothing"), suspend=True)

SUITES_PROGRESSING: dict[str, Object] = {
    "no status at all": suite_body(None),
    "from birth": suite_body(BORN),
    "first run": suite_body(suite_status("Pending", holds="Reconciling", observed=-1)),
    "an old Pass, and a newer generation": suite_body(suite_status("Pass", holds="Ready"), generation=GENERATION + 1),
    "a newer generation's run": suite_body(
        suite_status("Pending", holds="Reconciling", for_generation=GENERATION + 1), generation=GENERATION + 1
    ),
    "another image of the same generation": suite_body(suite_status("Pending", holds="Reconciling")),
    "an image is awaited": suite_body(suite_status(None, holds="Reconciling", observed=-1)),
}
SUITES_PASSING: dict[str, Object] = {
    "Pass": suite_body(suite_status("Pass", holds="Ready")),
    "Audit and Fail": suite_body(suite_status("Fail", holds="Ready"), enforcement="Audit"),
}
SUITES_STOPPED: dict[str, Object] = {
    **{
        word: suite_body(suite_status(word, holds="Stalled")) for word in ("Fail", "Inconclusive", "Error", "Cancelled")
    },
    "Audit and Error": suite_body(suite_status("Error", holds="Stalled"), enforcement="Audit"),
}
SUITE_UNGATED = suite_body(suite_status(None, holds="Ready"), on_change=False)


def refused_suite() -> Object:
    """A suite that breaks a rule which the API server could not check."""
    status = suite_status(None, holds="Stalled")
    for condition in status["conditions"]:
        condition |= {"reason": "InvalidSpec", "message": "schedule names no time"}
    return suite_body(status)
