"""Where the API server is, and who the operator is to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.config.kube_config import list_kube_config_contexts

from proctor.adapters.kube.client import KubeClient
from proctor.errors import Terminal

_CONNECTIONS = 32
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_USERS_FILE = Path("~/.kube/config")


@asynccontextmanager
async def open_kube(kubeconfig: str | None = None) -> AsyncIterator[KubeClient]:
    """Give a client.

    Args:
        kubeconfig: a file; else what KUBECONFIG names, the pod's service account, or the user's own ~/.kube/config.

    Raises:
        Terminal: there is no way to an API server.
    """
    configuration = Configuration()
    chosen = _find_file(kubeconfig)
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


def find_namespace(kubeconfig: str | None = None) -> str:
    """Return the namespace that is meant where none is named: the context's, the pod's own, or `default`.

    Args:
        kubeconfig: as for `open_kube`.

    Raises:
        Terminal: the kubeconfig can't be read.
    """
    chosen = _find_file(kubeconfig)
    try:
        if chosen is None:
            return _OWN_NAMESPACE.read_text("utf-8").strip()
        _, active = list_kube_config_contexts(config_file=chosen)  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        return "default"
    except (ConfigException, OSError) as e:
        raise Terminal(f"reading the kubeconfig {chosen}: {e}") from e
    return str((active.get("context") or {}).get("namespace") or "default")


def _find_file(kubeconfig: str | None) -> str | None:
    """Return the kubeconfig to use; None for the pod's service account."""
    chosen = kubeconfig or os.environ.get("KUBECONFIG")
    users = _USERS_FILE.expanduser()
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    return chosen or (str(users) if users.is_file() and not in_pod else None)
