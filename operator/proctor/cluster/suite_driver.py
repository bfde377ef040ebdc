"""One suite, pass by pass: its runs and images seen, decided on, made and cleared away, one status patch."""

from __future__ import annotations

from typing import assert_never

from pydantic import ValidationError

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import EVAL_RUN, EVAL_SUITE
from proctor.api.run import EvalRunSpec, EvalRunStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus
from proctor.clock import parse_instant
from proctor.cluster.installation import Installation
from proctor.cluster.patching import build_merge_patch
from proctor.cluster.suites import follow_images
from proctor.reconcile.suites import decide_suite
from proctor.reconcile.suites_plan import CAUSE_LABEL, CreateRun, DeleteRun, SuiteAction, render_run
from proctor.reconcile.suites_seen import RunCause, RunSeen, SuiteSeen, SuiteSnapshot, is_tracked


class SuiteDriver:
    """Drives one suite; keeps nothing.

    Args:
        installation: what all suites share.
        namespace: of the suite.
        name: of the suite.
    """

    def __init__(self, installation: Installation, namespace: str, name: str) -> None:
        self._installation = installation
        self._namespace = namespace
        self._name = name

    async def make_pass(self) -> EvalSuiteStatus | None:
        """Make one pass; return the status after it, or None if the suite is gone.

        Raises:
            Retryable: not now.
            Terminal: the operator lacks a right.
            InvalidInput: the cluster refuses a run of it.
        """
        kube = self._installation.kube
        body = await kube.get(EVAL_SUITE, self._namespace, self._name)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return None
        suite = read_suite(body)
        runs = read_runs(await kube.list(EVAL_RUN, self._namespace), suite)
        images = {}
        if suite.spec is not None:
            images = await follow_images(self._installation, self._namespace, suite.spec)
        plan = decide_suite(suite, SuiteSeen(runs=runs, images=images), self._installation.clock())
        for action in plan.actions:
            await self._apply(suite, action)
        if plan.changed:
            patch = build_merge_patch(body.get("status") or {}, plan.status.to_file())
            await kube.merge_status(EVAL_SUITE, self._namespace, self._name, patch)
        return plan.status

    async def _apply(self, suite: SuiteSnapshot, action: SuiteAction) -> None:
        match action:
            case CreateRun():
                await self._installation.kube.create(render_run(suite, self._namespace, action))
            case DeleteRun(name):
                await self._installation.kube.delete(EVAL_RUN, self._namespace, name)
            case _:
                assert_never(action)


def read_suite(body: Object) -> SuiteSnapshot:
    """Return a suite as its decisions see it; one that breaks a rule has no spec, and says which."""
    spec, problem = None, ""
    try:
        spec = EvalSuiteSpec.model_validate(body["spec"], by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = f"spec.{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    metadata = body["metadata"]
    return SuiteSnapshot(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        spec=spec,
        problem=problem,
        status=EvalSuiteStatus.model_validate(body.get("status") or {}),
    )


def read_runs(bodies: list[Object], suite: SuiteSnapshot) -> list[RunSeen]:
    """Return the runs that name a suite; one that can't be read is none."""
    seen = []
    for body in bodies:
        if (body["spec"].get("suiteRef") or {}).get("name") != suite.name:
            continue
        try:
            seen.append(_read_run(body, suite))
        except ValidationError:
            continue
    return seen


def _read_run(body: Object, suite: SuiteSnapshot) -> RunSeen:
    metadata = body["metadata"]
    owners = metadata.get("ownerReferences") or ()
    cause = (metadata.get("labels") or {}).get(CAUSE_LABEL)
    return RunSeen(
        name=metadata["name"],
        created=parse_instant(metadata["creationTimestamp"]),
        owned=any(owner.get("controller") and owner["uid"] == suite.uid for owner in owners),
        cause=RunCause(cause) if cause in set(RunCause) else None,
        deleting=bool(metadata.get("deletionTimestamp")),
        tracked=is_tracked(metadata),
        spec=EvalRunSpec.model_validate(body["spec"]),
        status=EvalRunStatus.model_validate(body.get("status") or {}),
    )
