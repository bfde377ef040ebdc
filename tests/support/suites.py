"""Makers of suites and their runs, and a namespace of them that exists only in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from proctor.api.fields import NameRef
from proctor.api.run import EvalRunSpec, EvalRunStatus, RunDigests, TtlStrategy, Verdict
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus
from proctor.reconcile.suites import decide_suite
from proctor.reconcile.suites_plan import CreateRun, DeleteRun, SuiteAction, SuitePlan
from proctor.reconcile.suites_seen import RunCause, RunSeen, SuiteSeen, SuiteSnapshot
from support.manifests import suite as make_manifest

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
IMAGE_A = f"registry.example.com/mcp@sha256:{'a' * 64}"
IMAGE_B = f"registry.example.com/mcp@sha256:{'b' * 64}"
SUITE = "made"
FOLLOWER = {
    "name": "candidate",
    "stdio": {"command": ["mcp"]},
    "imageFrom": {"deployment": "my-mcp", "container": "server"},
    "allowedTools": ["run_query"],
}


def make_spec(**changes: Any) -> EvalSuiteSpec:
    return make_manifest(**changes).spec


def following_spec(**changes: Any) -> EvalSuiteSpec:
    """A suite whose candidate is whatever a Deployment runs."""
    current = {"name": "current", "stdio": {"command": ["mcp"], "image": IMAGE_A}, "allowedTools": ["run_query"]}
    return make_spec(servers=[current, FOLLOWER], runOnChange=True, **changes)


def make_suite(spec: EvalSuiteSpec | None = None, **changes: Any) -> SuiteSnapshot:
    fields = {"name": SUITE, "uid": "5a17", "generation": 1, "spec": spec or make_spec(), "status": EvalSuiteStatus()}
    return SuiteSnapshot(**(fields | changes))


def ended(verdict: Verdict = Verdict.PASS, *, at: datetime = NOW, **changes: Any) -> EvalRunStatus:
    fields: dict[str, Any] = {
        "observed_generation": 1,
        "verdict": verdict,
        "reason": f"Because{verdict}",
        "summary": f"it is {verdict}",
        "ended": at,
        "digests": RunDigests(suite="ab" * 32),
        "images": {"current": IMAGE_A, "candidate": IMAGE_B},
    }
    return EvalRunStatus(**(fields | changes))


def make_run(name: str = "someones", status: EvalRunStatus | None = None, **changes: Any) -> RunSeen:
    fields: dict[str, Any] = {
        "name": name,
        "created": NOW - timedelta(hours=1),
        "owned": True,
        "cause": RunCause.CHANGE,
        "spec": EvalRunSpec(suite_ref=NameRef(name=SUITE)),
        "status": status or EvalRunStatus(),
    }
    return RunSeen(**(fields | changes))


def with_ttl(run: RunSeen, **seconds: int) -> RunSeen:
    return replace(run, spec=run.spec.model_copy(update={"ttl_strategy": TtlStrategy(**seconds)}))


@dataclass(slots=True)
class FakeNamespace:
    """A suite, its runs and what it follows; whoever decides may be killed between any two effects."""

    suite: SuiteSnapshot
    images: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunSeen] = field(default_factory=dict)
    now: datetime = NOW
    created: list[str] = field(default_factory=list)

    @property
    def seen(self) -> SuiteSeen:
        return SuiteSeen(runs=tuple(self.runs.values()), images=dict(self.images))

    def decide(self) -> SuitePlan:
        return decide_suite(self.suite, self.seen, self.now)

    def apply(self, plan: SuitePlan, *, effects: int | None = None) -> None:
        """Apply a plan's effects in order: its actions, then its status; `effects` is how many before the kill."""
        whole = [*plan.actions, plan.status]
        for effect in whole[:effects]:
            if isinstance(effect, EvalSuiteStatus):
                self.suite = replace(self.suite, status=effect)
            else:
                self._act(effect)

    def settle(self, *, most: int = 10) -> int:
        """Pass until nothing is left to do, and return how many passes that took."""
        for passes in range(most):
            plan = self.decide()
            if plan.empty:
                return passes
            self.apply(plan)
        raise AssertionError(f"no rest after {most} passes: {self.decide()}")

    def edit(self, spec: EvalSuiteSpec) -> None:
        self.suite = replace(self.suite, spec=spec, generation=self.suite.generation + 1)

    def end(self, name: str, verdict: Verdict = Verdict.PASS) -> None:
        self.runs[name] = replace(self.runs[name], status=ended(verdict, at=self.now))

    def tick(self, **time: int) -> None:
        self.now += timedelta(**time)

    def _act(self, action: SuiteAction) -> None:
        match action:
            case CreateRun():
                assert action.name not in self.runs, "a run was made twice"
                self.created.append(action.name)
                self.runs[action.name] = make_run(action.name, cause=action.cause, spec=action.spec, created=self.now)
            case DeleteRun():
                del self.runs[action.name]
            case _:
                assert_never(action)
