"""The two CustomResourceDefinitions."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from proctor.api.fields import Closed
from proctor.api.generation.cel import add_run_rules, add_suite_rules
from proctor.api.generation.structural import build_schema
from proctor.api.run import EvalRunSpec, EvalRunStatus
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus

GROUP = "proctor.dev"
VERSION = "v1alpha1"
HEADER = "# Written by `proctor generate` from operator/proctor/api. Do not edit.\n"

_Column = Mapping[str, Any]


def render_crds() -> Iterator[tuple[str, str]]:
    """Yield file names under crds/ and their text."""
    yield f"{GROUP}_evalsuites.yaml", dump_yaml(build_suite_crd())
    yield f"{GROUP}_evalruns.yaml", dump_yaml(build_run_crd())


def build_suite_crd() -> dict[str, Any]:
    """Return the CRD of EvalSuite."""
    spec = build_schema(EvalSuiteSpec)
    add_suite_rules(spec)
    columns = [
        _column("Gate", ".status.gate.verdict"),
        _column("Last", ".status.lastRun.verdict"),
        _column("Run", ".status.lastRun.name"),
        _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Schedule", ".spec.schedule", priority=1),
        _column("Enforcement", ".spec.gate.enforcement", priority=1),
        _column("Age", ".metadata.creationTimestamp", kind="date"),
    ]
    return _build_crd("EvalSuite", "evs", spec=spec, status=_status(EvalSuiteStatus), columns=columns)


def build_run_crd() -> dict[str, Any]:
    """Return the CRD of EvalRun."""
    spec = build_schema(EvalRunSpec)
    add_run_rules(spec)
    columns = [
        _column("Verdict", ".status.verdict"),
        _column("Score", ".status.arms[0].score.mean"),
        _column("Low", ".status.arms[0].score.low"),
        _column("High", ".status.arms[0].score.high"),
        _column("Graded", ".status.cells.graded", kind="integer"),
        _column("Cells", ".status.cells.total", kind="integer"),
        _column("Infra", ".status.cells.infraErrored", kind="integer"),
        _column("Phase", ".status.phase", priority=1),
        _column("Baseline", ".status.comparisons[0].baseline", priority=1),
        _column("Delta", ".status.comparisons[0].delta", priority=1),
        _column("Cost", ".status.arms[0].usd", priority=1),
        _column("Digest", ".status.digests.suite", priority=1),
        _column("Message", ".status.summary", priority=1),
        _column("Age", ".metadata.creationTimestamp", kind="date"),
    ]
    return _build_crd("EvalRun", "evr", spec=spec, status=_status(EvalRunStatus), columns=columns)


def dump_yaml(value: object) -> str:
    """Render plain values as YAML, in the order given, under the header of generated files."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 110
    yaml.indent(mapping=2, sequence=2, offset=0)
    yaml.representer.ignore_aliases = lambda _: True
    text = io.StringIO()
    yaml.dump(value, text)
    return HEADER + text.getvalue()


def _status(model: type[Closed]) -> dict[str, Any]:
    schema = build_schema(model)
    # A status that is there from birth: without it kstatus reads "no status" as current, a false pass.
    schema["default"] = {"observedGeneration": -1}
    return schema


def _build_crd(
    kind: str, short_name: str, *, spec: dict[str, Any], status: dict[str, Any], columns: Sequence[_Column]
) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    # A run's name gets suffixes and becomes a label, so objects' names stay below a label's 63.
    name_rule = {"rule": "size(self.metadata.name) <= 50", "message": "metadata.name is longer than 50: shorten it"}
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-validations": [name_rule],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short_name],
                "categories": ["evals"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(columns),
                }
            ],
        },
    }


def _column(name: str, path: str, *, kind: str = "string", priority: int = 0) -> _Column:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": priority} if priority else column
