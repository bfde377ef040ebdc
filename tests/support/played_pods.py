"""A kubelet, its controllers, and the programs in a run's pods, played in a few lines: each turn moves them on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

from proctor.adapters.control import Door, GatewayProgress, OpenProgress
from proctor.adapters.kube.kinds import CONFIG_MAP, DEPLOYMENT, JOB, POD
from proctor.core.ids import AttemptKey, CellKey
from proctor.core.trajectory.outcome import AttemptRecord, ExitCause, Outcome, ProcessExit
from proctor.errors import InvalidInput, Retryable
from proctor.manifests.names import ATTEMPT_LABEL, ROLE_LABEL, RUN_LABEL, Role, RunNames
from proctor.reconcile.observed import ProbeSeen
from support.memory_api import Doom, Json, MemoryApi
from support.runs import RUBRIC, TOOLS, make_record

PLACE = {
    "hash": "0123456789abcdef", "digest": "ab" * 32, "database": "ds_x", "host": "10.9.9.9", "port": 8200,
    "user": "pr_x",
}  # fmt: skip


@dataclass
class PlayedGateway:
    """The control doors of a gateway, and what stands behind them.

    Attributes:
        open_attempts: opaque id → the attempt, and how many requests it made.
        settling: ended, not acknowledged.
        voided: open when an earlier life ended.
        ended: acknowledged, in order.
        opened: how often each attempt was opened; more than once only before its first request.
        silent: nobody answers.
        lives: of its process.
        doom: kills who asks, after an effect.
    """

    run: str
    servers: tuple[str, ...]
    scenarios: tuple[str, ...]
    open_attempts: dict[str, tuple[AttemptKey, int]] = field(default_factory=dict)
    settling: list[AttemptRecord] = field(default_factory=list)
    voided: set[str] = field(default_factory=set)
    ended: list[AttemptRecord] = field(default_factory=list)
    silent: bool = False
    lives: int = 1
    doom: Doom = field(default_factory=Doom)

    async def close(self) -> None:
        """Nothing is held."""

    async def probe(self, *, patience: float) -> tuple[ProbeSeen, ...]:  # noqa: ARG002 - as the real one
        self._answer()
        return tuple(
            ProbeSeen(server=server, scenario=scenario, tools_digest=TOOLS)
            for server in self.servers
            for scenario in self.scenarios
        )

    async def open(self, key: AttemptKey, *, deadline_seconds: int) -> Door:  # noqa: ARG002 - as the real one
        self._answer()
        known = self.open_attempts.get(key.opaque_id)
        if key.opaque_id in self.voided or (known is not None and known[1] > 0):
            raise InvalidInput(f"{key} was opened before")
        assert key not in {record.key for record in (*self.settling, *self.ended)}, f"{key} is counted twice"
        self.open_attempts[key.opaque_id] = (key, 0)
        self.doom.strike()
        return Door(None, f"token-{key.opaque_id}")  # type: ignore[arg-type] # there is no socket over the network

    async def end(self, key: AttemptKey, exit_: ProcessExit) -> None:
        self._answer()
        known = self.open_attempts.pop(key.opaque_id, None)
        if known is None:
            raise InvalidInput(f"{key} is not open")
        outcome = _judge(exit_, known[1])
        self.settling.append(make_record(key.cell, key.attempt, outcome, key=key, reason=exit_.message))
        self.doom.strike()

    async def list_ended(self, after: int, *, wait: int) -> list[AttemptRecord]:  # noqa: ARG002 - as the real one
        self._answer()
        return self.ended[after:]

    async def read_state(self) -> GatewayProgress:
        self._answer()
        return GatewayProgress(
            {name: OpenProgress(requests=requests) for name, (_, requests) in self.open_attempts.items()},
            frozenset(record.key.opaque_id for record in self.settling),
            voided=frozenset(self.voided),
        )

    def settle(self) -> None:
        self.ended += self.settling
        self.settling = []

    def die(self) -> None:
        """Start anew: open attempts are void, what was ended is in the spool."""
        self.voided |= self.open_attempts.keys()
        self.open_attempts = {}
        self.lives += 1

    def _answer(self) -> None:
        if self.silent:
            raise Retryable("the gateway does not answer")


def _judge(exit_: ProcessExit, requests: int) -> Outcome:
    if exit_.cause in {ExitCause.LOST, ExitCause.START_FAILED, ExitCause.CANCELLED} or requests == 0:
        return Outcome.INFRA_ERROR
    return Outcome.TIME_LIMIT if exit_.cause is ExitCause.DEADLINE else Outcome.COMPLETED


@dataclass
class PlayedPods:
    """Moves every pod of one run on.

    Attributes:
        canary_opens: what the canary reaches that it must not.
        turns: how many turns an agent works.
        hold: sandboxes whose opaque id it says yes to stay as they are.
        stuck: no sandbox finds a node.
        hook_fails: last words of every hook; empty: hooks are well.
    """

    api: MemoryApi
    gateway: PlayedGateway
    canary_opens: tuple[str, ...] = ()
    turns: int = 1
    hold: Callable[[str], bool] = lambda _opaque_id: False
    stuck: bool = False
    hook_fails: str = ""

    def turn(self) -> None:
        """Move everything on by one."""
        self.gateway.settle()
        self._grade()
        for pod in self.api.every(POD):
            self._move(pod)
        for job in self.api.every(JOB):
            self._run_job(job)
        for deployment in self.api.every(DEPLOYMENT):
            self._run_deployment(deployment)

    def _move(self, pod: Json) -> None:
        labels = pod["metadata"]["labels"]
        role, status = labels.get(ROLE_LABEL), pod.setdefault("status", {})
        if status.get("phase") in {"Succeeded", "Failed"}:
            return
        if role == Role.SANDBOX and pod["metadata"]["name"].endswith("-canary"):
            self._end(pod, 1 if self.canary_opens else 0, json.dumps(self._canary_words(pod)))
        elif role == Role.SANDBOX:
            self._move_sandbox(pod, labels[ATTEMPT_LABEL])

    def _move_sandbox(self, pod: Json, opaque_id: str) -> None:
        status = pod["status"]
        if pod["spec"].get("activeDeadlineSeconds") == 1:
            self._end(pod, 143, "stopped", reason="DeadlineExceeded")
        elif not status.get("phase") and self.stuck:
            return
        elif not status.get("phase"):
            pod["spec"]["nodeName"] = "node1"
            status |= {"phase": "Running", "containerStatuses": [_running(self._at())]}
        elif not self.hold(opaque_id):
            known = self.gateway.open_attempts.get(opaque_id)
            if known is not None:
                self.gateway.open_attempts[opaque_id] = (known[0], known[1] + 1)
            if known is None or known[1] + 1 > self.turns:
                self._end(pod, 0, "")

    def _run_job(self, job: Json) -> None:
        role = job["metadata"]["labels"][ROLE_LABEL]
        status = job.setdefault("status", {})
        if status.get("conditions"):
            return
        if role == Role.SEED:
            pod = self._child(job, f"{job['metadata']['name']}-x")
            self._end(pod, 0, json.dumps(PLACE))
            self._complete(job)
        elif role == Role.PROVISION and self.hook_fails:
            self._end(self._child(job, f"{job['metadata']['name']}-x"), 1, self.hook_fails)
            job["status"] = {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}
        elif role == Role.PROVISION:
            self._run_deployment(job)
        elif role == Role.GRADE:
            grades = self.api.one(CONFIG_MAP, self._names(job).grades)["data"]
            self._child(job, f"{job['metadata']['name']}-x")
            summary = json.loads(grades.get("summary", "null"))
            if grades.get("finish") and summary and len(summary["grades"]) == self._gradable():
                self._complete(job)

    def _run_deployment(self, deployment: Json) -> None:
        pod = self._child(deployment, f"{deployment['metadata']['name']}-x")
        pod["spec"]["nodeName"] = "node1"
        pod["status"] = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [_running(self._at()) | {"restartCount": self._restarts(deployment)}],
        }

    def _restarts(self, deployment: Json) -> int:
        is_gateway = deployment["metadata"]["labels"][ROLE_LABEL] == Role.GATEWAY
        return self.gateway.lives - 1 if is_gateway else 0

    def _grade(self) -> None:
        for config in self.api.every(CONFIG_MAP):
            if not config["metadata"]["name"].endswith("-grades"):
                continue
            names = RunNames(config["metadata"]["labels"][RUN_LABEL])
            if ("jobs", config["metadata"]["namespace"], names.grade) in self.api.objects:
                config.setdefault("data", {})["summary"] = json.dumps(self._summary())

    def _summary(self) -> Json:
        grades: Json = {}
        for record in self._valid():
            grades.setdefault(str(record.key.cell), {"attempt": record.key.attempt, "score": _score(record.key.cell)})
        return {"grades": grades, "rubricDigest": RUBRIC, "judgeDigest": "", "fault": ""}

    def _valid(self) -> list[AttemptRecord]:
        return [record for record in self.gateway.ended if record.outcome is not Outcome.INFRA_ERROR]

    def _gradable(self) -> int:
        return len({record.key.cell for record in self._valid()})

    def _child(self, owner: Json, name: str) -> Json:
        metadata = owner["metadata"]
        found = self.api.objects.get(("pods", metadata["namespace"], name))
        if found is not None:
            return found
        reference = {"uid": metadata["uid"], "kind": owner["kind"], "name": metadata["name"], "controller": True}
        return self.api.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": dict(metadata["labels"]),
                    "ownerReferences": [reference],
                },
                "spec": {},
            }
        )

    def _end(self, pod: Json, code: int, message: str, *, reason: str = "") -> None:
        ended = {"exitCode": code, "message": message, "startedAt": self._at(), "finishedAt": self._at()}
        pod["status"] = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "reason": reason,
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": ended}}],
        }

    def _complete(self, job: Json) -> None:
        job["status"] = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}

    def _canary_words(self, pod: Json) -> Json:
        words = pod["spec"]["containers"][0]["command"]
        closed = [target for option, target in pairwise(words) if option == "--closed"]
        opened = [target for option, target in pairwise(words) if option == "--open"]
        forbidden = {target: "open" if target in self.canary_opens else "closed" for target in closed}
        forbidden |= dict.fromkeys(self.canary_opens, "open")
        return {"forbidden": forbidden, "allowed": dict.fromkeys(opened, "open"), "pidsMax": 512}

    def _names(self, body: Json) -> RunNames:
        return RunNames(body["metadata"]["labels"][RUN_LABEL])

    def _at(self) -> str:
        return (self.api.now + timedelta(0)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _running(at: str) -> Json:
    return {"name": "main", "restartCount": 0, "ready": True, "state": {"running": {"startedAt": at}}}


def _score(cell: CellKey) -> str:
    if cell.control is None:
        return "0.8"
    return "1" if cell.control == "oracle" else "0"
