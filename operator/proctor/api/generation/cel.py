"""Rules between fields as CEL, so that the API server refuses what `proctor validate` refuses.

What CEL can't say cheaply (a budget without a price, a name given twice in a list that isn't a map) the operator checks
when it accepts a suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.api.fields import MAX_ARMS, MAX_CELLS
from proctor.api.rules import LEAST_REPLICATES_TO_ENFORCE

DEFAULT_REPLICATES = 5
MUTABLE_IN_RUN = frozenset({"suspend", "cancel", "ttlStrategy"})

_REPLICATES = f"(has(self.replicates) ? self.replicates : {DEFAULT_REPLICATES})"


def add_suite_rules(spec: dict[str, Any]) -> None:
    """Add the rules of an EvalSuite's spec to its schema."""
    fields = spec["properties"]
    spec["x-kubernetes-validations"] = list(_suite_rules())
    add_server_rules(fields["servers"]["items"])
    add_model_rules(fields["models"]["items"])
    _add(fields["judge"], _exactly_one("none", "anthropic"))
    _add(fields["gate"]["properties"]["baseline"], _exactly_one("server", "model", "lastPassed"))
    scenario = fields["scenarios"]["items"]
    rule = "has(self.configMapRef) == has(self.answerRef)"
    _add(scenario, _rule(rule, "configMapRef and answerRef belong together: give both or none"))
    agent = fields["agent"]
    rule = "(has(self.runtime) && self.runtime == 'Command') == has(self.command)"
    _add(agent, _rule(rule, "command belongs to runtime Command, and only to it: add or remove command"))


def add_server_rules(server: dict[str, Any]) -> None:
    """Add the rules of one server to its schema."""
    fields = server["properties"]
    _add(server, _exactly_one("stdio", "http"))
    _add(server, _exactly_one("allowedTools", "deniedTools"))
    _add(server, _rule("!has(self.headers) || has(self.http)", "headers need http: remove them, or use http"))
    _add(server, _rule("!has(self.provision) || has(self.http)", "provision needs http: remove it, or use http"))
    # A server without any image is let in: the operator may know one for its program.
    for kind in ("stdio", "http"):
        rule = f"!has(self.imageFrom) || !has(self.{kind}) || !has(self.{kind}.image)"
        _add(server, _rule(rule, f"imageFrom and {kind}.image exclude each other: keep one"))
    started = "has(self.http.image) || has(self.http.command) || has(self.imageFrom)"
    text = "nothing to start: give http.image, imageFrom or http.command, or http.url"
    _add(server, _rule(f"!has(self.http) || has(self.http.url) || {started}", text))
    text = "a server at a url has no image here: remove imageFrom"
    _add(server, _rule("!has(self.imageFrom) || !has(self.http) || !has(self.http.url)", text))
    text = "give either url, or port with image or command"
    _add(fields["http"], _rule("has(self.url) != has(self.port)", text))
    text = "url excludes image and command: keep the url, or remove it"
    _add(fields["http"], _rule("!has(self.url) || (!has(self.image) && !has(self.command))", text))
    _add(fields["env"]["items"], _exactly_one("value", "secretKeyRef", "dataset"))
    _add(fields["headers"]["items"], _exactly_one("value", "secretKeyRef"))


def add_model_rules(model: dict[str, Any]) -> None:
    """Add the rules of one model to its schema."""
    _add(model, _exactly_one("anthropic", "scripted"))
    _add(model, _rule("!has(self.price) || has(self.anthropic)", "a scripted model costs nothing: remove price"))


def add_run_rules(spec: dict[str, Any]) -> None:
    """Make all of an EvalRun's spec immutable but what people may change while it runs."""
    fields = spec["properties"]
    frozen = [name for name in fields if name not in MUTABLE_IN_RUN]
    for name in frozen:
        _add(fields[name], _rule("self == oldSelf", f"{name} is immutable: create another run"))
        if name not in spec.get("required", []):
            # A rule on the field itself is not asked when the field is added or removed.
            _add(
                spec,
                _rule(
                    f"has(self.{name}) == has(oldSelf.{name})", f"{name} can't be added or removed: create another run"
                ),
            )
    if "models" in fields:
        add_model_rules(fields["models"]["items"])


def _suite_rules() -> Iterator[dict[str, str]]:
    yield _rule(
        "has(self.anchor) != has(self.anchorPolicy)",
        "exactly one of anchor and anchorPolicy is needed: add or remove one",
    )
    yield _rule(f"size(self.servers) * size(self.models) <= {MAX_ARMS}", f"more than {MAX_ARMS} arms: split the suite")
    most = f"(has(self.adaptive) ? self.adaptive.maxReplicates : {_REPLICATES})"
    total = f"size(self.servers) * size(self.models) * size(self.scenarios) * {most}"
    yield _rule(f"{total} <= {MAX_CELLS}", f"more than {MAX_CELLS} cells: split the suite")
    rule = f"!has(self.adaptive) || self.adaptive.maxReplicates >= {_REPLICATES}"
    yield _rule(rule, "adaptive.maxReplicates is below replicates: raise it, or remove adaptive")
    enforced = "self.gate.enforcement != 'Enforce'"
    least = LEAST_REPLICATES_TO_ENFORCE
    rule = f"{enforced} || {_REPLICATES} >= {least}"
    yield _rule(rule, f"an enforced gate needs at least {least} replicates: raise them, or use enforcement Audit")
    rule = f"{enforced} || has(self.gate.minimum) || has(self.gate.maxDrop)"
    yield _rule(rule, "an enforced gate needs a threshold: add minimum or maxDrop, or use enforcement Audit")
    yield _rule(
        "!has(self.gate.maxDrop) || has(self.gate.baseline)",
        "maxDrop needs a baseline: add gate.baseline, or use minimum alone",
    )
    yield from _baseline_rules("server", "servers")
    yield from _baseline_rules("model", "models")
    budget = "!has(self.agent) || !has(self.agent.maxUSD)"
    priced = "self.models.all(m, has(m.scripted) || has(m.price))"
    yield _rule(f"{budget} || {priced}", "agent.maxUSD needs a price on every model: add price, or remove maxUSD")
    allowed = "!has(self.judge.anthropic) || (has(self.judge.allowSelfJudge) && self.judge.allowSelfJudge)"
    differs = "self.models.all(m, !has(m.anthropic) || m.anthropic.model != self.judge.anthropic.model)"
    yield _rule(
        f"{allowed} || {differs}", "the judge is also an agent's model: choose another, or set judge.allowSelfJudge"
    )


def _baseline_rules(side: str, field: str) -> Iterator[dict[str, str]]:
    given = f"!has(self.gate.baseline) || !has(self.gate.baseline.{side})"
    known = f"self.{field}.exists(x, x.name == self.gate.baseline.{side})"
    yield _rule(f"{given} || {known}", f"the baseline is no {side} of this suite: name one of spec.{field}")
    yield _rule(
        f"{given} || size(self.{field}) > 1",
        f"the baseline is the only {side}: add another to compare with it, or remove the baseline",
    )


def _exactly_one(*fields: str) -> dict[str, str]:
    count = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    return _rule(f"{count} == 1", f"exactly one of {', '.join(fields)} is needed: give one, remove the others")


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


def _add(schema: dict[str, Any], rule: dict[str, str]) -> None:
    schema.setdefault("x-kubernetes-validations", []).append(rule)
