"""One run, pass by pass: look, decide, one status patch, events, effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import ValidationError

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import EVAL_RUN
from proctor.api.loading import digest_suite
from proctor.api.run import EvalRunSpec, EvalRunStatus, Verdict
from proctor.api.suite import EvalSuiteSpec
from proctor.clock import parse_instant
from proctor.cluster.events import RunRef, build_event, find_transitions
from proctor.cluster.installation import Installation
from proctor.cluster.patching import build_merge_patch
from proctor.cluster.preflight import NotYet
from proctor.cluster.suites import RunBody, freeze, read_frozen
from proctor.cluster.unstarted import build_unstarted
from proctor.cluster.world import World
from proctor.errors import InvalidInput, ProctorError, Terminal
from proctor.reconcile.decide import decide
from proctor.reconcile.plan import Action, Plan
from proctor.reconcile.snapshot import RunSnapshot
from proctor.reconcile.suites_freezing import SuiteRefused, images_of

_PATIENCE = timedelta(seconds=300)
"""A run may be applied before its suite, or while others need the room; but a wait has to end in an error."""


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a pass did.

    Attributes:
        finished: nothing is left to do for this run, until its spec changes.
        busy: it did something, so that another pass will see something new.
        status: of the run after it; None if the run is gone.
        suite: the run's suite; empty if the run is gone.
    """

    finished: bool
    busy: bool
    status: EvalRunStatus | None = None
    suite: str = ""


