"""The chart, rendered by Helm itself: what it makes of its values."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from proctor.bootstrap.operator_settings import OperatorSettings
from support.chart import CHART, Helm

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
HELM = Helm()
EVERYTHING: dict[str, Any] = {
    "runNamespaces": [{"name": "evals", "create": True}, {"name": "team-b"}],
    "images": {"registry": "registry.example.org/mirror", "pullSecrets": ["mirror"]},
    "allowedHosts": ["api.anthropic.com", "models.example.org"],
    "clickhouse": {"persistence": {"enabled": True, "storageClassName": "fast"}, "engineMemory": "1073741824"},
    "proxy": {"https": "http://proxy.example.org:3128", "noProxy": "10.0.0.0/8"},
    "caBundle": {"configMap": "our-ca"},
    "sandbox": {
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "nodeSelector": {"pool": "agents"},
        "tolerations": [{"key": "agents", "operator": "Exists", "effect": "NoSchedule"}],
    },
    "operator": {"nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}]},
    "admissionPolicy": {"enabled": True},
    "metrics": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboards": {"enabled": True, "namespace": "grafana"},
    },
}
SERVER: dict[str, Any] = {"clickhouse": {"kind": "Server", "host": "10.1.2.3", "user": "proctor", "password": "x"}}
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "everything": EVERYTHING,
    "server": SERVER,
    "cluster-wide": {"clusterWide": True},
    "little": {"web": {"enabled": False}, "networkPolicy": {"enabled": False}, "crds": {"install": False}},
}


@pytest.fixture(scope="module")
def rendered() -> dict[str, list[Object]]:
    """The objects of every shape."""
    return {shape: HELM.render(values) for shape, values in SHAPES.items()}


def _of(objects: list[Object], kind: str, name: str | None = None) -> list[Object]:
    return [each for each in objects if each["kind"] == kind and name in {None, each["metadata"]["name"]}]


def _pods(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    for each in objects:
        if each["kind"] in {"Deployment", "StatefulSet"}:
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def _settings(objects: list[Object]) -> OperatorSettings:
    text = _of(objects, "ConfigMap", "proctor-operator")[0]["data"]["operator.json"]
    return OperatorSettings.model_validate_json(text)


def test_the_chart_has_nothing_to_complain_about() -> None:
    """Helm chart: `helm lint --strict`."""
    HELM.run("lint", "--strict", str(CHART))


def test_a_misspelt_value_is_refused_before_anything_is_installed() -> None:
    """Helm chart: values.schema.json, as Helm holds values to it."""
    done = HELM.run("template", "proctor", str(CHART), values={"allowedHost": ["a"]}, check=False)
    assert done.returncode != 0
    assert "allowedHost" in done.stderr


@pytest.mark.parametrize("shape", SHAPES)
def test_no_two_objects_have_one_name(rendered: dict[str, list[Object]], shape: str) -> None:
    """Helm chart: each shape is a set of objects."""
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in rendered[shape]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_operator_understands_its_settings(rendered: dict[str, list[Object]], shape: str) -> None:
    """Helm chart: operator.json is what the operator reads, whatever the values."""
    settings = _settings(rendered[shape])
    assert settings.namespaces == {"everything": ("evals", "team-b"), "cluster-wide": ()}.get(shape, ("default",))
    assert settings.server_images.keys() == {"mcp-clickhouse", "clickscope"}


def test_values_reach_the_settings(rendered: dict[str, list[Object]]) -> None:
    """Helm chart: provider hosts, registry, pull secrets, placement, proxy and CA bundle as values."""
    settings = _settings(rendered["everything"])
    assert settings.images.sandbox == "registry.example.org/mirror/proctor/sandbox:0.1.0"
    assert settings.allowed_hosts == ("api.anthropic.com", "models.example.org")
    assert settings.image_pull_secrets == ("mirror",)
    assert settings.sandbox_defaults.node_selector == {"pool": "agents"}
    assert settings.proxy.https == "http://proxy.example.org:3128"
    assert settings.ca_bundle.config_map == "our-ca"
    assert settings.clickhouse.host == "proctor-clickhouse.proctor-system.svc"
    assert _settings(rendered["server"]).clickhouse.host == "10.1.2.3"


def test_a_digest_wins_over_a_tag() -> None:
    """Helm chart: images by digest."""
    digest = "sha256:" + 64 * "b"
    objects = HELM.render({"images": {"operator": {"repository": "r/op", "tag": "1", "digest": digest}}})
    assert _settings(objects).images.operator == f"r/op@{digest}"
    assert dict(_pods(objects))["proctor-operator"]["containers"][0]["image"] == f"r/op@{digest}"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pod_is_hardened(rendered: dict[str, list[Object]], shape: str) -> None:
    """Helm chart: images run as non-root with read-only roots; the chart's own pods pass `restricted`."""
    pods = dict(_pods(rendered[shape]))
    assert "proctor-operator" in pods
    for name, pod in pods.items():
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True, name
        assert context["runAsUser"] >= 10_000, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["enableServiceLinks"] is False, name
        for container in pod["containers"]:
            inner = container["securityContext"]
            assert inner["readOnlyRootFilesystem"] is True, name
            assert inner["allowPrivilegeEscalation"] is False, name
            assert inner["capabilities"] == {"drop": ["ALL"]}, name
            assert {"requests", "limits"} <= container["resources"].keys(), name
            assert {"readinessProbe", "livenessProbe", "startupProbe"} <= container.keys(), name


