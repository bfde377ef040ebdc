"""Where the API server is, and who the operator is to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from proctor.adapters.kube.client import KubeClient
from proctor.errors import Terminal

_CONNECTIONS = 32


@asynccontextmanager
async def open_kube(kubeconfig: str | None = None) -> AsyncIterator[KubeClient]:
    """Give a client: by a kubeconfig, by the one that KUBECONFIG names, else as the pod's service account.

    Raises:
        Terminal: there is no way to an API server.
    """
    configuration = Configuration()
    chosen = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        if chosen:
            await load_kube_config(config_file=chosen, client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as e:
        raise Terminal(f"finding the API server: {e}; set KUBECONFIG, or run in a pod") from e
    configuration.connection_pool_maxsize = _CONNECTIONS
    client = KubeClient(ApiClient(configuration))
    try:
        yield client
    finally:
        await client.close()
