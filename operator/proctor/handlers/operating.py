"""The operator: which objects are driven, when all of them are looked at, and what is told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from pydantic import ValidationError

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import DEPLOYMENT, EVAL_RUN, EVAL_SUITE, Kind
from proctor.adapters.prometheus.metrics import Kind as Measured
from proctor.adapters.prometheus.metrics import OperatorMetrics
from proctor.api.run import EvalRunSpec, EvalRunStatus
from proctor.cluster.driver import RunDriver
from proctor.cluster.installation import Installation
from proctor.cluster.suite_driver import SuiteDriver
from proctor.errors import ProctorError
from proctor.handlers.loops import PASS_SECONDS, Driven, Key, Loops
from proctor.manifests.names import MANAGED_BY, ROLE_LABEL, RUN_LABEL, Role, RunNames
from proctor.reconcile.suites_retention import expires_at
from proctor.reconcile.suites_seen import is_tracked

logger = logging.getLogger(__name__)

RELIST_SECONDS = 10.0
"""Everything is looked at anew so often: an event may be lost, and a watch may fall silent."""


class Operator:
    """Drives every suite and run of an installation.

    Args:
        installation: what all of them share.
        metrics: what is told of them.
        pass_seconds: between two passes over one of them.
        relist_seconds: between two looks at all of them.
    """

    def __init__(
        self,
        installation: Installation,
        metrics: OperatorMetrics,
        *,
        pass_seconds: float = PASS_SECONDS,
        relist_seconds: float = RELIST_SECONDS,
    ) -> None:
        self._installation = installation
        self._metrics = metrics
        self._relist_seconds = relist_seconds
        self._runs = Loops(EVAL_RUN.name, self._begin_run, seconds=pass_seconds)
        self._suites = Loops(EVAL_SUITE.name, self._begin_suite, seconds=pass_seconds)
        self._suite_of: dict[Key, str] = {}
        self._known_suites: frozenset[Key] = frozenset()

    def see_run(self, body: Object, *, deleted: bool = False) -> None:
        """Take note that a run was made, changed or deleted."""
        key = _key(body)
        suite = ((body.get("spec") or {}).get("suiteRef") or {}).get("name", "")
        self._suites.wake((key[0], suite))
        if deleted:
            self._forget_run(key)
        elif needs_passes(body):
            self._runs.wake(key)

    def see_suite(self, body: Object) -> None:
        """Take note that a suite was made, changed or deleted."""
        self._suites.wake(_key(body))

    async def relist(self) -> None:
        """Look at everything, now and then every few seconds, until cancelled."""
        while True:
            try:
                await self.look()
            except ProctorError as error:
                logger.warning("looking at all runs failed", extra={"problem": str(error)})
            await asyncio.sleep(self._relist_seconds)

    async def look(self) -> None:
        """Look at everything once.

        Raises:
            Retryable: not now.
            Terminal: the operator lacks a right.
        """
        runs = await self._list(EVAL_RUN)
        leftovers = {
            (item["metadata"]["namespace"], item["metadata"]["labels"][RUN_LABEL])
            for item in await self._list(DEPLOYMENT, {**MANAGED_BY, ROLE_LABEL: Role.GATEWAY.value})
        }
        for body in runs:
            key = _key(body)
            self._tell(body)
            if needs_passes(body) or (key[0], RunNames.of(body["metadata"]["uid"]).prefix) in leftovers:
                self._runs.wake(key)
            elif self._is_expired(body):
                await self._installation.kube.delete(EVAL_RUN, *key, uid=body["metadata"]["uid"])
        for key in set(self._suite_of) - {_key(body) for body in runs}:
            self._forget_run(key)
        suites = frozenset(_key(body) for body in await self._list(EVAL_SUITE))
        for key in self._known_suites - suites:
            self._metrics.forget_suite(*key)
        self._known_suites = suites
        for key in suites:
            self._suites.wake(key)
        self._metrics.set_waiting(self._runs.waiting)
        self._metrics.mark_alive(self._installation.clock())

    async def close(self) -> None:
        """End every loop."""
        await self._runs.close()
        await self._suites.close()

    async def _list(self, kind: Kind, labels: dict[str, str] | None = None) -> list[Object]:
        namespaces: tuple[str | None, ...] = self._installation.settings.namespaces or (None,)
        listed = [await self._installation.kube.list(kind, namespace, labels=labels) for namespace in namespaces]
        return [body for bodies in listed for body in bodies]

    def _begin_run(self, key: Key, notify: Callable[[], None]) -> Driven:
        driver = RunDriver(self._installation, *key, notify)
        return Driven(partial(self._pass_run, key, driver), driver.close)

    async def _pass_run(self, key: Key, driver: RunDriver) -> bool:
        with self._metrics.reconciling(Measured.EVAL_RUN):
            report = await driver.make_pass()
        if report.status is not None:
            self._suite_of[key] = report.suite
            self._metrics.observe_status(key[0], report.suite, key[1], report.status)
        return not report.finished

    def _begin_suite(self, key: Key, _: Callable[[], None]) -> Driven:
        return Driven(partial(self._pass_suite, key, SuiteDriver(self._installation, *key)), _nothing)

    async def _pass_suite(self, key: Key, driver: SuiteDriver) -> bool:
        with self._metrics.reconciling(Measured.EVAL_SUITE):
            status = await driver.make_pass()
        if status is None:
            self._metrics.forget_suite(*key)
        else:
            self._metrics.observe_suite(*key, status)
        return False

    def _tell(self, body: Object) -> None:
        try:
            status = EvalRunStatus.model_validate(body.get("status") or {})
            suite = body["spec"]["suiteRef"]["name"]
        except (ValidationError, KeyError):
            return
        key = _key(body)
        self._suite_of[key] = suite
        self._metrics.observe_status(key[0], suite, key[1], status)

    def _forget_run(self, key: Key) -> None:
        suite = self._suite_of.pop(key, None)
        if suite is not None:
            self._metrics.forget_run(key[0], suite, key[1])

    def _is_expired(self, body: Object) -> bool:
        try:
            spec = EvalRunSpec.model_validate(body["spec"])
            status = EvalRunStatus.model_validate(body.get("status") or {})
        except ValidationError:
            return False
        if is_tracked(body["metadata"]):
            return False
        expiry = expires_at(spec, status)
        return expiry is not None and expiry <= self._installation.clock()


def needs_passes(body: Object) -> bool:
    """Tell whether a run has something left to be decided: it is not terminal, or its spec was changed since."""
    status, metadata = body.get("status") or {}, body["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    pending = status.get("verdict", "Pending") == "Pending"
    return bool(pending or status.get("observedGeneration") != metadata.get("generation"))


def _key(body: Object) -> Key:
    return body["metadata"]["namespace"], body["metadata"]["name"]


async def _nothing() -> None:
    """A suite's driver holds nothing."""