class RunDriver:
    """Drives one run; keeps nothing that can't be read again.

    Args:
        installation: what all runs share.
        namespace: of the run.
        name: of the run.
        notify: called when something happened that a pass should see.
    """

    def __init__(self, installation: Installation, namespace: str, name: str, notify: Callable[[], None]) -> None:
        self._installation = installation
        self._namespace = namespace
        self._name = name
        self._notify = notify
        self._uid = ""
        self._suite: EvalSuiteSpec | None = None
        self._world: World | None = None
        self._last_actions: tuple[Action, ...] = ()

    async def close(self) -> None:
        """Let go of connections; the run's children stay as they are."""
        if self._world is not None:
            await self._world.close()
            self._world = None

    async def make_pass(self) -> PassReport:
        """Make one pass.

        Raises:
            Retryable: not now.
            Terminal: the operator lacks a right; somebody has to grant it.
            InvalidInput: the run can't be read.
        """
        body = await self._installation.kube.get(EVAL_RUN, self._namespace, self._name)
        if body is None or body["metadata"].get("deletionTimestamp"):
            # What it owns goes with it.
            return PassReport(finished=True, busy=False)
        run, status = _parse(body)
        await self._follow(run)
        try:
            suite = await self._read_suite(run, status)
        except NotYet as error:
            return await self._wait(body, run, status, error)
        except SuiteRefused as error:
            return await self._refuse(body, run, status, reason=error.reason, message=str(error))
        except InvalidInput as error:
            return await self._refuse(body, run, status, reason="InvalidSuite", message=str(error))
        if suite is None:
            return await self._follow_generation(body, run, status)
        return await self._pass(body, run, self._snapshot(body, run, status, suite))

    async def _pass(self, body: Object, run: RunBody, snapshot: RunSnapshot) -> PassReport:
        if self._world is None:
            scope = self._installation.scope(run.namespace, run.name, run.uid, snapshot.suite)
            self._world = World(self._installation, scope, self._notify)
        observed = await self._world.observe(snapshot)
        plan = decide(snapshot, observed, self._installation.clock())
        if plan.changed:
            await self._write(body, run, snapshot.status, plan.status)
        acted = await self._apply(replace(snapshot, status=plan.status), plan)
        finished = plan.status.terminal and plan.empty and not acted
        again = plan.changed or acted or plan.actions != self._last_actions
        self._last_actions = plan.actions
        return PassReport(finished, again, plan.status, run.spec.suite_ref.name)

    async def _apply(self, snapshot: RunSnapshot, plan: Plan) -> bool:
        assert self._world is not None  # noqa: S101 - made before it is looked at
        for action in plan.actions:
            try:
                await self._world.apply(snapshot, action)
            except Terminal:
                # The world remembers it as a fault, and the next pass ends the run with it.
                return True
        return await self._world.tidy() > 0

    async def _write(self, body: Object, run: RunBody, before: EvalRunStatus, after: EvalRunStatus) -> None:
        patch = build_merge_patch(body.get("status") or {}, after.to_file())
        if not patch:
            return
        kube, now = self._installation.kube, self._installation.clock()
        await kube.merge_status(EVAL_RUN, run.namespace, run.name, patch)
        reference = RunRef(run.namespace, run.name, run.uid)
        for transition in find_transitions(before, after):
            try:
                await kube.note(build_event(reference, transition, now))
            except ProctorError:
                # Events are for people, who find the same in the status; the run must not wait for one.
                return

    async def _follow(self, run: RunBody) -> None:
        """Forget what was known of an earlier run of the same name."""
        if run.uid != self._uid:
            await self.close()
            self._uid = run.uid
            self._suite = None

    async def _read_suite(self, run: RunBody, status: EvalRunStatus) -> EvalSuiteSpec | None:
        if self._suite is None:
            self._suite = await read_frozen(self._installation, run)
        if self._suite is None and not status.terminal:
            self._suite = await freeze(self._installation, run)
        return self._suite

    async def _wait(self, body: Object, run: RunBody, status: EvalRunStatus, lack: NotYet) -> PassReport:
        now = self._installation.clock()
        if now - parse_instant(body["metadata"]["creationTimestamp"]) > _PATIENCE:
            return await self._refuse(body, run, status, reason=lack.reason, message=str(lack))
        return await self._say(body, run, status, verdict=Verdict.PENDING, reason=lack.reason, message=str(lack))

    async def _refuse(
        self, body: Object, run: RunBody, status: EvalRunStatus, *, reason: str, message: str
    ) -> PassReport:
        return await self._say(body, run, status, verdict=Verdict.ERROR, reason=reason, message=message)

    async def _say(
        self, body: Object, run: RunBody, status: EvalRunStatus, *, verdict: Verdict, reason: str, message: str
    ) -> PassReport:
        if run.spec.cancel:
            verdict, reason, message = Verdict.CANCELLED, "CancelRequested", "cancelled before it began"
        if not status.terminal:
            after = build_unstarted(
                status,
                verdict=verdict,
                reason=reason,
                summary=message,
                generation=body["metadata"].get("generation", 1),
                now=self._installation.clock(),
            )
            await self._write(body, run, status, after)
            status = after
        return PassReport(status.terminal, busy=False, status=status, suite=run.spec.suite_ref.name)

    async def _follow_generation(self, body: Object, run: RunBody, status: EvalRunStatus) -> PassReport:
        """A run that ended before it was frozen has no children; only its generation is followed."""
        generation = body["metadata"].get("generation", 1)
        after = status.model_copy(update={"observed_generation": generation})
        await self._write(body, run, status, after)
        return PassReport(finished=True, busy=False, status=after, suite=run.spec.suite_ref.name)

    def _snapshot(self, body: Object, run: RunBody, status: EvalRunStatus, suite: EvalSuiteSpec) -> RunSnapshot:
        created: datetime = parse_instant(body["metadata"]["creationTimestamp"])
        return RunSnapshot(
            name=run.name,
            uid=run.uid,
            generation=body["metadata"].get("generation", 1),
            suite=suite,
            suite_digest=digest_suite(suite),
            cancel=bool(run.spec.cancel),
            suspend=bool(run.spec.suspend),
            active_since=status.started or created,
            images=images_of(suite),
            status=status,
        )


def _parse(body: Object) -> tuple[RunBody, EvalRunStatus]:
    metadata = body["metadata"]
    try:
        spec = EvalRunSpec.model_validate(body["spec"], by_alias=True, by_name=False)
        status = EvalRunStatus.model_validate(body.get("status") or {}, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        name = f"EvalRun {metadata['namespace']}/{metadata['name']}"
        raise InvalidInput(f"reading {name}: {field}: {first['msg']}") from error
    return RunBody(metadata=metadata, spec=spec), status
