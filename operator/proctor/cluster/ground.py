"""What every child of a run stands on: its keys, accounts and policies, and the page that says where everything is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import CONFIG_MAP
from proctor.bootstrap.children_file import ChildrenFile, DatasetPlace, StorePlace, ToolboxPlace
from proctor.bootstrap.operator_settings import ClickHouseKind
from proctor.cluster.installation import Installation
from proctor.cluster.keys import RunKeys
from proctor.cluster.looking import PROBES_KEY, Eyes, Seen, render_probes
from proctor.cluster.surroundings import survey
from proctor.errors import Retryable
from proctor.manifests.documents import CHILDREN_KEY, RunSecrets, build_children, build_grades, build_keys
from proctor.manifests.jobs import build_account
from proctor.manifests.names import RunNames
from proctor.manifests.policies import build_policies
from proctor.manifests.scope import RunScope
from proctor.reconcile.observed import ProbeSeen


class Ground:
    """Creates and keeps what a run's children share.

    Args:
        installation: what all runs share.
        scope: the run.
        eyes: told whenever something is changed.
        keys: of the run.
    """

    def __init__(self, installation: Installation, scope: RunScope, eyes: Eyes, keys: RunKeys) -> None:
        self.installation = installation
        self.scope = scope
        self.eyes = eyes
        self.keys = keys
        self._policies: tuple[Object, ...] | None = None
        self._children: ChildrenFile | None = None

    @property
    def names(self) -> RunNames:
        """Of the run's children."""
        return self.scope.names

    async def create(self, body: Object) -> Object:
        """Create a child; one that is there counts as created.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses it.
        """
        self.eyes.blink()
        return await self.installation.kube.create(body)

    async def lay(self, seen: Seen) -> None:
        """Create what is missing of what children stand on; policies are there before any pod.

        Raises:
            Retryable: not now.
            Terminal: never.
            InvalidInput: the cluster refuses it.
        """
        if seen.children is not None and seen.has_grades and await self.policies_missing(seen) == []:
            return
        for policy in await self.policies():
            await self.create(policy)
        await self.installation.kube.create_unread(build_account(self.scope))
        secrets = RunSecrets(
            run_key=bytes.fromhex(self.keys.run_key),
            operator_token=self.keys.operator_token,
            dataset_password=self.keys.dataset_password,
        )
        await self.installation.kube.create_unread(build_keys(self.scope, secrets))
        await self.create(build_grades(self.scope))
        if seen.children is None:
            await self.create(build_children(self.scope, _plain(await self._first_children())))

    async def policies(self) -> tuple[Object, ...]:
        """Return the policies that the run has to have.

        Raises:
            Retryable: what they name can't be found now.
        """
        if self._policies is None:
            self._policies = build_policies(self.scope, await survey(self.installation))
        return self._policies

    async def policies_missing(self, seen: Seen) -> list[str]:
        """Return the names of the run's policies that are not there, or are not as they were written.

        Raises:
            Retryable: what they name can't be found now.
        """
        there = {policy["metadata"]["name"]: policy["spec"] for policy in seen.policies}
        return [
            policy["metadata"]["name"]
            for policy in await self.policies()
            if not holds(there.get(policy["metadata"]["name"]), policy["spec"])
        ]

    async def note_dataset(self, seen: Seen, scenario: str, place: DatasetPlace) -> ChildrenFile:
        """Write down where a dataset is served.

        Raises:
            Retryable: not now.
        """
        known = self._known(seen)
        return await self._write(known.model_copy(update={"datasets": {**known.datasets, scenario: place}}))

    async def note_servers(self, seen: Seen, toolboxes: list[ToolboxPlace], hooks: list[ToolboxPlace]) -> ChildrenFile:
        """Write down where servers under test listen, and the programs that prepare them.

        Raises:
            Retryable: not now.
        """
        known = self._known(seen)
        noted = {"toolboxes": _merge(known.toolboxes, toolboxes), "hooks": _merge(known.hooks, hooks)}
        return await self._write(known.model_copy(update=noted))

    async def note_gateway(self, seen: Seen, host_names: tuple[str, ...]) -> ChildrenFile:
        """Write down by which names the gateway is called.

        Raises:
            Retryable: not now.
        """
        return await self._write(self._known(seen).model_copy(update={"host_names": host_names}))

    async def note_probes(self, probes: tuple[ProbeSeen, ...]) -> None:
        """Write down what the servers answered.

        Raises:
            Retryable: not now.
        """
        await self._patch({PROBES_KEY: render_probes(probes)})

    def see(self, seen: Seen) -> None:
        """Go on from what a look found."""
        self._children = seen.children

    def _known(self, seen: Seen) -> ChildrenFile:
        # Within one pass several things become known, one after another.
        known = self._children or seen.children
        if known is None:
            raise Retryable(f"run {self.scope.name}: where its children are is not written yet")
        return known

    async def _write(self, children: ChildrenFile) -> ChildrenFile:
        if children != self._children:
            await self._patch({CHILDREN_KEY: children.render()})
            self._children = children
        return children

    async def _patch(self, content: dict[str, str]) -> None:
        self.eyes.blink()
        kube, namespace = self.installation.kube, self.scope.namespace
        if await kube.merge(CONFIG_MAP, namespace, self.names.children, {"data": content}) is None:
            raise Retryable(f"ConfigMap {namespace}/{self.names.children} is gone")

    async def _first_children(self) -> ChildrenFile:
        settings = self.installation.settings
        address = await self.installation.find(settings.clickhouse.host)
        anchor = self.scope.suite.anchor
        assert anchor is not None  # noqa: S101 - freezing fixes it
        clickhouse = settings.clickhouse
        store = StorePlace(
            host=address.host,
            port=clickhouse.port,
            secure=clickhouse.secure,
            control_port=clickhouse.control_port if clickhouse.kind is ClickHouseKind.EMBEDDED else None,
        )
        return ChildrenFile(
            run=self.scope.uid,
            run_name=self.scope.name,
            anchor=anchor,
            store=store,
            allowed_hosts=settings.allowed_hosts,
        )


def _merge(known: Iterable[ToolboxPlace], places: Iterable[ToolboxPlace]) -> tuple[ToolboxPlace, ...]:
    """Return all places, the newer one of each server and scenario."""
    return tuple({(place.server, place.scenario): place for place in (*known, *places)}.values())


def _plain(children: ChildrenFile) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(children.render())
    return values


def holds(actual: object, wanted: object) -> bool:
    """Tell whether an object is as it was written; what the API server adds to it by default doesn't matter."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            holds(actual.get(name), value) or (name not in actual and not value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(wanted)
            and all(holds(mine, theirs) for mine, theirs in zip(actual, wanted, strict=True))
        )
    return actual == wanted
