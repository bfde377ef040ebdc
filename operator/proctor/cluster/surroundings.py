"""What is around a run's pods, as network policies have to name it."""

from __future__ import annotations

import ipaddress
from typing import Any

from proctor.adapters.kube.kinds import ENDPOINT_SLICE
from proctor.bootstrap.operator_settings import ClickHouseKind
from proctor.cluster.installation import Address, Installation
from proctor.errors import Terminal
from proctor.manifests.policies import Block, Pods, Ports, Surroundings, Way

SERVED_PORTS = Ports(first=8200, last=8231)
"""Where the embedded ClickHouse serves datasets."""

_OPERATOR_LABELS = {"app.kubernetes.io/name": "proctor", "app.kubernetes.io/component": "operator"}


async def survey(installation: Installation) -> Surroundings:
    """Find out what is around.

    Raises:
        Retryable: something that has to be there isn't now.
        Terminal: the operator may not look.
    """
    clickhouse = installation.settings.clickhouse
    address = await installation.find(clickhouse.host)
    store = _way(address, Ports(first=clickhouse.port))
    if clickhouse.kind is ClickHouseKind.SERVER:
        datasets, seeding = (store,), (store,)
    else:
        datasets = (_way(address, SERVED_PORTS),)
        seeding = (_way(address, Ports(first=clickhouse.control_port)),)
    return Surroundings(
        operator=Pods(namespace=installation.namespace, labels=_OPERATOR_LABELS),
        store=(store,),
        datasets=datasets,
        seeding=seeding,
        api_server=await _find_api_server(installation),
    )


def _way(address: Address, ports: Ports) -> Way:
    if address.service is None:
        return Way(to=(_block(address.host),), ports=(ports,))
    service = address.service
    pods = Pods(namespace=service["metadata"]["namespace"], labels=service["spec"].get("selector") or {})
    return Way(to=(pods,), ports=(ports,))


def _block(host: str) -> Block:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return Block(cidr="0.0.0.0/0")  # a name's address may change; its port is what is left to hold to
    return Block(cidr=f"{host}/{address.max_prefixlen}")


async def _find_api_server(installation: Installation) -> tuple[Way, ...]:
    """Return the ways to the API server, behind its Service as well as before it."""
    try:
        slices = await installation.kube.list(
            ENDPOINT_SLICE, "default", labels={"kubernetes.io/service-name": "kubernetes"}
        )
    except Terminal:
        slices = []
    ways = [_endpoint_way(item, port) for item in slices for port in item.get("ports") or ()]
    return tuple(ways) or (Way(to=(Block(cidr="0.0.0.0/0"),), ports=(Ports(first=443), Ports(first=6443))),)


def _endpoint_way(item: dict[str, Any], port: dict[str, Any]) -> Way:
    addresses = [address for endpoint in item.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return Way(to=tuple(_block(address) for address in addresses), ports=(Ports(first=port["port"]),))
