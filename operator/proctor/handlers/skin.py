"""The skin over kopf: events in, nothing out. No finalizer, no annotation, no peering: our objects stay as they are."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from typing import Any

import kopf

from proctor.bootstrap.operator_settings import OperatorSettings
from proctor.handlers.operating import Operator

_GROUP = ("proctor.dev", "v1alpha1")
_SERVER_SECONDS = 270
_CLIENT_SECONDS = 300
"""A watch is begun anew so often: one that fell silent is not noticed otherwise."""


def build_registry(operator: Operator) -> kopf.OperatorRegistry:
    """Return what kopf shall call."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def log_in(**options: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401 - kopf's own
        found = kopf.login_with_service_account(**options)
        return kopf.login_with_kubeconfig(**options) if found is None else _address(found)

    @kopf.on.startup(registry=registry)
    def set_up(settings: kopf.OperatorSettings, **_: Any) -> None:  # noqa: ANN401 - kopf's own
        settings.posting.enabled = False
        settings.peering.standalone = True
        settings.scanning.disabled = True
        settings.watching.server_timeout = _SERVER_SECONDS
        settings.watching.client_timeout = _CLIENT_SECONDS

    @kopf.on.event(*_GROUP, "evalruns", registry=registry)
    async def see_run(body: kopf.Body, type: str | None, **_: Any) -> None:  # noqa: ANN401, A002 - kopf's own
        operator.see_run(dict(body), deleted=type == "DELETED")

    @kopf.on.event(*_GROUP, "evalsuites", registry=registry)
    async def see_suite(body: kopf.Body, **_: Any) -> None:  # noqa: ANN401 - kopf's own
        operator.see_suite(dict(body))

    return registry


def _address(found: kopf.ConnectionInfo) -> kopf.ConnectionInfo:
    """Name the API server by its address, as every pod is told it: a pod may have no DNS."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    return dataclasses.replace(found, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")


async def watch(operator: Operator, settings: OperatorSettings, *, stop: asyncio.Event) -> None:
    """Watch and relist until told to stop."""
    relisting = asyncio.create_task(operator.relist())
    try:
        await kopf.operator(
            registry=build_registry(operator),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            liveness_endpoint=f"http://0.0.0.0:{settings.health_port}/healthz",
            stop_flag=stop,
        )
    finally:
        relisting.cancel()
        await asyncio.gather(relisting, return_exceptions=True)
        await operator.close()
