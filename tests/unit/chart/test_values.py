"""What the chart takes: its own values, and nothing that it would not understand."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from support.chart import read_schema, read_values

SCHEMA = read_schema()


def _validate(values: Mapping[str, Any]) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(values)


def _set(path: str, value: Any) -> dict[str, Any]:
    values = copy.deepcopy(read_values())
    *parents, last = path.split(".")
    node: Any = values
    for name in parents:
        node = node[name]
    node[last] = value
    return values


def _objects(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every description of an object with named fields."""
    if "properties" in schema and schema.get("type") == "object":
        yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _objects(child, f"{path}.{name}")
    for name, child in schema.get("definitions", {}).items():
        yield from _objects(child, f"definitions.{name}")
    if isinstance(schema.get("items"), Mapping):
        yield from _objects(schema["items"], f"{path}[]")


def test_the_schema_is_one() -> None:
    """Helm chart: values.schema.json is a JSON schema."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_the_charts_own_values_are_taken() -> None:
    """Helm chart: `helm install` needs no value at all."""
    _validate(read_values())
    _validate({})


def test_every_value_is_described_and_everything_described_has_a_value() -> None:
    """Helm chart: values.yaml and the schema name the same."""

    def compare(values: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        described = {name for name in schema["properties"] if name != "global"}
        assert set(values) == described, path
        for name, value in values.items():
            child = schema["properties"][name]
            if isinstance(value, Mapping) and "properties" in child:
                compare(value, child, f"{path}.{name}")

    compare(read_values(), SCHEMA, "")


def test_objects_are_closed() -> None:
    """Helm chart: a misspelt value is refused, not passed over."""
    assert [path for path, node in _objects(SCHEMA) if node.get("additionalProperties") is not False] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("images.operator", {"repository": "proctor/operator", "digest": "sha256:12"}),
        ("images.operator", {"tag": "1"}),
        ("images.registry", "https://registry.example.org"),
        ("runNamespaces", []),
        ("runNamespaces", [{"name": "Not_A_Name"}]),
        ("allowedHosts", ["https://api.example.org"]),
        ("allowedHosts", ["*.example.org"]),
        ("canary.forbidden", ["metadata.example.org:80"]),
        ("clickhouse.kind", "server"),
        ("clickhouse.kind", "Server"),
        ("proxy.https", "proxy:3128"),
        ("networkPolicy.metricsFrom", [{}]),
        ("operator.replicas", 2),
    ],
    ids=str,
)
def test_what_can_not_work_is_refused(path: str, value: Any) -> None:
    """Helm chart: values are checked before anything is installed."""
    with pytest.raises(jsonschema.ValidationError):
        _validate(_set(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("images.operator", {"repository": "registry.example.org:5000/p/operator", "digest": "sha256:" + 64 * "a"}),
        ("images.registry", "registry.example.org:5000/mirror"),
        ("runNamespaces", [{"name": "evals", "create": True}, {"name": "team-b"}]),
        ("allowedHosts", ["api.anthropic.com", "gateway.example.org"]),
        ("canary.forbidden", ["10.96.0.1:443", "[fd00::1]:443"]),
        ("proxy.https", "http://proxy.example.org:3128"),
        ("networkPolicy.metricsFrom", [{"namespaceSelector": {"matchLabels": {"team": "observability"}}}]),
        ("sandbox.resources", {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}),
    ],
    ids=str,
)
def test_what_people_need_is_taken(path: str, value: Any) -> None:
    """Helm chart: registry, digests, namespaces, hosts, proxy, resources as values."""
    _validate(_set(path, value))


def test_a_server_of_ones_own_needs_a_host() -> None:
    """Helm chart: switchable to the user's ClickHouse."""
    values = read_values()
    values["clickhouse"] |= {"kind": "Server", "host": "clickhouse.data.svc", "user": "proctor", "password": "x"}
    _validate(values)
