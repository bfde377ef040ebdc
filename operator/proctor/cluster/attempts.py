"""The attempts of a run: sandbox pods and what the gateway knows of them, and how they are started and stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from proctor.adapters.control import GatewayProgress, OpenProgress
from proctor.adapters.kube.kinds import POD
from proctor.clock import format_instant
from proctor.cluster.gateway import Gateway
from proctor.cluster.ground import Ground
from proctor.cluster.isolation import find_closed
from proctor.cluster.looking import Seen
from proctor.cluster.pods import STOP_TIME, PodSeen, read_exit
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import InvalidInput, Retryable
from proctor.manifests.names import STOP_ANNOTATION, Role
from proctor.manifests.sandbox import SandboxAttempt, build_sandbox
from proctor.reconcile.cells import expand_cells, looks_of
from proctor.reconcile.observed import AttemptSeen, AttemptState

_WAITING_CAP_SECONDS = 600
"""As long an agent may wait for an overloaded provider beside its deadline."""
_START_SECONDS = 120
"""For the init container's wait, beside the time to be scheduled."""
_STOP_SECONDS = 1
"""A pod that is past its deadline is ended by the kubelet and stays, so that its end can be read: setting the deadline
to this is how an attempt is stopped."""


class AttemptIndex:
    """Finds which attempt an opaque id is: a pod names nothing else (S20).

    Args:
        run_uid: the run.
        cells: all that it may ever have.
        most: attempts that a cell may have.
    """

    def __init__(self, run_uid: str, cells: tuple[CellKey, ...], *, most: int) -> None:
        self._run_uid = run_uid
        self._cells = cells
        self._most = most
        self._known: dict[str, AttemptKey] = {}
        self._numbered = 0

    def find(self, opaque_id: str) -> AttemptKey | None:
        """Return the attempt; None if it is none of this run's."""
        while opaque_id not in self._known and self._numbered < self._most:
            self._numbered += 1
            keys = (AttemptKey(self._run_uid, cell, self._numbered) for cell in self._cells)
            self._known.update({key.opaque_id: key for key in keys})
        return self._known.get(opaque_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What an observation of attempts rests on, beside their pods.

    Attributes:
        now: the instant of the look.
        pending_deadline: time that a sandbox has to start.
        progress: what the gateway said after the pods were listed; None while it is not ready.
    """

    now: datetime
    pending_deadline: timedelta
    progress: GatewayProgress | None


class Attempts:
    """Starts and stops the attempts of a run.

    Args:
        ground: creates objects of the run.
        gateway: opens and ends attempts.
    """

    def __init__(self, ground: Ground, gateway: Gateway) -> None:
        suite = ground.scope.suite
        cells = expand_cells(suite, looks_of(suite)[-1])
        self._ground = ground
        self._gateway = gateway
        self._index = AttemptIndex(ground.scope.uid, cells, most=suite.limits.infra_retries + 2)
        self._pods: Mapping[AttemptKey, PodSeen] = {}

    def observe(self, seen: Seen, moment: Moment) -> tuple[AttemptSeen, ...]:
        """Return the attempts that the gateway does not list as ended."""
        self._pods = {key: pod for pod in seen.pods_of(Role.SANDBOX) if (key := self._index.find(pod.attempt))}
        with_pod = (see_attempt(key, pod, moment) for key, pod in self._pods.items() if key not in self._gateway.ended)
        return (*with_pod, *self._see_bare(moment))

    def spent(self) -> list[PodSeen]:
        """Return the pods of attempts whose record is kept: nothing needs them any more."""
        return [pod for key, pod in self._pods.items() if key in self._gateway.ended and pod.deleting is None]

    async def start(self, seen: Seen, key: AttemptKey) -> None:
        """Open an attempt and create its pod.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses the pod.
        """
        suite = self._ground.scope.suite
        deadline = suite.agent.deadline_seconds
        address = self._gateway.address(seen)
        closed = find_closed(self._ground.installation, seen)
        try:
            door = await self._gateway.open(key, deadline_seconds=deadline)
        except InvalidInput as error:
            # The next look says what became of it.
            raise Retryable(f"starting attempt {key}: {error}") from error
        attempt = SandboxAttempt(
            opaque_id=key.opaque_id,
            token=door.token,
            gateway=address,
            control=key.cell.control is not None,
            deadline_seconds=deadline + _WAITING_CAP_SECONDS + _START_SECONDS,
            closed=closed,
        )
        await self._ground.installation.kube.create(build_sandbox(self._ground.scope, attempt))

    async def stop(self, key: AttemptKey, cause: ExitCause, now: datetime) -> None:
        """Stop an attempt's pod; it stays, with why it was stopped on it.

        Raises:
            Retryable: not now.
        """
        pod = self._pods.get(key)
        if pod is None:
            return
        patch = {
            "metadata": {"annotations": {STOP_ANNOTATION: cause.value, STOP_TIME: format_instant(now)}},
            "spec": {"activeDeadlineSeconds": _STOP_SECONDS},
        }
        await self._ground.installation.kube.merge(POD, self._ground.scope.namespace, pod.name, patch)

    async def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        """Tell the gateway how an attempt's process ended.

        Raises:
            Retryable: not now.
        """
        try:
            await self._gateway.end(key, exit_)
        except InvalidInput as error:
            # It was told before, or it is a new gateway: the next look says which.
            raise Retryable(f"ending attempt {key}: {error}") from error

    def _see_bare(self, moment: Moment) -> Iterator[AttemptSeen]:
        """Give begun attempts whose pod is gone; one that nothing was heard of was never started."""
        if moment.progress is None:
            return
        for opaque_id in moment.progress.voided:
            key = self._index.find(opaque_id)
            if key is not None and key not in self._pods:
                # Its number is used and its failure counts, whether or not anything but its record is left of it.
                exit_ = ProcessExit(ExitCause.LOST, None, "its gateway ended, and its pod was deleted")
                yield AttemptSeen(key=key, state=AttemptState.LOST, created=moment.now, exit=exit_)
        for opaque_id, progress in moment.progress.open.items():
            key = self._index.find(opaque_id)
            if key is None or key in self._pods or progress.requests == 0:
                continue
            yield AttemptSeen(
                key=key,
                state=AttemptState.EXITED,
                created=moment.now,
                waited_us=progress.waited_us,
                exit=ProcessExit(ExitCause.LOST, None, "its pod was deleted"),
            )
        for opaque_id in moment.progress.settling:
            key = self._index.find(opaque_id)
            if key is not None and key not in self._pods and key not in self._gateway.ended:
                exit_ = ProcessExit(ExitCause.LOST, None, "its pod was deleted")
                yield AttemptSeen(key=key, state=AttemptState.ENDING, created=moment.now, exit=exit_)


def see_attempt(key: AttemptKey, pod: PodSeen, moment: Moment) -> AttemptSeen:
    """Say how far an attempt with a pod is that the gateway does not list as ended."""
    exit_ = read_exit(pod, moment.now, pending_deadline=moment.pending_deadline)
    progress = moment.progress
    known = OpenProgress() if progress is None else progress.open.get(pod.attempt, OpenProgress())
    if progress is not None and pod.attempt in progress.settling:
        state = AttemptState.ENDING
    elif progress is not None and pod.attempt not in progress.open:
        state = AttemptState.LOST
    elif exit_ is not None:
        state = AttemptState.EXITED
    else:
        state = AttemptState.STARTING if pod.running is None else AttemptState.RUNNING
    return AttemptSeen(
        key=key,
        state=state,
        created=pod.created,
        running=pod.running,
        waited_us=known.waited_us,
        exit=exit_,
        stopping=pod.stop_cause is not None or pod.deleting is not None,
    )
