"""Makers of a run's children, and what has to hold for every one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import kubernetes.client.models as kinds

from proctor.api.suite import EvalSuiteSpec
from proctor.manifests.canary import Probe, build_canary
from proctor.manifests.documents import RunSecrets, build_children, build_grades, build_keys, build_suite
from proctor.manifests.gateway import build_gateway
from proctor.manifests.jobs import build_account, build_grade, build_seed
from proctor.manifests.policies import Block, Pods, Ports, Surroundings, Way, build_policies
from proctor.manifests.sandbox import SandboxAttempt, build_sandbox
from proctor.manifests.scope import Images, KubeObject, RunScope
from proctor.manifests.toolbox import DatasetAt, Part, build_provision, build_toolbox, is_started
from support.manifests import manifest, real_model

DIGEST = "@sha256:" + "ab" * 32
IMAGES = Images(
    operator=f"proctor/operator{DIGEST}",
    sandbox=f"proctor/sandbox{DIGEST}",
    claude_code=f"proctor/sandbox-claude-code{DIGEST}",
)
DATASET = DatasetAt(
    host="10.96.0.20", port=8201, user="pr_reader", database="ds_x", closed=("10.96.0.1:443", "10.96.0.20:8201")
)
GATEWAY = "10.96.0.30:8080"
OPAQUE = "0123456789abcdef0123"

_DATASET_ENV = [
    {"name": "CLICKHOUSE_HOST", "dataset": "host"},
    {"name": "CLICKHOUSE_PASSWORD", "dataset": "password"},
]
STDIO = {
    "name": "current",
    "stdio": {"image": f"example.com/mcp{DIGEST}", "command": ["mcp", "--sql", "$(PATH) costs $5"]},
    "env": [*_DATASET_ENV, {"name": "LICENCE", "secretKeyRef": {"name": "licence", "key": "text"}}],
    "allowedTools": ["run_query"],
    "sqlTool": {"name": "run_query", "argument": "query"},
}
HTTP = {
    "name": "candidate",
    "http": {"image": f"example.com/mcp-http{DIGEST}", "port": 9000},
    "env": [*_DATASET_ENV, {"name": "HOME", "value": "/data"}],
    "headers": [{"name": "Authorization", "secretKeyRef": {"name": "candidate", "key": "token"}}],
    "provision": {"image": f"example.com/hook{DIGEST}", "command": ["make-sources"]},
    "deniedTools": [],
}
HOSTED = {
    "name": "hosted",
    "http": {"url": "https://mcp.example.com/mcp"},
    "deniedTools": [],
}
OWN_SCENARIO = {
    "name": "my-incident",
    "volume": "1",
    "configMapRef": {"name": "my-incident"},
    "answerRef": {"name": "my-answer"},
}
EVERYTHING: dict[str, Any] = {
    "scenarios": [{"name": "error-root-cause", "volume": "0.02"}, OWN_SCENARIO],
    "servers": [STDIO, HTTP, HOSTED],
    "models": [real_model(), {"name": "newest", "scripted": {"policy": "newest"}}],
    "judge": {"anthropic": {"model": "judge-x", "secretKeyRef": {"name": "judge", "key": "api-key"}}},
    "sandbox": {
        "runtimeClassName": "gvisor",
        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
        "nodeSelector": {"pool": "sandboxes"},
        "tolerations": [{"key": "sandboxes", "operator": "Exists", "effect": "NoSchedule"}],
        "imagePullSecrets": [{"name": "registry"}],
    },
}
"""A suite that needs every kind of child."""


def suite_spec(**changes: Any) -> EvalSuiteSpec:
    """A small suite that a cluster can run; `changes` as for `support.manifests.manifest`."""
    fields = {"servers": [STDIO], "gate": {"enforcement": "Enforce", "minimum": "0.5"}} | changes
    return EvalSuiteSpec.model_validate(manifest(**fields)["spec"])


def scope(suite: EvalSuiteSpec | None = None, **changes: Any) -> RunScope:
    found = RunScope(
        name="nightly-7",
        namespace="team-a",
        uid="5e0c9b0e-6a6c-4a35-9c54-0a8f5f6f7d10",
        suite=suite or suite_spec(),
        images=IMAGES,
        clickhouse_secret="proctor-clickhouse",
    )
    return replace(found, **changes)


def attempt(**changes: Any) -> SandboxAttempt:
    found = SandboxAttempt(
        opaque_id=OPAQUE,
        token="pct1.x.1.y",
        gateway=GATEWAY,
        control=False,
        deadline_seconds=900,
        closed=("10.96.0.1:443",),
    )
    return replace(found, **changes)


OPERATOR = Pods(namespace="proctor-system", labels={"app.kubernetes.io/component": "operator"})
CLICKHOUSE = Pods(namespace="proctor-system", labels={"app.kubernetes.io/component": "clickhouse"})
API_SERVER = "10.88.0.1"


def surroundings() -> Surroundings:
    return Surroundings(
        operator=OPERATOR,
        store=(Way(to=(CLICKHOUSE,), ports=(Ports(first=8123),)),),
        datasets=(Way(to=(CLICKHOUSE,), ports=(Ports(first=8200, last=8231),)),),
        seeding=(Way(to=(CLICKHOUSE,), ports=(Ports(first=8124),)),),
        api_server=(Way(to=(Block(cidr=f"{API_SERVER}/32"),), ports=(Ports(first=6443),)),),
    )


def every_child(run: RunScope) -> dict[str, list[KubeObject]]:
    """All that a run may have, by what builds it, in the order of creation."""
    secrets = RunSecrets(run_key=b"k" * 32, operator_token="operator-token", dataset_password="dataset-password")
    parts = [
        (Part(server=server, scenario=scenario), run.suite.servers[server])
        for server in range(len(run.suite.servers))
        for scenario in range(len(run.suite.scenarios))
    ]
    toolboxes = [item for part, server in parts if is_started(server) for item in build_toolbox(run, part, DATASET)]
    hooks = [
        item
        for part, server in parts
        if server.provision is not None
        for item in build_provision(run, part, DATASET, "http://10.96.0.40:9000")
    ]
    seeds = [build_seed(run, n, ("--user-name", f"pr_x_{n}")) for n in range(len(run.suite.scenarios))]
    return {
        "documents": [
            build_suite(run),
            build_keys(run, secrets),
            build_children(run, {"run": run.uid}),
            build_grades(run),
        ],
        "account": [build_account(run)],
        "policies": [*build_policies(run, surroundings())],
        "seed": seeds,
        "gateway": [*build_gateway(run)],
        "toolbox": toolboxes,
        "provision": hooks,
        "canary": [build_canary(run, Probe(gateway=GATEWAY, closed=("10.96.0.1:443", "udp:10.96.0.10:53")))],
        "sandbox": [build_sandbox(run, attempt())],
        "grade": [*build_grade(run)],
    }


def pod_specs(objects: Iterable[KubeObject]) -> Iterator[tuple[str, KubeObject]]:
    """The pods that objects are or make, each with its labels' role."""
    for item in objects:
        match item["kind"]:
            case "Pod":
                yield item["metadata"]["labels"]["proctor.dev/role"], item["spec"]
            case "Deployment" | "Job":
                template = item["spec"]["template"]
                yield template["metadata"]["labels"]["proctor.dev/role"], template["spec"]


