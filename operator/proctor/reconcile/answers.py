"""An EvalRun or an EvalSuite → the one answer that gates ask for: what is its verdict, on what it says now?

A status that describes an older generation is no answer: until the operator has seen the newest, the verdict is
Pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from proctor.api.fields import Closed
from proctor.api.gate import Enforcement
from proctor.api.run import ConditionStatus, ConditionType, EvalRunStatus, Verdict
from proctor.api.suite_status import EvalSuiteStatus, GateStatus
from proctor.errors import InvalidInput
from proctor.reconcile.conditions import is_let_through

_STALE = "waiting for the operator to observe generation {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a gate may rely on.

    Attributes:
        kind: EvalRun or EvalSuite.
        generation: of the spec that is spoken of.
        verdict: Pending until it is final.
        enforcement: of the suite; empty until the operator has frozen it.
        passes: whether what waits for the verdict may go on: also any verdict but Error under Audit.
        reason: machine word.
        summary: one line that says why.
        run: name of the run that the verdict is of; empty while there is none.
    """

    kind: str
    namespace: str
    name: str
    generation: int
    verdict: Verdict
    enforcement: str = ""
    passes: bool = False
    reason: str = ""
    summary: str = ""
    run: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "generation": self.generation,
            "verdict": self.verdict.value,
            "enforcement": self.enforcement,
            "passes": self.passes,
            "reason": self.reason,
            "summary": self.summary,
            "run": self.run,
        }


def answer_run(body: Mapping[str, Any]) -> Answer:
    """Return the answer of an EvalRun, as the API server has it.

    Raises:
        InvalidInput: its status is none that this version knows.
    """
    status = _read_status(body, EvalRunStatus)
    pending = _pending(body, run=body["metadata"]["name"])
    if status.observed_generation != pending.generation:
        return pending
    return _settle(pending, status.verdict, status.enforcement, reason=status.reason, summary=status.summary)


def answer_suite(body: Mapping[str, Any]) -> Answer:
    """Return the answer of an EvalSuite, as the API server has it.

    Raises:
        InvalidInput: changes make it run nothing, so it has no verdict; or its status is unknown to this version.
    """
    spec = body.get("spec") or {}
    status = _read_status(body, EvalSuiteStatus)
    pending = _pending(body)
    refused = _find_refusal(status)
    if refused is not None and status.observed_generation == pending.generation:
        return _settle(pending, Verdict.ERROR, None, reason="InvalidSpec", summary=refused)
    if not spec.get("runOnChange"):
        where = f"EvalSuite {pending.namespace}/{pending.name}"
        raise InvalidInput(f"{where} gates nothing: set spec.runOnChange: true, or ask for one of its runs")
    gate = status.gate
    if gate is None or gate.for_generation != pending.generation:
        return pending
    return _answer_gate(pending, status, gate, Enforcement(spec["gate"]["enforcement"]))


def _answer_gate(pending: Answer, status: EvalSuiteStatus, gate: GateStatus, enforcement: Enforcement) -> Answer:
    running = replace(
        pending,
        run=gate.run_ref,
        enforcement=enforcement.value,
        reason="AwaitingVerdict",
        summary=f"run {gate.run_ref} has no verdict yet",
    )
    if status.observed_generation != pending.generation or not gate.verdict.terminal:
        return running
    return _settle(running, gate.verdict, enforcement, reason=gate.reason, summary=gate.summary)


def _pending(body: Mapping[str, Any], *, run: str = "") -> Answer:
    metadata = body["metadata"]
    generation = int(metadata.get("generation") or 0)
    return Answer(
        kind=str(body["kind"]),
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        generation=generation,
        verdict=Verdict.PENDING,
        reason="GenerationNotObserved",
        summary=_STALE.format(generation),
        run=run,
    )


def _settle(pending: Answer, verdict: Verdict, enforcement: Enforcement | None, *, reason: str, summary: str) -> Answer:
    return replace(
        pending,
        verdict=verdict,
        enforcement="" if enforcement is None else enforcement.value,
        passes=is_let_through(verdict, enforcement or Enforcement.ENFORCE),
        reason=reason,
        summary=summary,
    )


def _find_refusal(status: EvalSuiteStatus) -> str | None:
    """Return why a suite can never run; None if it can."""
    for condition in status.conditions:
        if condition.type is ConditionType.STALLED and condition.reason == "InvalidSpec":
            return condition.message if condition.status is ConditionStatus.TRUE else None
    return None


_Status = TypeVar("_Status", bound=Closed)


def _read_status(body: Mapping[str, Any], model: type[_Status]) -> _Status:
    try:
        return model.model_validate(body.get("status") or {}, by_alias=True, by_name=False)
    except ValidationError as error:
        metadata = body["metadata"]
        where = f"{body['kind']} {metadata['namespace']}/{metadata['name']}"
        raise InvalidInput(f"{where}: its status is of another version of Proctor; use that one's command") from error
