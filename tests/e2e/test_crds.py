"""The CustomResourceDefinitions on a real API server: what it shows, what it fills in, and what it refuses and how."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cluster.kubectl import Kubectl
from cluster.steps import wait_for
from proctor.api.generation.crds import build_run_crd, build_suite_crd
from support.manifests import PRICE, manifest, real_model, server

pytestmark = pytest.mark.cluster

CRDS = Path(__file__).parents[2] / "crds"
Spec = Mapping[str, Any]


@pytest.fixture(scope="module", autouse=True)
def crds(kubectl: Kubectl) -> None:
    """The definitions as they are here; the API server refuses them if a rule costs too much."""
    options = ("--server-side", "--force-conflicts", "--field-manager=test-crds")
    kubectl.run("apply", *options, f"--filename={CRDS}")
    names = ("evalsuites.proctor.dev", "evalruns.proctor.dev")
    wait_for("the definitions", lambda: kubectl.serves(*names), seconds=60, hint="the API server's log")


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    name = "crds-are-tested"
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kubectl.run("delete", "namespace", "--wait=false", name)


@dataclass(frozen=True)
class Rule:
    """One rule: what breaks it, what is as close as can be and keeps it, and what is said then."""

    id: str
    message: str
    bad: Spec
    good: Spec = field(default_factory=dict)


def one(**changes: Any) -> dict[str, Any]:
    """A suite with one server, changed; the second is as it always is."""
    return {"servers": [{k: v for k, v in server("current", **changes).items() if v is not None}, server("candidate")]}


def judged(**judge: Any) -> dict[str, Any]:
    return {"judge": judge, "models": [real_model("opus", "claude-x")]}


def gate(**changes: Any) -> dict[str, Any]:
    fields = {"enforcement": "Enforce", "baseline": {"server": "current"}, "maxDrop": "0.05"} | changes
    return {"gate": {name: value for name, value in fields.items() if value is not None}}


STDIO = {"command": ["mcp"]}
IMAGE = f"registry.example.com/mcp@sha256:{'1' * 64}"
FOLLOW = {"deployment": "mine", "container": "server"}
ANTHROPIC = real_model()["anthropic"]
SCENARIO = {"name": "error-root-cause"}
KEY = {"name": "s", "key": "k"}
MODELS = [{"name": f"m{n}", "scripted": {"policy": "newest"}} for n in range(16)]
OWN = {"configMapRef": {"name": "c"}, "answerRef": {"name": "a"}}
ONE_OF = "exactly one of {} is needed: give one, remove the others"

SUITE_RULES = [
    Rule("anchor", "exactly one of anchor and anchorPolicy", {"anchorPolicy": "LatestDay"}),
    Rule(
        "arms",
        "more than 50 arms: split the suite",
        {"servers": [server(f"s{n}") for n in range(4)], "models": MODELS, "gate": {"enforcement": "Audit"}},
        {"servers": [server(f"s{n}") for n in range(3)], "models": MODELS, "gate": {"enforcement": "Audit"}},
    ),
    Rule(
        "cells",
        "more than 2000 cells: split the suite",
        {"models": MODELS, "replicates": 63},
        {"models": MODELS, "replicates": 62},
    ),
    Rule(
        "adaptive",
        "adaptive.maxReplicates is below replicates: raise it",
        {"adaptive": {"maxReplicates": 2}},
        {"adaptive": {"maxReplicates": 3}},
    ),
    Rule("replicates", "needs at least 3 replicates: raise them", {"replicates": 2}, {"replicates": 3}),
    Rule(
        "threshold", "needs a threshold: add minimum or maxDrop", gate(maxDrop=None), gate(maxDrop=None, minimum="0.5")
    ),
    Rule("drop", "maxDrop needs a baseline: add gate.baseline", gate(baseline=None), gate()),
    Rule(
        "baseline-server", "no server of this suite: name one of spec.servers", gate(baseline={"server": "x"}), gate()
    ),
    Rule(
        "baseline-only-server",
        "the only server: add another",
        {"servers": [server("current")]},
        {"servers": [server("current")], **gate(baseline={"lastPassed": True})},
    ),
    Rule(
        "baseline-model",
        "no model of this suite: name one of spec.models",
        {**gate(baseline={"model": "x"}), "models": MODELS[:2]},
        {**gate(baseline={"model": "m1"}), "models": MODELS[:2]},
    ),
    Rule("baseline-only-model", "the only model: add another", gate(baseline={"model": "newest"}), gate()),
    Rule(
        "baseline-choice",
        ONE_OF.format("server, model, lastPassed"),
        gate(baseline={"server": "current", "lastPassed": True}),
        gate(baseline={"lastPassed": True}),
    ),
    Rule(
        "budget",
        "needs a price on every model: add price",
        {"agent": {"maxUSD": "2"}, "models": [real_model(price=False)]},
        {"agent": {"maxUSD": "2"}, "models": [real_model()]},
    ),
    Rule(
        "self-judge",
        "also an agent's model: choose another",
        judged(anthropic=ANTHROPIC),
        judged(anthropic=ANTHROPIC, allowSelfJudge=True),
    ),
    Rule("judge", ONE_OF.format("none, anthropic"), {"judge": {}}, {"judge": {"none": True}}),
    Rule(
        "own-scenario",
        "belong together: give both or none",
        {"scenarios": [SCENARIO | {"answerRef": {"name": "a"}}]},
        {"scenarios": [SCENARIO | OWN]},
    ),
    Rule(
        "command",
        "only to it: add or remove command",
        {"agent": {"runtime": "Command"}},
        {"agent": {"runtime": "Command", "command": {"command": ["mine"]}}},
    ),
    Rule("transport", ONE_OF.format("stdio, http"), one(http={"url": "https://x.example"}), one()),
    Rule(
        "tools", ONE_OF.format("allowedTools, deniedTools"), one(deniedTools=[]), one(allowedTools=None, deniedTools=[])
    ),
    Rule(
        "headers",
        "headers need http: remove them",
        one(headers=[{"name": "X-A", "value": "b"}]),
        one(stdio=None, http={"url": "https://x.example"}, headers=[{"name": "X-A", "value": "b"}]),
    ),
    Rule(
        "provision",
        "provision needs http: remove it",
        one(provision={"command": ["p"]}),
        one(stdio=None, http={"url": "https://x.example"}, provision={"command": ["p"]}),
    ),
    Rule(
        "stdio-image",
        "imageFrom and stdio.image exclude each other: keep one",
        one(stdio=STDIO | {"image": IMAGE}, imageFrom=FOLLOW),
        one(imageFrom=FOLLOW),
    ),
    Rule(
        "http-image",
        "imageFrom and http.image exclude each other: keep one",
        one(stdio=None, http={"image": IMAGE, "port": 80}, imageFrom=FOLLOW),
        one(stdio=None, http={"port": 80}, imageFrom=FOLLOW),
    ),
    Rule(
        "http-nothing",
        "nothing to start: give http.image",
        one(stdio=None, http={"port": 80}),
        one(stdio=None, http={"port": 80, "image": IMAGE}),
    ),
    Rule(
        "http-follow",
        "has no image here: remove imageFrom",
        one(stdio=None, http={"url": "https://x.example"}, imageFrom=FOLLOW),
        one(stdio=None, http={"url": "https://x.example"}),
    ),
    Rule(
        "http-port",
        "give either url, or port",
        one(stdio=None, http={"url": "https://x.example", "port": 80}),
        one(stdio=None, http={"port": 80, "command": ["mcp"]}),
    ),
    Rule(
        "http-url",
        "url excludes image and command: keep the url",
        one(stdio=None, http={"url": "https://x.example", "image": IMAGE}),
        one(stdio=None, http={"url": "https://x.example"}),
    ),
    Rule(
        "env",
        ONE_OF.format("value, secretKeyRef, dataset"),
        one(env=[{"name": "A", "value": "b", "dataset": "host"}]),
        one(env=[{"name": "A", "dataset": "host"}]),
    ),
    Rule(
        "header",
        ONE_OF.format("value, secretKeyRef"),
        one(stdio=None, http={"url": "https://x.example"}, headers=[{"name": "X-A"}]),
        one(stdio=None, http={"url": "https://x.example"}, headers=[{"name": "X-A", "secretKeyRef": KEY}]),
    ),
    Rule("model", ONE_OF.format("anthropic, scripted"), {"models": [{"name": "m"}]}, {"models": MODELS[:1]}),
    Rule("price", "costs nothing: remove price", {"models": [MODELS[0] | {"price": PRICE}]}, {"models": MODELS[:1]}),
]
NAME_RULE = "metadata.name is longer than 50: shorten it"


def suite_body(name: str, spec: Spec) -> dict[str, Any]:
    return manifest(**spec) | {"metadata": {"name": name}}


def run_body(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": name},
        "spec": {"suiteRef": {"name": "nobody-makes-it"}} | spec,
    }


def offer(kubectl: Kubectl, namespace: str, bodies: Sequence[dict[str, Any]], *options: str) -> tuple[str, str]:
    """Offer objects to the API server, all in one request of ours and each in one of its own; return what it says."""
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)})
    done = kubectl.run(
        "create", "--dry-run=server", f"--namespace={namespace}", "--filename=-", *options, stdin=stdin, check=False
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def offered(kubectl: Kubectl, namespace: str) -> tuple[str, str]:
    """What the API server says of every good and every bad suite."""
    bodies = [suite_body(f"bad-{rule.id}", rule.bad) for rule in SUITE_RULES]
    bodies += [suite_body(f"good-{rule.id}", rule.good) for rule in SUITE_RULES]
    return offer(kubectl, namespace, [*bodies, suite_body("bad-" + "n" * 47, {}), suite_body("g" * 50, {})])


@pytest.mark.parametrize("rule", SUITE_RULES, ids=lambda rule: rule.id)
def test_a_rule_between_fields_is_kept_by_the_api_server(rule: Rule, offered: tuple[str, str]) -> None:
    """The good object is accepted; the bad one is refused in words that say what to do."""
    accepted, refused = offered
    assert f"evalsuite.proctor.dev/good-{rule.id} created" in accepted
    (told,) = [line for line in refused.splitlines() if f'"bad-{rule.id}" is invalid' in line]
    assert rule.message in told


def test_a_name_leaves_room_for_what_is_appended(offered: tuple[str, str]) -> None:
    accepted, refused = offered
    assert f"evalsuite.proctor.dev/{'g' * 50} created" in accepted
    assert NAME_RULE in refused


def messages(schema: Any) -> Iterator[str]:
    """Every rule's message, wherever it is in a schema."""
    if isinstance(schema, dict):
        yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
        for child in schema.values():
            yield from messages(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from messages(child)


def test_no_rule_is_untried() -> None:
    """Each rule of the definitions has its case here, and each says what to do."""
    tried = [rule.message for rule in SUITE_RULES] + [NAME_RULE, "is immutable: create", "added or removed: create"]
    for message in {*messages(build_suite_crd()), *messages(build_run_crd())}:
        assert any(words in message for words in tried), message
        assert ":" in message or " give " in f" {message}", message


CHANGES: dict[str, tuple[Spec, str]] = {
    "suiteRef": ({"suiteRef": {"name": "another"}}, "suiteRef is immutable: create another run"),
    "replicates": ({"replicates": 4}, "replicates is immutable: create another run"),
    "servers": ({"servers": [{"name": "s", "image": "y"}]}, "servers is immutable: create another run"),
    "models": ({"models": MODELS[1:2]}, "models is immutable: create another run"),
    "replicates-removed": ({"replicates": None}, "replicates can't be added or removed: create another run"),
    "servers-removed": ({"servers": None}, "servers can't be added or removed: create another run"),
    "models-removed": ({"models": None}, "models can't be added or removed: create another run"),
}


@pytest.fixture(scope="module")
def frozen_run(kubectl: Kubectl, namespace: str) -> Callable[[Spec], str]:
    """Offer changes of a run that has everything; what the API server says of each."""
    body = run_body("frozen", replicates=3, servers=[{"name": "s", "image": "x"}], models=MODELS[:1])
    kubectl.run("apply", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(body))

    def change(spec: Spec) -> str:
        patch = ("patch", "evalrun", "frozen", f"--namespace={namespace}", "--type=merge", "--dry-run=server")
        done = kubectl.run(*patch, f"--patch={json.dumps({'spec': spec})}", check=False)
        return done.stdout + done.stderr

    return change


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_is_fixed_once_it_is_there(name: str, frozen_run: Callable[[Spec], str]) -> None:
    """A verdict stays the verdict on what was asked for."""
    spec, message = CHANGES[name]
    assert message in frozen_run(spec)


def test_a_run_may_be_suspended_cancelled_and_kept(frozen_run: Callable[[Spec], str]) -> None:
    told = frozen_run({"suspend": True, "cancel": True, "ttlStrategy": {"secondsAfterPass": 60}})
    assert "evalrun.proctor.dev/frozen patched" in told


def test_rules_of_models_hold_in_runs_too(kubectl: Kubectl, namespace: str) -> None:
    bad = [run_body("none", models=[{"name": "m"}]), run_body("priced", models=[MODELS[0] | {"price": PRICE}])]
    _, refused = offer(kubectl, namespace, bad)
    assert ONE_OF.format("anthropic, scripted") in refused
    assert "costs nothing: remove price" in refused


def test_a_status_is_there_from_birth(kubectl: Kubectl, namespace: str) -> None:
    """Without it kstatus reads "no status" as current: a false pass."""
    bodies = [suite_body("born", {}), run_body("born")]
    for body in bodies:
        created = kubectl.run(
            "create",
            "--dry-run=server",
            "--output=json",
            f"--namespace={namespace}",
            "--filename=-",
            stdin=json.dumps(body),
        )
        assert json.loads(created.stdout)["status"] == {"observedGeneration": -1}


def test_no_field_of_a_spec_gets_a_default(kubectl: Kubectl, namespace: str) -> None:
    """GitOps would see it as drift: what comes back is what was sent."""
    body = suite_body("plain", {})
    words = ("create", "--dry-run=server", "--output=json", f"--namespace={namespace}", "--filename=-")
    assert json.loads(kubectl.run(*words, stdin=json.dumps(body)).stdout)["spec"] == body["spec"]


def test_unknown_fields_are_pruned_and_told_of(kubectl: Kubectl, namespace: str) -> None:
    """kubectl asks for strict validation by default; without it the field is gone, not kept unseen."""
    body = suite_body("typo", {})
    body["spec"]["replicatez"] = 4
    body["spec"]["gate"]["maxDropp"] = "0.1"
    _, refused = offer(kubectl, namespace, [body], "--validate=strict")
    assert "unknown field" in refused
    assert "replicatez" in refused
    assert "maxDropp" in refused
    kept, _ = offer(kubectl, namespace, [body], "--validate=ignore", "--output=json")
    (found,) = [json.loads(kept)] if json.loads(kept)["kind"] != "List" else json.loads(kept)["items"]
    assert "replicatez" not in found["spec"]
    assert "maxDropp" not in found["spec"]["gate"]


def test_short_names_and_a_category(kubectl: Kubectl, namespace: str) -> None:
    """`kubectl get evals` lists both kinds, `kubectl get all` neither."""
    kubectl.run(
        "apply",
        f"--namespace={namespace}",
        "--filename=-",
        stdin=json.dumps(suite_body("listed", {"runOnChange": True})),
    )
    kubectl.run("apply", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(run_body("listed")))
    names = ("--namespace", namespace, "--output=name")
    for word, wanted in (("evs", "evalsuite"), ("evr", "evalrun"), ("evals", "evalsuite"), ("evals", "evalrun")):
        assert f"{wanted}.proctor.dev/listed" in kubectl.run("get", word, *names).stdout
    assert "proctor.dev" not in kubectl.run("get", "all", *names).stdout


@pytest.mark.parametrize(
    ("word", "columns"),
    [
        ("evs", (["NAME", "GATE", "LAST", "RUN", "READY", "AGE"], ["SCHEDULE", "ENFORCEMENT"])),
        (
            "evr",
            (
                ["NAME", "VERDICT", "SCORE", "LOW", "HIGH", "GRADED", "CELLS", "INFRA", "AGE"],
                ["PHASE", "BASELINE", "DELTA", "COST", "DIGEST", "MESSAGE"],
            ),
        ),
    ],
)
def test_columns(word: str, columns: tuple[list[str], list[str]], kubectl: Kubectl, namespace: str) -> None:
    """What a list shows: the verdict first; the rest when it is asked for."""
    usual, wide = columns
    kubectl.run("apply", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(suite_body("shown", {})))
    kubectl.run("apply", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(run_body("shown")))
    head = kubectl.run("get", word, f"--namespace={namespace}").stdout.splitlines()[0].split()
    assert head == usual
    whole = kubectl.run("get", word, f"--namespace={namespace}", "--output=wide").stdout.splitlines()[0].split()
    assert set(whole) == {*usual, *wide}


def test_the_examples_are_accepted(kubectl: Kubectl, namespace: str) -> None:
    """The same file serves one machine and a cluster."""
    examples = sorted((CRDS.parent / "examples").glob("*.yaml"))
    assert examples
    for path in examples:
        kubectl.run("create", "--dry-run=server", f"--namespace={namespace}", f"--filename={path}", "--validate=strict")
