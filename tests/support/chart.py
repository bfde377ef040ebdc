"""The chart, and Helm built from its Go module."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from builder.chart_values import chart_values
from cluster.places import Places
from cluster.programs import build

CHART = Path(__file__).resolve().parents[2] / "helm" / "proctor"

Values = Mapping[str, Any]


def read_values() -> dict[str, Any]:
    """Return the chart's own values."""
    values: dict[str, Any] = YAML(typ="safe").load((CHART / "values.yaml").read_text("utf-8"))
    return values


def read_schema() -> dict[str, Any]:
    """Return what values are held to."""
    schema: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    return schema


@cache
def find_helm() -> Path:
    """Return the program; it is built once per version."""
    return build("helm", Places.from_environment()) / "helm"


@dataclass(frozen=True)
class Helm:
    """Helm, and how it reaches the cluster; without a kubeconfig it can only render."""

    kubeconfig: Path | None = None

    def run(self, *words: str, values: Values | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one command; values come from standard input, so they are JSON and nothing is quoted twice."""
        command = [str(find_helm()), *words]
        if self.kubeconfig is not None:
            command.append(f"--kubeconfig={self.kubeconfig}")
        if values is not None:
            command.append("--values=-")
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, input=None if values is None else json.dumps(values)
        )
        assert not check or done.returncode == 0, f"helm {' '.join(words)}: {done.stderr}"
        return done

    def render(self, values: Values | None = None, *, namespace: str = "proctor-system") -> list[dict[str, Any]]:
        """Return the objects that the chart makes of values."""
        words = ("template", "proctor", str(CHART), f"--namespace={namespace}")
        text = self.run(*words, values=values or {}).stdout
        return [each for each in YAML(typ="safe").load_all(text) if each]


def values_for(images: Mapping[str, str], namespace: str) -> dict[str, Any]:
    """Return values for a cluster that has the images by their digests, and one namespace with runs.

    Args:
        images: references by name, each `REPOSITORY@sha256:…`.
        namespace: it exists.
    """
    return {**chart_values(images), "runNamespaces": [{"name": namespace, "create": False}]}