def test_there_is_one_operator_at_a_time(rendered: dict[str, list[Object]]) -> None:
    """P15: Recreate, one replica."""
    spec = _of(rendered["default"], "Deployment", "proctor-operator")[0]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_right_is_a_wildcard_and_no_secret_is_read(rendered: dict[str, list[Object]], shape: str) -> None:
    """S28: Secrets create only, never get or list; no wildcard."""
    for role in (*_of(rendered[shape], "Role"), *_of(rendered[shape], "ClusterRole")):
        for rule in role["rules"]:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]), role["metadata"]["name"]
            if "secrets" in rule["resources"]:
                assert rule["verbs"] == ["create"]


def test_rights_are_held_in_the_namespaces_with_runs_alone(rendered: dict[str, list[Object]]) -> None:
    """Helm chart: namespaced or cluster-wide."""
    bound = {each["metadata"]["namespace"] for each in _of(rendered["everything"], "RoleBinding", "proctor-operator")}
    assert bound == {"evals", "team-b"}
    assert _of(rendered["everything"], "ClusterRole") == []
    assert len(_of(rendered["cluster-wide"], "ClusterRoleBinding")) == 2
    assert _of(rendered["cluster-wide"], "RoleBinding", "proctor-operator") == []


def test_a_namespace_that_the_chart_makes_is_restricted(rendered: dict[str, list[Object]]) -> None:
    """S1: sandboxes in Pod Security `restricted`; the namespace outlives the release."""
    (namespace,) = _of(rendered["everything"], "Namespace")
    assert namespace["metadata"]["name"] == "evals"
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert namespace["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_definitions_are_kept_and_can_be_left_out(rendered: dict[str, list[Object]]) -> None:
    """P37: CRDs under templates/ with keep, and a switch."""
    definitions = _of(rendered["default"], "CustomResourceDefinition")
    assert {each["spec"]["names"]["kind"] for each in definitions} == {"EvalSuite", "EvalRun"}
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in definitions} == {"keep"}
    assert _of(rendered["little"], "CustomResourceDefinition") == []


def test_the_store_is_the_charts_or_the_users(rendered: dict[str, list[Object]]) -> None:
    """ClickHouse: the chart's own StatefulSet with a port per dataset in use, or the user's server."""
    (service,) = _of(rendered["default"], "Service", "proctor-clickhouse")
    assert [port["port"] for port in service["spec"]["ports"]] == [8123, 8124, *range(8200, 8232)]
    (stateful,) = _of(rendered["everything"], "StatefulSet")
    claim = stateful["spec"]["volumeClaimTemplates"][0]["spec"]
    assert claim["storageClassName"] == "fast"
    assert _of(rendered["server"], "StatefulSet") == []
    secrets = {
        each["metadata"]["namespace"]: each["data"] for each in _of(rendered["server"], "Secret", "proctor-clickhouse")
    }
    assert secrets.keys() == {"default", "proctor-system"}
    assert base64.b64decode(secrets["default"]["user"]) == b"proctor"


def test_the_store_lets_in_who_needs_it(rendered: dict[str, list[Object]]) -> None:
    """Helm chart: NetworkPolicies of its own; a server under test reaches datasets and never results."""
    (policy,) = _of(rendered["everything"], "NetworkPolicy", "proctor-clickhouse")
    reaching = {}
    for rule in policy["spec"]["ingress"]:
        roles = set()
        for peer in rule["from"]:
            selector = peer["podSelector"]
            roles |= {value for each in selector.get("matchExpressions", ()) for value in each["values"]}
            roles |= {value for key, value in selector.get("matchLabels", {}).items() if key == "proctor.dev/role"}
            if "namespaceSelector" in peer:
                (expression,) = peer["namespaceSelector"]["matchExpressions"]
                assert expression["values"] == ["evals", "team-b"]
        reaching[rule["ports"][0]["port"]] = roles
    assert reaching == {
        8123: {"gateway", "seed", "grade"},
        8124: {"seed", "grade"},
        8200: {"toolbox", "provision", "grade"},
    }
    assert policy["spec"]["egress"] == []


def test_monitoring_is_optional(rendered: dict[str, list[Object]]) -> None:
    """Helm chart: ServiceMonitor and PrometheusRule optional, dashboards as ConfigMaps."""
    kinds = {each["kind"] for each in rendered["default"]}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ValidatingAdmissionPolicy"}
    (rule,) = _of(rendered["everything"], "PrometheusRule")
    assert {"ProctorVerdictFailed", "ProctorOperatorStuck"} <= {
        each["alert"] for each in rule["spec"]["groups"][0]["rules"]
    }
    (monitor,) = _of(rendered["everything"], "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (dashboard,) = [
        each for each in _of(rendered["everything"], "ConfigMap") if each["metadata"]["namespace"] == "grafana"
    ]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["proctor.json"])["title"] == "Proctor"
