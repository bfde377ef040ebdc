"""The grader of a run: its Job, and the ConfigMap through which it talks with the operator."""

from __future__ import annotations

from dataclasses import replace

from proctor.adapters.kube.kinds import CONFIG_MAP, JOB
from proctor.cluster.ground import Ground
from proctor.cluster.looking import Seen
from proctor.errors import Retryable
from proctor.manifests.documents import FINISH_KEY
from proctor.manifests.jobs import build_grade
from proctor.manifests.names import Role
from proctor.reconcile.observed import GraderSeen, GraderState
from proctor.reconcile.preparing import MAX_STARTS

_UNREAD = frozenset({"ServiceAccount", "Role", "RoleBinding"})
"""What the operator may create and not read."""


class Grader:
    """Keeps a run's grader.

    Args:
        ground: creates objects of the run.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def observe(self, seen: Seen) -> GraderSeen:
        """Return what the grader is like, and what its summary says."""
        job = seen.jobs.get(self._ground.names.grade)
        if job is None:
            return replace(seen.summary, state=GraderState.ABSENT, finishing=seen.finishing)
        state = GraderState.RUNNING
        if job.complete and seen.finishing:
            state = GraderState.FINISHED
        elif job.complete or job.failed:
            state = GraderState.FAILED
        ended = [pod for pod in seen.pods_of(Role.GRADE) if pod.ended and not pod.succeeded]
        said = ended[-1].message.rstrip() if ended else ""
        # Where a log stands in for last words, its end says why.
        message = said.rpartition("\n")[2] or job.message
        # The Job has tried again by itself; what it gave up, no further start mends.
        starts = MAX_STARTS if job.failed else job.starts
        return replace(seen.summary, state=state, starts=starts, finishing=seen.finishing, message=message)

    async def start(self, seen: Seen) -> None:
        """Create the grader.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses it.
        """
        job = seen.jobs.get(self._ground.names.grade)
        kube = self._ground.installation.kube
        if job is not None and job.complete:
            # It ended before it was told to; a new one goes on where it was.
            await kube.delete(JOB, self._ground.scope.namespace, job.name)
            self._ground.eyes.blink()
            return
        for body in build_grade(self._ground.scope):
            if body["kind"] in _UNREAD:
                await kube.create_unread(body)
            else:
                await self._ground.create(body)

    async def finish(self) -> None:
        """Tell the grader that no more attempts end.

        Raises:
            Retryable: not now.
        """
        namespace, name = self._ground.scope.namespace, self._ground.names.grades
        patch = {"data": {FINISH_KEY: "true"}}
        self._ground.eyes.blink()
        if await self._ground.installation.kube.merge(CONFIG_MAP, namespace, name, patch) is None:
            raise Retryable(f"ConfigMap {namespace}/{name} is gone")
