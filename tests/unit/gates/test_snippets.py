"""What pipelines run: workflows that GitHub takes, and commands that exist."""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
import typer.main

from proctor.cli.app import app
from support.recipes_of_gates import GATES, load_gate

WORKFLOWS = files("check_jsonschema") / "builtin_schemas" / "vendor" / "github-workflows.json"
CALL = re.compile(r"proctor (wait .*)$", re.MULTILINE)


def test_the_workflow_is_one_for_github() -> None:
    """GitHub Actions: the snippet keeps the schema of workflows."""
    (workflow,) = load_gate("github-actions.yaml")
    # YAML 1.2 as read here has no word `on` for true; GitHub reads it likewise.
    jsonschema.Draft7Validator(json.loads(WORKFLOWS.read_text("utf-8"))).validate(workflow)
    broken: dict[str, Any] = workflow | {"jobs": {"gate": workflow["jobs"]["gate"] | {"timeout": 200}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(json.loads(WORKFLOWS.read_text("utf-8"))).validate(broken)


@pytest.mark.parametrize("name", ["github-actions.yaml", "tekton.yaml"])
def test_the_commands_exist(name: str) -> None:
    """GitHub Actions, Tekton: `proctor wait` has the options that the snippets give it."""
    (call,) = CALL.findall((GATES / name).read_text("utf-8"))
    _, *words = shlex.split(call.partition(">")[0])
    command: Any = typer.main.get_command(app)
    command.commands["wait"].make_context("wait", words)
