"""Makers of manifests: a small valid suite, and what a case changes about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proctor.api.suite import EvalSuite


def server(name: str = "current", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "stdio": {"command": ["mcp"]},
        "allowedTools": ["run_query"],
        "sqlTool": {"name": "run_query", "argument": "query"},
    } | changes


def manifest(**spec: Any) -> dict[str, Any]:
    """A valid manifest; `spec` replaces fields, and None removes one."""
    fields = {
        "scenarios": [{"name": "error-root-cause", "volume": "0.02", "seed": 42}],
        "anchor": "2026-11-30T12:00:00Z",
        "servers": [server("current"), server("candidate")],
        "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
        "replicates": 3,
        "judge": {"none": True},
        "gate": {"enforcement": "Enforce", "baseline": {"server": "current"}, "maxDrop": "0.05"},
    } | spec
    return {
        "apiVersion": "proctor.dev/v1alpha1",
        "kind": "EvalSuite",
        "metadata": {"name": "made"},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def suite(**spec: Any) -> EvalSuite:
    return EvalSuite.model_validate(manifest(**spec))


def text(document: Mapping[str, Any]) -> str:
    """JSON is YAML; one field per line, so that lines can be told apart."""
    return json.dumps(document, indent=1)


PRICE = {"inputPerMTok": "5", "outputPerMTok": "25", "cacheReadPerMTok": "0.5", "cacheWritePerMTok": "6.25"}


def real_model(name: str = "opus", model: str = "claude-x", *, price: bool = True) -> dict[str, Any]:
    ref = {"name": "anthropic", "key": "api-key"}
    found: dict[str, Any] = {"name": name, "anthropic": {"model": model, "secretKeyRef": ref}}
    return found | ({"price": PRICE} if price else {})
