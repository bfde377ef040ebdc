"""One look at a run's objects: what lists and maps of them say, before anything is concluded from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from proctor.adapters.kube.client import KubeClient, Object
from proctor.adapters.kube.kinds import CONFIG_MAP, DEPLOYMENT, JOB, NETWORK_POLICY, POD, SERVICE, Kind
from proctor.bootstrap.children_file import ChildrenFile, parse_children
from proctor.cluster.jobs import JobSeen, read_job
from proctor.cluster.pods import PodSeen, read_pod
from proctor.errors import ProctorError
from proctor.manifests.documents import CHILDREN_KEY, FINISH_KEY, SUMMARY_KEY
from proctor.manifests.names import RUN_LABEL, Role
from proctor.manifests.scope import RunScope
from proctor.reconcile.grader_summary import merge_summaries, parse_summary
from proctor.reconcile.observed import GraderSeen, ProbeSeen

PROBES_KEY = "probes.json"
"""Beside where everything is: what the servers answered, so that an operator that starts anew needn't ask again."""

_SLOW_SECONDS = 10.0
"""What only the operator changes is looked at again so often, in case somebody else did."""
_SUMMARY_SECONDS = 2.0
_JOB_SECONDS = 1.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is there of one run.

    Attributes:
        pods: all of them.
        jobs: by name.
        deployments: their names.
        addresses: of Services, by name.
        policies: every NetworkPolicy of the namespace, whoever made it.
        children: what is known of where everything is; None before it is written.
        probes: what the servers answered; None before they were asked.
        has_grades: the grader's ConfigMap is there.
        finishing: the grader was told that no more attempts come.
        summary: what the grader wrote.
    """

    pods: tuple[PodSeen, ...] = ()
    jobs: Mapping[str, JobSeen] = field(default_factory=dict)
    deployments: frozenset[str] = frozenset()
    addresses: Mapping[str, str] = field(default_factory=dict)
    policies: tuple[Object, ...] = ()
    children: ChildrenFile | None = None
    probes: tuple[ProbeSeen, ...] | None = None
    has_grades: bool = False
    finishing: bool = False
    summary: GraderSeen = field(default_factory=GraderSeen)

    def pods_of(self, role: Role) -> list[PodSeen]:
        """Return the pods of a role, oldest first."""
        return sorted((pod for pod in self.pods if pod.role == role), key=lambda pod: pod.created)


@dataclass(slots=True)
class _Kept(Generic[_T]):
    """A value that is fetched anew once it is too old, or known to be out of date."""

    fetch: Callable[[], Coroutine[Any, Any, _T]]
    seconds: float
    _value: _T | None = None
    _until: datetime | None = None

    async def get(self, now: datetime) -> _T:
        if self._value is None or self._until is None or now >= self._until:
            self._value = await self.fetch()
            self._until = now + timedelta(seconds=self.seconds)
        return self._value

    def forget(self) -> None:
        self._until = None


class Eyes:
    """Looks at one run's objects, and at each kind no more often than it can change.

    Args:
        kube: the API server.
        scope: the run.
    """

    def __init__(self, kube: KubeClient, scope: RunScope) -> None:
        self._kube = kube
        self._scope = scope
        self._labels = {RUN_LABEL: scope.names.prefix}
        self._summary_text = ""
        self._summary = GraderSeen()
        self._jobs = _Kept(self._list_jobs, _JOB_SECONDS)
        self._deployments = _Kept(self._list_deployments, _SLOW_SECONDS)
        self._addresses = _Kept(self._list_addresses, _SLOW_SECONDS)
        self._policies = _Kept(self._list_policies, _SLOW_SECONDS)
        self._children = _Kept(self._read_children, _SLOW_SECONDS)
        self._grades = _Kept(self._read_grades, _SUMMARY_SECONDS)

    def blink(self) -> None:
        """Look at everything anew next time: something was changed."""
        for kept in (self._jobs, self._deployments, self._addresses, self._policies, self._children, self._grades):
            kept.forget()

    async def look(self, now: datetime) -> Seen:
        """Return what is there.

        Args:
            now: the instant of the look.

        Raises:
            Retryable: the API server can't say now.
            Terminal: it never will, or the grader's summary can't be read.
            InvalidInput: somebody changed what the operator wrote.
        """
        try:
            async with asyncio.TaskGroup() as group:
                pods = group.create_task(self._list_pods())
                jobs = group.create_task(self._jobs.get(now))
                deployments = group.create_task(self._deployments.get(now))
                addresses = group.create_task(self._addresses.get(now))
                policies = group.create_task(self._policies.get(now))
                children = group.create_task(self._children.get(now))
                grades = group.create_task(self._grades.get(now))
        except* ProctorError as failed:
            raise failed.exceptions[0] from failed
        places, probes = children.result()
        has_grades, finishing, summary = grades.result()
        return Seen(
            pods=pods.result(),
            jobs=jobs.result(),
            deployments=deployments.result(),
            addresses=addresses.result(),
            policies=policies.result(),
            children=places,
            probes=probes,
            has_grades=has_grades,
            finishing=finishing,
            summary=summary,
        )

    async def _list_pods(self) -> tuple[PodSeen, ...]:
        return tuple(read_pod(pod) for pod in await self._list(POD))

    async def _list_jobs(self) -> dict[str, JobSeen]:
        jobs = [read_job(job) for job in await self._list(JOB)]
        return {job.name: job for job in jobs}

    async def _list_deployments(self) -> frozenset[str]:
        return frozenset(item["metadata"]["name"] for item in await self._list(DEPLOYMENT))

    async def _list_addresses(self) -> dict[str, str]:
        return {item["metadata"]["name"]: item["spec"]["clusterIP"] for item in await self._list(SERVICE)}

    async def _list_policies(self) -> tuple[Object, ...]:
        return tuple(await self._kube.list(NETWORK_POLICY, self._scope.namespace))

    async def _list(self, kind: Kind) -> list[Object]:
        return await self._kube.list(kind, self._scope.namespace, labels=self._labels)

    async def _read_children(self) -> tuple[ChildrenFile | None, tuple[ProbeSeen, ...] | None]:
        body = await self._kube.get(CONFIG_MAP, self._scope.namespace, self._scope.names.children)
        if body is None:
            return None, None
        content = body.get("data") or {}
        probes = content.get(PROBES_KEY)
        return parse_children(content[CHILDREN_KEY]), None if probes is None else parse_probes(probes)

    async def _read_grades(self) -> tuple[bool, bool, GraderSeen]:
        body = await self._kube.get(CONFIG_MAP, self._scope.namespace, self._scope.names.grades)
        if body is None:
            return False, False, self._summary
        content = body.get("data") or {}
        text = content.get(SUMMARY_KEY, "")
        if text and text != self._summary_text:
            seen = parse_summary(text.encode())
            self._summary = merge_summaries(self._summary, seen) if self._summary_text else seen
            self._summary_text = text
        return True, bool(content.get(FINISH_KEY)), self._summary


def render_probes(probes: tuple[ProbeSeen, ...]) -> str:
    """Return what the servers answered, as it is kept."""
    return json.dumps(
        [[probe.server, probe.scenario, probe.tools_digest, probe.reason, probe.message[:1000]] for probe in probes]
    )


def parse_probes(text: str) -> tuple[ProbeSeen, ...]:
    """Read what `render_probes` wrote."""
    return tuple(
        ProbeSeen(server=server, scenario=scenario, tools_digest=digest, reason=reason, message=message)
        for server, scenario, digest, reason, message in json.loads(text)
    )
