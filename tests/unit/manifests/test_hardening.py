"""What every pod of a run lacks, and what only some may have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.errors import InvalidInput
from proctor.manifests.canary import Probe, build_canary
from proctor.manifests.jobs import build_seed
from proctor.manifests.sandbox import build_sandbox
from proctor.manifests.scope import Images, KubeObject, Placement, RunScope
from proctor.manifests.toolbox import Part, build_toolbox
from support.kube_objects import (
    DATASET,
    DIGEST,
    EVERYTHING,
    GATEWAY,
    IMAGES,
    STDIO,
    assert_hardened,
    assert_sealed,
    attempt,
    containers_of,
    every_child,
    pod_specs,
    scope,
    suite_spec,
)

OWN_AGENT = {
    "runtime": "Command",
    "command": {"image": f"example.com/agent{DIGEST}", "command": ["agent", "$(PROCTOR_TOKEN)"]},
}
RUNTIMES: dict[str, dict[str, Any]] = {
    "Builtin": {},
    "ClaudeCode": {"agent": {"runtime": "ClaudeCode"}},
    "Command": {"agent": OWN_AGENT},
}
SUITES = {**RUNTIMES, "everything": EVERYTHING}


def _pods(run: RunScope) -> list[tuple[str, KubeObject]]:
    return list(pod_specs(item for items in every_child(run).values() for item in items))


@pytest.mark.parametrize("suite", SUITES)
def test_s3_s4_s5_s7_s8_s27_every_pod_is_hardened(suite: str) -> None:
    """S3, S4, S5, S7, S8, S23, S27: each pod and each container in it, init containers included."""
    pods = _pods(scope(suite_spec(**SUITES[suite])))
    assert {role for role, _ in pods} >= {"sandbox", "gateway", "toolbox", "seed", "grade"}
    for _, spec in pods:
        assert_hardened(spec)


@pytest.mark.parametrize("suite", SUITES)
def test_s11_s23_s25_a_sandbox_is_sealed(suite: str) -> None:
    """S11, S23, S25: no name server, requests that are limits, an end, scratch in memory; the canary's pod likewise."""
    for role, spec in _pods(scope(suite_spec(**SUITES[suite]))):
        if role == "sandbox":
            assert_sealed(spec)


def test_s20_a_sandbox_names_nothing() -> None:
    """S20: nothing that can be seen inside tells scenario, server, model, suite or run."""
    run = scope(suite_spec(**EVERYTHING))
    for pod in (build_sandbox(run, attempt()), build_canary(run, Probe(gateway=GATEWAY, closed=()))):
        # Owners are the API's; nothing mounts them, and no token asks for them.
        seen = str({**pod, "metadata": {**pod["metadata"], "ownerReferences": [], "namespace": ""}})
        suite = run.suite
        words = [*suite.scenarios, *suite.servers, *suite.models]
        assert [word.name for word in words if word.name in seen] == []
        assert run.name not in seen
        assert run.uid not in seen
        assert "annotations" not in pod["metadata"]


def test_s12_the_canary_is_like_a_sandbox() -> None:
    """S12: the same labels but for the attempt's own, account, nodes and hardening, so that the same policies hold."""
    run = scope(suite_spec(**EVERYTHING))
    canary = build_canary(run, Probe(gateway=GATEWAY, closed=("10.96.0.1:443",)))
    sandbox = build_sandbox(run, attempt())
    own = "proctor.dev/attempt"
    assert {**canary["metadata"]["labels"], own: ""} == {**sandbox["metadata"]["labels"], own: ""}
    same = set(sandbox["spec"]) - {"initContainers", "containers", "volumes", "activeDeadlineSeconds"}
    assert {name: canary["spec"][name] for name in same} == {name: sandbox["spec"][name] for name in same}


def test_s13_an_agent_starts_after_the_canary_in_its_own_pod() -> None:
    """S13: the first container of a sandbox looks until all is closed, and the gateway answers."""
    (first,) = build_sandbox(scope(), attempt(closed=("10.96.0.1:443", "udp:10.96.0.10:53")))["spec"]["initContainers"]
    assert first["image"] == IMAGES.sandbox
    assert first["command"][7:] == [
        *("--seconds", "30", "--times", "3", "--open", GATEWAY),
        *("--closed", "10.96.0.1:443", "--closed", "udp:10.96.0.10:53"),
    ]


