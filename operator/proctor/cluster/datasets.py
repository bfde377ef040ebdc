"""The datasets of a run: seeding Jobs, and the servers under test that query them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from pydantic import ValidationError

from proctor.adapters.kube.kinds import JOB
from proctor.api.server import Server
from proctor.bootstrap.children_file import DatasetPlace, ToolboxPlace
from proctor.bootstrap.operator_settings import ClickHouseKind
from proctor.cluster.ground import Ground
from proctor.cluster.isolation import find_closed_to_all
from proctor.cluster.looking import Seen
from proctor.cluster.pods import PodSeen
from proctor.errors import Retryable
from proctor.manifests.jobs import build_seed
from proctor.manifests.names import Role
from proctor.manifests.toolbox import (
    TOOLBOX_PORT,
    DatasetAt,
    Part,
    build_provision,
    build_toolbox,
    is_started,
    toolbox_port,
)
from proctor.reconcile.observed import DatasetSeen, FaultSeen, Readiness


class Datasets:
    """Seeds and serves a run's datasets.

    Args:
        ground: creates objects of the run.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._suite = ground.scope.suite
        self._indices = {scenario.name: index for index, scenario in enumerate(self._suite.scenarios)}

    def observe(self, seen: Seen) -> Mapping[str, DatasetSeen]:
        """Return what each is like; one that nothing was asked for is left out."""
        found = {name: self._see(seen, name, index) for name, index in self._indices.items()}
        return {name: dataset for name, dataset in found.items() if dataset.prepared is not Readiness.ABSENT}

    async def note(self, seen: Seen) -> None:
        """Write down where datasets are that were seeded since the last look.

        Raises:
            Retryable: not now.
        """
        for name, index in self._indices.items():
            job = seen.jobs.get(self._ground.names.seed(index))
            if job is None or not job.complete or self._place(seen, name) is not None:
                continue
            place = _parse_place([pod.message for pod in self._pods(seen, index) if pod.succeeded])
            if place is None:
                # Its last words are gone with its pod; seeding again finds the dataset as it is.
                await self._ground.installation.kube.delete(JOB, self._ground.scope.namespace, job.name)
                self._ground.eyes.blink()
            else:
                await self._ground.note_dataset(seen, name, place)

    def find_faults(self, seen: Seen, now: datetime, patience: timedelta) -> list[FaultSeen]:
        """Return servers under test that don't start: what is judged can't run."""
        faults = []
        for pod in seen.pods_of(Role.TOOLBOX):
            if not pod.ready and pod.deleting is None and now - pod.created > patience:
                server = self._suite.servers[int(pod.part.partition("-")[0])].name
                why = pod.message or pod.waiting or "it is not ready"
                faults.append(FaultSeen("ServerNotReady", f"server {server!r} does not start: {why}"))
        return [*faults, *self._find_hook_faults(seen, now, patience)]

    async def prepare(self, name: str) -> None:
        """Create the Job that seeds one.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses it.
        """
        settings, index = self._ground.installation.settings.clickhouse, self._indices[name]
        address = await self._ground.installation.find(settings.host)
        arguments = [
            *("--clickhouse-kind", settings.kind.value),
            *("--host", address.host),
            *("--port", str(settings.port)),
            *("--user-name", f"{self._ground.names.prefix.replace('-', '_')}_{index}"),
        ]
        if settings.kind is ClickHouseKind.EMBEDDED:
            arguments += ["--control-port", str(settings.control_port)]
        workers = settings.seed_workers if settings.kind is ClickHouseKind.SERVER else 1
        await self._ground.create(build_seed(self._ground.scope, index, tuple(arguments), workers=workers))

    async def serve(self, seen: Seen, name: str) -> None:
        """Create the servers under test that query one.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses one.
        """
        place = self._place(seen, name)
        if place is None:
            raise Retryable(f"dataset of {name} is not seeded yet")
        closed = find_closed_to_all(self._ground.installation, seen)
        at = DatasetAt(host=place.host, port=place.port, user=place.user, database=place.database, closed=closed)
        toolboxes, hooks = [], []
        for number, server in enumerate(self._suite.servers):
            part, host = Part(server=number, scenario=self._indices[name]), ""
            if is_started(server):
                deployment, service = build_toolbox(self._ground.scope, part, at)
                host = (await self._ground.create(service))["spec"]["clusterIP"]
                await self._ground.create(deployment)
                toolboxes.append(ToolboxPlace(server=server.name, scenario=name, host=host, port=toolbox_port(server)))
            if server.provision is not None:
                job, service = build_provision(self._ground.scope, part, at, _address(server, host))
                hook = (await self._ground.create(service))["spec"]["clusterIP"]
                await self._ground.create(job)
                hooks.append(ToolboxPlace(server=server.name, scenario=name, host=hook, port=TOOLBOX_PORT))
        await self._ground.note_servers(seen, toolboxes, hooks)

    def _see(self, seen: Seen, name: str, index: int) -> DatasetSeen:
        place = self._place(seen, name)
        if place is not None:
            return DatasetSeen(prepared=Readiness.READY, served=self._see_served(seen, index), digest=place.digest)
        job = seen.jobs.get(self._ground.names.seed(index))
        if job is None:
            return DatasetSeen()
        if job.failed:
            words = [_last_words(pod) for pod in self._pods(seen, index) if pod.ended]
            return DatasetSeen(prepared=Readiness.FAILED, message=(words[-1] if words else "") or job.message)
        return DatasetSeen(prepared=Readiness.STARTING)

    def _see_served(self, seen: Seen, index: int) -> Readiness:
        parts = [
            Part(server=number, scenario=index)
            for number, server in enumerate(self._suite.servers)
            if is_started(server)
        ]
        names = [self._ground.names.toolbox(part.server, part.scenario) for part in parts]
        known = {(place.server, place.scenario) for place in (seen.children.toolboxes if seen.children else ())}
        scenario = self._suite.scenarios[index].name
        written = all((self._suite.servers[part.server].name, scenario) in known for part in parts)
        if not written or any(name not in seen.deployments for name in names):
            return Readiness.ABSENT
        ready = {pod.part for pod in seen.pods_of(Role.TOOLBOX) if pod.ready and pod.deleting is None}
        up = all(f"{part.server}-{part.scenario}" in ready for part in parts)
        hooks = self._see_hooks(seen, index)
        if hooks is not Readiness.READY:
            return hooks
        return Readiness.READY if up else Readiness.STARTING

    def _see_hooks(self, seen: Seen, index: int) -> Readiness:
        numbers = [number for number, server in enumerate(self._suite.servers) if server.provision is not None]
        known = {(place.server, place.scenario) for place in (seen.children.hooks if seen.children else ())}
        scenario = self._suite.scenarios[index].name
        jobs = [seen.jobs.get(self._ground.names.provision(number, index)) for number in numbers]
        if any((self._suite.servers[number].name, scenario) not in known for number in numbers) or None in jobs:
            return Readiness.ABSENT
        ready = {pod.part for pod in seen.pods_of(Role.PROVISION) if pod.ready and pod.deleting is None}
        return Readiness.READY if all(f"{number}-{index}" in ready for number in numbers) else Readiness.STARTING

    def _find_hook_faults(self, seen: Seen, now: datetime, patience: timedelta) -> list[FaultSeen]:
        faults = []
        for number, server in enumerate(self._suite.servers):
            for index in range(len(self._suite.scenarios)):
                job = seen.jobs.get(self._ground.names.provision(number, index))
                pods = [pod for pod in seen.pods_of(Role.PROVISION) if pod.part == f"{number}-{index}"]
                # One that ended is the Job's to try again.
                awaited = [pod for pod in pods if not pod.ready and not pod.ended and pod.deleting is None]
                late = any(now - pod.created > patience for pod in awaited)
                if job is not None and (job.failed or late):
                    words = [pod.message or pod.waiting for pod in pods]
                    why = next((text for text in reversed(words) if text), "") or job.message or "it is not ready"
                    faults.append(FaultSeen("ProvisionFailed", f"provision of server {server.name!r} failed: {why}"))
        return faults

    def _place(self, seen: Seen, name: str) -> DatasetPlace | None:
        return None if seen.children is None else seen.children.datasets.get(name)

    def _pods(self, seen: Seen, index: int) -> list[PodSeen]:
        job = self._ground.names.seed(index)
        return [pod for pod in seen.pods_of(Role.SEED) if pod.name.startswith(f"{job}-")]


def _address(server: Server, host: str) -> str:
    """Return scheme, host and port at which a hook reaches its server."""
    if host:
        return f"http://{host}:{toolbox_port(server)}"
    assert server.http is not None and server.http.url is not None  # noqa: S101, PT018 - it is not started, so it is elsewhere
    url = urlsplit(server.http.url)
    return f"{url.scheme}://{url.netloc}"


def _parse_place(words: list[str]) -> DatasetPlace | None:
    for text in words:
        try:
            return DatasetPlace.model_validate_json(text)
        except ValidationError:
            continue
    return None


def _last_words(pod: PodSeen) -> str:
    try:
        return str(json.loads(pod.message)["error"])
    except (ValueError, KeyError, TypeError):
        return pod.message
