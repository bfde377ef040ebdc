"""An operator's installation, from what its process is given."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.adapters.kube.client import KubeClient
from proctor.adapters.kube.connecting import open_kube
from proctor.adapters.kube.kinds import CONFIG_MAP
from proctor.bootstrap.operator_settings import CaBundle, read_master_key, read_settings
from proctor.cluster.installation import Installation
from proctor.errors import InvalidInput

SETTINGS_VARIABLE = "PROCTOR_SETTINGS"
MASTER_KEY_VARIABLE = "PROCTOR_MASTER_KEY_FILE"
NAMESPACE_VARIABLE = "POD_NAMESPACE"

_SETTINGS = "/etc/proctor/operator.json"
_MASTER_KEY = "/etc/proctor/master/key"
_NAMESPACE = "proctor-system"


@asynccontextmanager
async def open_installation() -> AsyncIterator[Installation]:
    """Give the installation that this process operates.

    Raises:
        InvalidInput: its settings are wrong.
        Terminal: there is no API server to be found.
        Retryable: what the settings name can't be read now.
    """
    settings = read_settings(Path(os.environ.get(SETTINGS_VARIABLE, _SETTINGS)))
    master_key = read_master_key(Path(os.environ.get(MASTER_KEY_VARIABLE, _MASTER_KEY)))
    namespace = os.environ.get(NAMESPACE_VARIABLE, _NAMESPACE)
    async with open_kube() as kube:
        yield Installation(
            kube=kube,
            settings=settings,
            master_key=master_key,
            namespace=namespace,
            ca_bundle=await _read_bundle(kube, namespace, settings.ca_bundle),
        )


async def _read_bundle(kube: KubeClient, namespace: str, bundle: CaBundle) -> str:
    if not bundle.config_map:
        return ""
    body = await kube.get(CONFIG_MAP, namespace, bundle.config_map)
    text = ((body or {}).get("data") or {}).get(bundle.key)
    if text is None:
        where = f"ConfigMap {namespace}/{bundle.config_map}"
        raise InvalidInput(f"{where} has no key {bundle.key}: create it, or empty caBundle.configMap")
    return str(text)