def test_an_agent_gets_its_door_and_its_token_and_nothing_else() -> None:
    """S15: the environment of an agent of one's own, whole; it can't be made to expand anything (S29)."""
    agent = OWN_AGENT | {"command": OWN_AGENT["command"] | {"env": [{"name": "STRATEGY", "value": "$(HOME) $$"}]}}  # type: ignore[operator]
    (container,) = build_sandbox(scope(suite_spec(agent=agent)), attempt())["spec"]["containers"]
    assert {item["name"]: item["value"] for item in container["env"]} == {
        "HOME": "/scratch",
        "TMPDIR": "/scratch/tmp",
        "LANG": "C.UTF-8",
        "STRATEGY": "$$(HOME) $$$$",
        "PROCTOR_GATEWAY": f"http://{GATEWAY}",
        "PROCTOR_ADDRESS": f"http://{GATEWAY}",
        "PROCTOR_TOKEN": "pct1.x.1.y",
        "ANTHROPIC_BASE_URL": f"http://{GATEWAY}",
        "ANTHROPIC_API_KEY": "pct1.x.1.y",
    }
    assert container["command"] == ["agent", "$$(PROCTOR_TOKEN)"]
    assert "workingDir" not in container


def test_controls_are_played_by_the_builtin_agent() -> None:
    """M-controls: whatever the suite's runtime."""
    run = scope(suite_spec(agent=OWN_AGENT))
    (container,) = build_sandbox(run, attempt(control=True))["spec"]["containers"]
    assert container["image"] == IMAGES.sandbox


@pytest.mark.parametrize("suite", ["small", "everything"])
def test_s26_an_empty_runtime_class_is_left_out(suite: str) -> None:
    """S26: the field is there only with a name; it holds for strangers' code, not for Proctor's own."""
    pods = _pods(scope(suite_spec(**SUITES.get(suite, {}))))
    classes = {role: spec.get("runtimeClassName") for role, spec in pods}
    wanted = "gvisor" if suite == "everything" else None
    assert {role: found for role, found in classes.items() if found} == (
        dict.fromkeys(("sandbox", "toolbox", "provision"), wanted) if wanted else {}
    )


def test_s6_user_namespaces_are_asked_for_where_the_cluster_has_them() -> None:
    """S6: hostUsers is false, or absent."""
    plain, asked = (
        build_sandbox(scope(placement=Placement(user_namespace=user_namespace)), attempt())["spec"]
        for user_namespace in (False, True)
    )
    assert "hostUsers" not in plain
    assert asked["hostUsers"] is False


def test_a_suite_says_where_strangers_code_runs() -> None:
    """Manifest, `sandbox`: added to what holds for all pods."""
    common = Placement(node_selector={"os": "linux"}, pull_secrets=("mirror", "registry"))
    for role, spec in _pods(scope(suite_spec(**EVERYTHING), placement=common)):
        stranger = role in {"sandbox", "toolbox", "provision"}
        assert spec["nodeSelector"] == {"os": "linux", **({"pool": "sandboxes"} if stranger else {})}
        assert [item["name"] for item in spec["imagePullSecrets"]] == ["mirror", "registry"]
        assert bool(spec.get("tolerations")) is stranger


def test_s23_a_suite_says_what_a_sandbox_may_use() -> None:
    """S23: a limit is also what is set aside."""
    (container,) = build_sandbox(scope(suite_spec(**EVERYTHING)), attempt())["spec"]["containers"]
    amounts = {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "64Mi"}
    assert container["resources"] == {"requests": amounts, "limits": amounts}


@pytest.mark.parametrize("image", ["example.com/mcp:1.2", "example.com/mcp", "example.com/mcp@sha256:ab", None])
def test_s27_a_suites_image_is_named_by_its_digest(image: str | None) -> None:
    """S27: a tag is refused, with what to write instead; one from the operator's settings is its owner's matter."""
    server = STDIO | {"stdio": {"command": ["mcp"], **({"image": image} if image else {})}}
    run = scope(suite_spec(servers=[server]))
    with pytest.raises(InvalidInput, match=r"name it by its digest|name one by its digest"):
        build_toolbox(run, Part(server=0, scenario=0), DATASET)
    if image is not None:
        trusting = replace(run, images=replace(IMAGES, servers=frozenset({image})))
        deployment, _ = build_toolbox(trusting, Part(server=0, scenario=0), DATASET)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == image


def test_claude_code_needs_an_image_of_its_own() -> None:
    """A chart may leave it out; the message says what to set."""
    run = scope(suite_spec(agent={"runtime": "ClaudeCode"}), images=Images(operator="o", sandbox="s"))
    with pytest.raises(InvalidInput, match=r"images\.claudeCode"):
        build_sandbox(run, attempt())


@pytest.mark.parametrize(
    "fields",
    [
        {"sandbox": {"hostPath": "/"}},
        {"sandbox": {"serviceAccountName": "admin"}},
        {"sandbox": {"nodeSelector": {"a": "$(x)"}}},
        {"servers": [STDIO | {"volumes": []}]},
        {"servers": [STDIO | {"env": [{"name": "X", "secretKeyRef": {"name": "../x", "key": "k"}}]}]},
        {"servers": [STDIO | {"env": [{"name": "X", "secretKeyRef": {"name": "x", "key": "../k"}}]}]},
        {"servers": [STDIO | {"env": [{"name": "X", "secretKeyRef": {"name": "x", "key": "k", "namespace": "kube"}}]}]},
        {"scenarios": [{"name": "x", "configMapRef": {"name": "../x"}, "answerRef": {"name": "x"}}]},
    ],
)
def test_s29_a_suite_can_ask_for_nothing_else(fields: dict[str, Any]) -> None:
    """S28, S29: no host's folder, no account, no path, no other namespace's Secret."""
    with pytest.raises(ValidationError):
        suite_spec(**fields)


