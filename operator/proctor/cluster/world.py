"""The children of a run on a cluster: looked at for every pass, and changed by what it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from proctor.adapters.kube.kinds import DEPLOYMENT, JOB, POD, SERVICE
from proctor.cluster.attempts import Attempts, Moment
from proctor.cluster.datasets import Datasets
from proctor.cluster.gateway import Gateway
from proctor.cluster.grader import Grader
from proctor.cluster.ground import Ground
from proctor.cluster.installation import Installation
from proctor.cluster.isolation import observe_isolation, prove
from proctor.cluster.keys import RunKeys
from proctor.cluster.looking import Eyes, Seen
from proctor.errors import InvalidInput, Retryable, Terminal
from proctor.manifests.names import ROLE_LABEL, RUN_LABEL, Role
from proctor.manifests.scope import RunScope
from proctor.reconcile.observed import FaultSeen, GatewaySeen, Observed, Readiness
from proctor.reconcile.plan import (
    Action,
    EndAttempt,
    FinishGrading,
    PrepareDataset,
    ProbeServers,
    ProveIsolation,
    ReleaseChildren,
    ServeDataset,
    StartAttempt,
    StartGateway,
    StartGrader,
    StopAttempt,
)
from proctor.reconcile.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    seen: Seen
    gateway: GatewaySeen


class World:
    """Observer and applier of one run.

    Args:
        installation: what all runs share.
        scope: the run.
        notify: called when something happened that a pass should see.
    """

    def __init__(self, installation: Installation, scope: RunScope, notify: Callable[[], None]) -> None:
        keys = RunKeys.derive(installation.master_key, scope.uid)
        self._installation = installation
        self._scope = scope
        self._eyes = Eyes(installation.kube, scope)
        self._ground = Ground(installation, scope, self._eyes, keys)
        self._gateway = Gateway(self._ground, keys.operator_token, notify)
        self._datasets = Datasets(self._ground)
        self._attempts = Attempts(self._ground, self._gateway)
        self._grader = Grader(self._ground)
        self._met: list[FaultSeen] = []
        self._look: _Look | None = None

    async def observe(self, run: RunSnapshot) -> Observed:
        """Look at every child.

        Raises:
            Retryable: the look failed.
        """
        try:
            return await self._observe(run)
        except (Terminal, InvalidInput) as error:
            raise Retryable(f"observing run {run.name}: {error}") from error

    async def apply(self, run: RunSnapshot, action: Action) -> None:
        """Bring an effect about.

        Raises:
            Retryable: not now.
            Terminal: it can never be done; every later look says so.
        """
        try:
            await self._apply(action)
        except (Terminal, InvalidInput) as error:
            self._met.append(FaultSeen("InfrastructureFailed", str(error)))
            raise Terminal(f"run {run.name}: {error}") from error

    async def tidy(self) -> int:
        """Delete the pods of attempts whose record is kept; return how many.

        Raises:
            Retryable: not now.
        """
        spent = self._attempts.spent()
        for pod in spent:
            await self._installation.kube.delete(POD, self._scope.namespace, pod.name, uid=pod.uid, grace_seconds=1)
        return len(spent)

    async def close(self) -> None:
        """Let go of what this process holds; the children stay."""
        await self._gateway.close()

    async def _observe(self, run: RunSnapshot) -> Observed:
        now = self._installation.clock()
        pending = timedelta(seconds=run.suite.limits.pending_deadline_seconds)
        seen = await self._eyes.look(now)
        self._ground.see(seen)
        await self._datasets.note(seen)
        gateway = await self._gateway.observe(seen, now, pending_deadline=pending)
        self._look = _Look(seen=seen, gateway=gateway)
        isolation = await observe_isolation(self._ground, seen, now, patience=pending)
        progress = self._gateway.progress if gateway.state is Readiness.READY else None
        attempts = self._attempts.observe(seen, Moment(now=now, pending_deadline=pending, progress=progress))
        return Observed(
            datasets=self._datasets.observe(seen),
            isolation=isolation.state,
            isolation_message=isolation.message,
            gateway=gateway,
            probes=seen.probes,
            probing=self._gateway.probing,
            attempts=attempts,
            ended=tuple(self._gateway.ended.values()),
            grader=self._grader.observe(seen),
            faults=(*self._met, *self._datasets.find_faults(seen, now, pending)),
        )

    async def _apply(self, action: Action) -> None:
        look = self._look
        if look is None:
            raise Retryable(f"run {self._scope.name} was not looked at yet")
        match action:
            case StartAttempt(key):
                await self._attempts.start(look.seen, key)
            case StopAttempt(key, cause):
                await self._attempts.stop(key, cause, self._installation.clock())
            case EndAttempt(key, exit_):
                await self._attempts.end(key, exit_)
            case PrepareDataset(scenario):
                await self._ground.lay(look.seen)
                await self._datasets.prepare(scenario)
            case ServeDataset(scenario):
                await self._datasets.serve(look.seen, scenario)
            case _:
                await self._apply_to_process(action, look)

    async def _apply_to_process(
        self,
        action: ProveIsolation | StartGateway | ProbeServers | StartGrader | FinishGrading | ReleaseChildren,
        look: _Look,
    ) -> None:
        match action:
            case ProveIsolation():
                await self._ground.lay(look.seen)
                await prove(self._ground, self._gateway, look.seen, look.gateway)
            case StartGateway():
                await self._gateway.start(look.seen)
            case ProbeServers():
                self._gateway.probe()
            case StartGrader():
                await self._grader.start(look.seen)
            case FinishGrading():
                await self._grader.finish()
            case ReleaseChildren():
                await self._release()
            case _:
                assert_never(action)

    async def _release(self) -> None:
        """Delete what runs, the gateway last: as long as it is there, a pass that comes later goes on with this.

        Policies stay, so that nothing opens while pods end; they and the rest go with the run.
        """
        kube, namespace = self._installation.kube, self._scope.namespace
        self._eyes.blink()
        everything = {RUN_LABEL: self._scope.names.prefix}
        await kube.delete_all(JOB, namespace, labels=everything)
        for role in (Role.SANDBOX, Role.SEED, Role.GRADE, Role.PROVISION):
            await kube.delete_all(POD, namespace, labels={**everything, ROLE_LABEL: role.value})
        await kube.delete_all(DEPLOYMENT, namespace, labels={**everything, ROLE_LABEL: Role.TOOLBOX.value})
        await kube.delete_all(SERVICE, namespace, labels=everything)
        await kube.delete_all(DEPLOYMENT, namespace, labels=everything)