def containers_of(spec: KubeObject) -> list[KubeObject]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def assert_hardened(spec: KubeObject) -> None:
    """What holds for every pod of a run (S3, S4, S5, S7, S8, S11, S23): the static half of sandbox hardening."""
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostAliases"} & set(spec)
    security = spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert min(security["runAsUser"], security["runAsGroup"], security["fsGroup"]) >= 10_000
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert 0 < spec["terminationGracePeriodSeconds"] <= 30
    for volume in spec["volumes"]:
        assert set(volume) - {"name"} <= {"emptyDir", "projected"}, volume
        assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"]
    for container in containers_of(spec):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        }
        assert re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", container["image"])
        assert container["imagePullPolicy"] == "IfNotPresent"
        assert all("hostPort" not in port for port in container.get("ports", []))
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        assert set(limits) == {"cpu", "memory", "ephemeral-storage"}
        assert {**requests, "cpu": None} == {**limits, "cpu": None}


def assert_sealed(spec: KubeObject) -> None:
    """What holds for a sandbox besides (S11, S20, S23, S25): scratch alone, no names, its whole share, an end."""
    assert_hardened(spec)
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > 0
    assert (spec["dnsPolicy"], spec["dnsConfig"]) == ("None", {"nameservers": ["127.0.0.1"]})
    assert [set(volume) for volume in spec["volumes"]] == [{"name", "emptyDir"}]
    assert spec["volumes"][0]["emptyDir"]["medium"] == "Memory"
    for container in containers_of(spec):
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert all(set(item) == {"name", "value"} for item in container.get("env", []))
        assert "envFrom" not in container


def find_flaws(item: Any, kind: str, where: str = "") -> list[str]:
    """Compare an object with the API's own types; return what the API does not know, or has of another type."""
    kind = kind.strip().lower() if kind.strip().lower() in _PLAIN else kind.strip()
    if kind.startswith(("Dict[", "dict(")):
        inner = kind.split(",", 1)[1].strip(" )]")
        return [flaw for key, value in item.items() for flaw in find_flaws(value, inner, f"{where}.{key}")]
    if kind.startswith(("List[", "list[")):
        if not isinstance(item, list):
            return [f"{where}: not a list"]
        inner = kind[len("List[") : -1]
        return [flaw for n, value in enumerate(item) for flaw in find_flaws(value, inner, f"{where}[{n}]")]
    if kind in _PLAIN:
        return [] if type(item) in _PLAIN[kind] else [f"{where}: {item!r} is no {kind}"]
    model = getattr(kinds, kind)
    names = {alias: model.openapi_types[name] for name, alias in model.attribute_map.items()}
    unknown = [f"{where}.{key}: unknown" for key in item if key not in names]
    return unknown + [
        flaw for key, value in item.items() if key in names for flaw in find_flaws(value, names[key], f"{where}.{key}")
    ]


_PLAIN = {"str": (str,), "bool": (bool,), "int": (int,), "object": (str, int), "datetime": (str,)}