def test_s28_no_child_reaches_into_another_namespace() -> None:
    """S28: every child is in the run's namespace, goes with the run, and can't hold it back."""
    for items in every_child(scope(suite_spec(**EVERYTHING))).values():
        for item in items:
            assert item["metadata"]["namespace"] == "team-a"
            (owner,) = item["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == ("EvalRun", True, False)
            assert "finalizers" not in item["metadata"]


def test_s28_the_grader_may_do_one_thing() -> None:
    """S28: it reads and changes one ConfigMap; every other account may do nothing, and none has a token mounted."""
    accounts = [
        item for items in every_child(scope()).values() for item in items if item["kind"] in {"ServiceAccount", "Role"}
    ]
    rules = [rule for item in accounts for rule in item.get("rules", [])]
    names = scope().names
    assert rules == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [names.grades], "verbs": ["get", "patch"]}
    ]
    assert all(item["automountServiceAccountToken"] is False for item in accounts if item["kind"] == "ServiceAccount")
    with_token = [
        role for role, spec in _pods(scope()) for volume in spec["volumes"] if "serviceAccountToken" in str(volume)
    ]
    assert with_token == ["grade"]


def test_answers_and_secrets_are_mounted_where_they_are_needed_only() -> None:
    """Manifest: the answer for seeding and grading, policies for the gateway, each Secret's key for its use."""
    seen: dict[str, set[str]] = {}
    for role, spec in _pods(scope(suite_spec(**EVERYTHING))):
        projected = [source for volume in spec["volumes"] for source in volume.get("projected", {}).get("sources", [])]
        named = [source.get("secret") or source.get("configMap") or {} for source in projected]
        paths = {f"{item['name']}/{entry['key']}" for item in named for entry in item.get("items", [])}
        env = [item for container in containers_of(spec) for item in container.get("env", [])]
        refs = [item["valueFrom"]["secretKeyRef"] for item in env if "valueFrom" in item]
        seen.setdefault(role, set()).update(paths, (f"{ref['name']}/{ref['key']}" for ref in refs))
    prefix = scope().names.prefix
    shared = {
        f"{prefix}-suite/suite.json",
        f"{prefix}-children/children.json",
        f"{prefix}-keys/datasetPassword",
        "proctor-clickhouse/user",
        "proctor-clickhouse/password",
        "my-incident/brief.yaml",
        "my-incident/recipe.yaml",
        "my-incident/variants.yaml",
    }
    assert seen == {
        "seed": shared | {"my-answer/answer.yaml"},
        "grade": shared | {"my-answer/answer.yaml", "judge/api-key", "kube-root-ca.crt/ca.crt"},
        "gateway": shared
        | {"my-answer/policies.yaml", "anthropic/api-key", "candidate/token", "licence/text"}
        | {f"{prefix}-keys/runKey", f"{prefix}-keys/operatorToken"},
        "toolbox": {f"{prefix}-keys/datasetPassword", "licence/text"},
        "provision": {f"{prefix}-keys/datasetPassword"},
        "sandbox": set(),
    }


def test_a_server_under_test_starts_once_its_way_out_is_closed() -> None:
    """S10, S13: what waits first looks at all but the dataset that the server may reach."""
    deployment, _ = build_toolbox(scope(suite_spec()), Part(server=0, scenario=0), DATASET)
    wait = deployment["spec"]["template"]["spec"]["initContainers"][0]
    words = wait["command"]
    assert [words[index + 1] for index, word in enumerate(words) if word == "--open"] == [DATASET.address]
    assert [words[index + 1] for index, word in enumerate(words) if word == "--closed"] == ["10.96.0.1:443"]
    assert DATASET.address in DATASET.closed


def test_several_workers_are_an_indexed_job() -> None:
    """Issue, Children: a seeding Job is Indexed over row ranges; alone, it is an ordinary one."""
    alone, shared = (build_seed(scope(), 0, ("--user-name", "x"), workers=workers) for workers in (1, 3))
    assert "completionMode" not in alone["spec"]
    indexed = shared["spec"]
    assert (indexed["completionMode"], indexed["completions"], indexed["parallelism"]) == ("Indexed", 3, 3)
    (container,) = indexed["template"]["spec"]["containers"]
    assert container["command"][-2:] == ["--parts", "3"]
