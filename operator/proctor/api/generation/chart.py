"""The CustomResourceDefinitions as templates of the chart: Helm never upgrades what is under a chart's crds/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.api.generation.crds import build_run_crd, build_suite_crd, dump_yaml

_FOLDER = "helm/proctor/templates/crds"


def render_chart_crds() -> Iterator[tuple[str, str]]:
    """Yield paths below the repository's root and their text."""
    for crd in (build_suite_crd(), build_run_crd()):
        yield f"{_FOLDER}/{crd['spec']['names']['plural']}.yaml", _render_template(crd)


def _render_template(crd: dict[str, Any]) -> str:
    # Removing the release must not remove every suite and run of the cluster.
    kept = {**crd, "metadata": {**crd["metadata"], "annotations": {"helm.sh/resource-policy": "keep"}}}
    text = dump_yaml(kept)
    if "{{" in text:
        raise ValueError(f"{crd['metadata']['name']}: Helm would expand a text of it")
    return f"{{{{- if .Values.crds.install }}}}\n{text}{{{{- end }}}}\n"
