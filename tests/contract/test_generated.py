"""CRDs and the reference are current, and CRDs are what the API server asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.api.documents import parse_document
from proctor.api.generation.crds import build_run_crd, build_suite_crd
from proctor.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
CRDS = {"EvalSuite": build_suite_crd(), "EvalRun": build_run_crd()}


def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _walk(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _walk(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _walk(schema[key], f"{path}[]")


def _below(kind: str, part: str) -> list[tuple[str, Mapping[str, Any]]]:
    return list(_walk(_schema(kind)["properties"][part], part))


def test_generated_files_are_current() -> None:
    """Manifest: `proctor generate --check` fails on a difference."""
    outcome = CliRunner().invoke(app, ["generate", "--check", "--root", str(ROOT)])
    assert outcome.exit_code == 0, outcome.output


def test_a_difference_is_shown_and_mended(tmp_path: Path) -> None:
    """Manifest: the check prints the difference; generating mends it and removes what nobody writes any more."""
    runner = CliRunner()
    generate = ["generate", "--root", str(tmp_path)]
    assert runner.invoke(app, generate).exit_code == 0
    crd = tmp_path / "crds" / "proctor.dev_evalruns.yaml"
    crd.write_text(crd.read_text().replace("evr", "xyz"))
    (tmp_path / "docs" / "reference" / "old.md").touch()
    outcome = runner.invoke(app, [*generate, "--check"])
    assert outcome.exit_code == 1
    assert "- xyz" in outcome.output
    assert "old.md: no longer generated" in outcome.output
    assert runner.invoke(app, generate).exit_code == 0
    assert runner.invoke(app, [*generate, "--check"]).exit_code == 0


@pytest.mark.parametrize("kind", CRDS)
@pytest.mark.parametrize("part", ["spec", "status"])
def test_schemas_are_structural_closed_and_bounded(kind: str, part: str) -> None:
    """API conventions: no floats, no preserved unknowns, a bound on every list, map and text."""
    for path, node in _below(kind, part):
        kind_of_node = node["type"]
        assert kind_of_node in {"object", "array", "string", "integer", "boolean"}, path
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        if kind_of_node == "object":
            assert "properties" in node or "maxProperties" in node, path
        if kind_of_node == "array":
            assert "maxItems" in node, path
            assert "x-kubernetes-list-type" in node, path
        if kind_of_node == "string":
            assert "enum" in node or "maxLength" in node, path


@pytest.mark.parametrize("kind", CRDS)
def test_spec_has_no_defaults_and_status_is_there_from_birth(kind: str) -> None:
    """API conventions: defaults would be drift to GitOps; without a default status kstatus sees a false pass."""
    assert [path for path, node in _below(kind, "spec") if "default" in node] == []
    assert _schema(kind)["properties"]["status"]["default"] == {"observedGeneration": -1}


def test_all_of_a_runs_spec_is_immutable_but_three_fields() -> None:
    """API conventions: rules on each immutable field, and on the presence of the optional ones."""
    spec = _schema("EvalRun")["properties"]["spec"]
    frozen = {
        name
        for name, node in spec["properties"].items()
        if any(rule["rule"] == "self == oldSelf" for rule in node.get("x-kubernetes-validations", []))
    }
    assert set(spec["properties"]) - frozen == {"suspend", "cancel", "ttlStrategy"}
    told = {rule["rule"] for rule in spec["x-kubernetes-validations"]}
    assert told == {f"has(self.{name}) == has(oldSelf.{name})" for name in frozen - {"suiteRef"}}


def test_names_and_columns() -> None:
    """M-D1: short names, one category, verdict and score in `kubectl get`."""
    names = {kind: crd["spec"]["names"] for kind, crd in CRDS.items()}
    assert names["EvalSuite"]["shortNames"] == ["evs"]
    assert names["EvalRun"]["shortNames"] == ["evr"]
    assert all(each["categories"] == ["evals"] for each in names.values())
    columns = CRDS["EvalRun"]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert columns[0] == {"name": "Verdict", "type": "string", "jsonPath": ".status.verdict"}


@pytest.mark.parametrize("kind", CRDS)
def test_lists_of_named_things_merge_by_name(kind: str) -> None:
    """API conventions: listType map, keyed by what tells the items apart."""
    for path, node in [*_below(kind, "spec"), *_below(kind, "status")]:
        if node.get("x-kubernetes-list-type") == "map":
            for key in node["x-kubernetes-list-map-keys"]:
                assert key in node["items"]["required"], path


def test_every_file_under_crds_is_one_yaml_document() -> None:
    """Contract: what is written can be read."""
    for path in (ROOT / "crds").glob("*.yaml"):
        assert parse_document(path.read_text()).value["kind"] == "CustomResourceDefinition"
