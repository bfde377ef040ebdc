"""The fleet: every running instance of every service, with its resource attributes, made once per seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.core.scenarios.recipe import Recipe, Rollout, Service
from proctor.core.scenarios.recipe_terms import parse_duration
from proctor.core.seeding.keys import hex_id, pick_one, shuffle_all
from proctor.core.seeding.sql import list_numbers, list_strings, name_table, quote

_SDK_VERSIONS = {"java": "1.44.1", "go": "1.33.0", "nodejs": "1.30.1", "python": "1.29.0", "dotnet": "1.11.1"}
FLEET_MAPS = "fleet_maps"
FLEET_SERVICES = "fleet_services"
FLEET_RANKS = "fleet_ranks"
"""Names of the arrays, by place in the fleet, that every statement begins with."""

_TABLE = "fleet"

_NEVER = 2**62
"""A time of flipping that no row reaches: 146 years of nanoseconds after the epoch."""


@dataclass(frozen=True)
class Instance:
    """One running instance.

    Attributes:
        service: the service's name.
        number: its place among the service's instances, from 0.
        attributes: its resource attributes.
    """

    service: str
    number: int
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Flip:
    """What one rollout does to the fleet.

    Attributes:
        at: per place in the fleet, the instant of the change in nanoseconds from the anchor.
        to: per place in the fleet, the place of the changed instance.
    """

    at: tuple[int, ...]
    to: tuple[int, ...]


@dataclass(frozen=True)
class Fleet:
    """All instances, those of one service side by side, services in the order of their names.

    The order is that of the tables' sorting keys, so that a place in the fleet can stand in for the service's name.
    """

    instances: tuple[Instance, ...]
    first: Mapping[str, int]
    count: Mapping[str, int]
    flips: Mapping[str, Flip] = field(default_factory=dict)

    def create(self, database: str) -> list[str]:
        """Return the statements that put the fleet where every INSERT of a load finds it.

        As literals in each statement it would be parsed anew for each emission, which for small datasets costs more
        than making the rows.
        """
        table = name_table(database, _TABLE)
        order = {name: rank for rank, name in enumerate(sorted({one.service for one in self.instances}))}
        services = list_strings(one.service for one in self.instances)
        ranks = list_numbers(order[one.service] for one in self.instances)
        maps = ", ".join(_write_map(one.attributes) for one in self.instances)
        kind = "Array(Map(LowCardinality(String), String))"
        return [
            (
                f"CREATE TABLE IF NOT EXISTS {table} (maps {kind}, services Array(String), ranks Array(UInt16))"
                " ENGINE = Memory"
            ),
            f"INSERT INTO {table} SELECT CAST({quote(f'[{maps}]')}, '{kind}'), {services}, {ranks}",
        ]


def use_fleet(database: str) -> str:
    """Return the WITH clause by which a statement sees the fleet."""
    table = name_table(database, _TABLE)
    columns = {"maps": FLEET_MAPS, "services": FLEET_SERVICES, "ranks": FLEET_RANKS}
    return "WITH " + ", ".join(f"(SELECT any({column}) FROM {table}) AS {name}" for column, name in columns.items())


def drop_fleet(database: str) -> str:
    """Return the statement that takes the fleet away: no such table belongs to a dataset."""
    return f"DROP TABLE {name_table(database, _TABLE)} SYNC"


def build_fleet(recipe: Recipe, seed: int) -> Fleet:
    """Draw every instance of every service."""
    instances: list[Instance] = []
    first: dict[str, int] = {}
    for name in sorted(recipe.services):
        first[name] = len(instances)
        instances += _build_instances(recipe, name, seed)
    count = {name: service.instances for name, service in recipe.services.items()}
    flips: dict[str, Flip] = {}
    for name, rollout in recipe.rollouts.items():
        at, to = [], []
        for place, instance in enumerate(instances):
            moment = _flip_moment(rollout, instance)
            at.append(moment)
            to.append(place)
        places = [place for place, moment in enumerate(at) if moment != _NEVER]
        for place in places:
            old = instances[place]
            to[place] = len(instances)
            # A service that omits its version doesn't show the new one either.
            version = {"service.version": rollout.to} if "service.version" in old.attributes else {}
            instances.append(Instance(old.service, old.number, {**old.attributes, **version}))
        flips[name] = Flip(tuple(at), tuple(to))
    grown = {
        name: Flip(
            flip.at + (_NEVER,) * (len(instances) - len(flip.at)), flip.to + tuple(range(len(flip.to), len(instances)))
        )
        for name, flip in flips.items()
    }
    return Fleet(tuple(instances), first, count, grown)


def _write_map(attributes: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote(key)}: {quote(value)}" for key, value in attributes.items()) + "}"


def _flip_moment(rollout: Rollout, instance: Instance) -> int:
    if instance.service != rollout.service or instance.number not in rollout.instances:
        return _NEVER
    place = rollout.instances.index(instance.number)
    return parse_duration(rollout.start) + place * parse_duration(rollout.every)


def _build_instances(recipe: Recipe, name: str, seed: int) -> list[Instance]:
    service = recipe.services[name]
    common = recipe.resources
    nodes = service.nodes or common.nodes
    # As many nodes as instances means a node each; fewer are shared out by chance.
    own_nodes = shuffle_all(nodes, seed, "node", name) if len(nodes) >= service.instances else None
    built = []
    for number in range(service.instances):
        path = (name, str(number))
        attributes = _attributes(
            service,
            name,
            node=own_nodes[number] if own_nodes else pick_one(nodes, seed, "node", *path),
            namespace=pick_one(service.namespaces or common.namespaces, seed, "namespace", name),
            region=pick_one(service.regions or common.regions, seed, "region", *path),
            version=pick_one(service.versions or common.versions, seed, "version", name),
        )
        replica_set = hex_id(10, seed, "replica-set", name)
        pod = f"{name}-{replica_set}-{hex_id(5, seed, 'pod', *path)}"
        identity = hex_id(32, seed, "instance", *path)
        uid = hex_id(32, seed, "uid", *path)
        attributes |= {
            "service.instance.id": _dashed(identity),
            "k8s.pod.name": pod,
            "k8s.pod.uid": _dashed(uid),
        }
        kept = {key: value for key, value in attributes.items() if key not in service.omit}
        built.append(Instance(name, number, kept | service.attributes))
    return built


def _attributes(service: Service, name: str, *, node: str, namespace: str, region: str, version: str) -> dict[str, str]:
    return {
        "service.name": name,
        "service.namespace": namespace,
        "service.version": version,
        "service.instance.id": "",
        "k8s.namespace.name": namespace,
        "k8s.pod.name": "",
        "k8s.pod.uid": "",
        "k8s.node.name": node,
        "k8s.deployment.name": name,
        "k8s.container.name": name,
        "host.name": node,
        "cloud.region": region,
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.language": service.language,
        "telemetry.sdk.version": _SDK_VERSIONS.get(service.language, "1.30.0"),
        "deployment.environment.name": namespace,
    }


def _dashed(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
