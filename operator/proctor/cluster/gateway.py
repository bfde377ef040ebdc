"""The gateway of a run: its Deployment and Service, and the control doors behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from proctor.adapters.control import Door, GatewayControl, GatewayProgress
from proctor.cluster.ground import Ground
from proctor.cluster.looking import Seen
from proctor.cluster.pods import PodSeen
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import AttemptRecord, ProcessExit
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.manifests.gateway import GATEWAY_PORT, build_gateway
from proctor.manifests.names import Role
from proctor.reconcile.observed import GatewaySeen, ProbeSeen, Readiness

_PROBE_SECONDS = 600.0
_REFUSED_CONFIGURATION = 64
_MOST_RESTARTS = 4
_PATIENCE = timedelta(seconds=30)


@dataclass(slots=True)
class _Life:
    """One life of the gateway's container; what it lists as ended is numbered from its own start."""

    name: str
    control: GatewayControl
    listed: int = 0


@dataclass(slots=True)
class Gateway:
    """Keeps a run's gateway, and speaks to it.

    Args:
        ground: creates objects of the run.
        token: the operator's token.
        notify: called when a probe is done.

    Attributes:
        ended: every attempt that any life of the gateway listed as ended.
        progress: of the open attempts, as last read.
        probing: a probe is going on.
    """

    ground: Ground
    token: str = field(repr=False)
    notify: Callable[[], None]
    ended: dict[AttemptKey, AttemptRecord] = field(default_factory=dict)
    progress: GatewayProgress = field(default_factory=GatewayProgress)
    probing: bool = False
    _life: _Life | None = None
    _task: asyncio.Task[None] | None = None
    _message: str = ""
    _silent_since: datetime | None = None

    async def observe(self, seen: Seen, now: datetime, *, pending_deadline: timedelta) -> GatewaySeen:
        """Return what the gateway is like; READY once it has told all that it knows.

        Raises:
            Retryable: it is silent, and has not been for long.
        """
        pod = next((pod for pod in reversed(seen.pods_of(Role.GATEWAY)) if pod.deleting is None), None)
        restarts = 0 if pod is None else pod.restarts
        state, message = Readiness.STARTING, ""
        if self.ground.names.gateway not in seen.deployments:
            state = Readiness.ABSENT
        elif pod is not None and (pod.ready or self._knows(pod)):
            state, message = await self._listen(pod, seen, now)
        elif pod is not None:
            state, message = _judge_start(pod, now, pending_deadline)
        return GatewaySeen(state=state, starts=1 + restarts, message=message or self._message)

    async def start(self, seen: Seen) -> None:
        """Create Service and Deployment; the Service first, since the gateway has to know its own address.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses it.
        """
        deployment, service = build_gateway(self.ground.scope)
        created = await self.ground.create(service)
        host = created["spec"]["clusterIP"]
        await self.ground.note_gateway(seen, (f"{host}:{GATEWAY_PORT}", host))
        await self.ground.create(deployment)

    def address(self, seen: Seen) -> str:
        """Return where sandboxes find it, as `IP:port`.

        Raises:
            Retryable: it has no address yet.
        """
        host = seen.addresses.get(self.ground.names.gateway)
        if host is None:
            raise Retryable(f"run {self.ground.scope.name}: the gateway has no address yet")
        return f"{host}:{GATEWAY_PORT}"

    def probe(self) -> None:
        """Begin to probe the servers, unless that is going on."""
        if not self.probing and self._life is not None:
            self.probing = True
            self._task = asyncio.create_task(self._probe(self._life.control))

    async def open(self, key: AttemptKey, *, deadline_seconds: int) -> Door:
        """Open an attempt.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it refuses.
        """
        return await self._control().open(key, deadline_seconds=deadline_seconds)

    async def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        """Tell how an attempt's process ended.

        Raises:
            Retryable: the gateway can't be reached.
            InvalidInput: it knows no such open attempt.
        """
        await self._control().end(key, exit_)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._end_life()

    async def _listen(self, pod: PodSeen, seen: Seen, now: datetime) -> tuple[Readiness, str]:
        try:
            if self._life is None or self._life.name != pod.life:
                await self._end_life()
                control = self.ground.installation.dial(f"http://{self.address(seen)}", self.token)
                self._life = _Life(pod.life, control)
            life = self._life
            # In this order: an attempt goes from open to settling to ended, so that none is missed in between.
            began = time.monotonic()
            self.progress = await life.control.read_state()
            self.ground.installation.gateway_heard(time.monotonic() - began)
            records = await life.control.list_ended(life.listed, wait=0)
        except ProctorError as error:
            self._hold(now, error)
            return Readiness.STARTING, str(error)
        self._silent_since = None
        life.listed += len(records)
        for record in records:
            self.ended.setdefault(record.key, record)
        return Readiness.READY, self.progress.problem

    def _knows(self, pod: PodSeen) -> bool:
        return self._life is not None and self._life.name == pod.life and not pod.ended

    def _hold(self, now: datetime, error: ProctorError) -> None:
        """Say nothing for a while about a gateway that is silent: to call it gone would end every agent at work.

        Raises:
            Retryable: it was not silent for long.
        """
        self._silent_since = self._silent_since or now
        if now - self._silent_since < _PATIENCE:
            raise Retryable(f"run {self.ground.scope.name}: {error}") from error

    async def _probe(self, control: GatewayControl) -> None:
        try:
            await self._keep_probes(await control.probe(patience=_PROBE_SECONDS))
        except (Retryable, InvalidInput, Terminal) as error:
            self._message = str(error)
        finally:
            self.probing = False
            self.notify()

    async def _keep_probes(self, probes: tuple[ProbeSeen, ...]) -> None:
        await self.ground.note_probes(probes)

    async def _end_life(self) -> None:
        if self._life is not None:
            await self._life.control.close()
            self._life = None

    def _control(self) -> GatewayControl:
        if self._life is None:
            raise Retryable(f"speaking to the gateway of run {self.ground.scope.name}: it is not running")
        return self._life.control


def _judge_start(pod: PodSeen, now: datetime, pending_deadline: timedelta) -> tuple[Readiness, str]:
    message = pod.message or pod.waiting
    refused = pod.exit_code == _REFUSED_CONFIGURATION
    looping = pod.waiting == "CrashLoopBackOff" and pod.restarts >= _MOST_RESTARTS
    never_began = pod.running is None and pod.restarts == 0 and now - pod.created > pending_deadline
    if refused or looping or never_began:
        return Readiness.FAILED, message
    return Readiness.STARTING, message
