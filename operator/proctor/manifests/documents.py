"""The run's ConfigMaps and its Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.core.digests import Json, canonical_json
from proctor.manifests.names import MANAGED_BY, RUN_LABEL
from proctor.manifests.scope import KubeObject, RunScope

SUITE_KEY = "suite.json"
CA_BUNDLE_KEY = "ca-bundle.pem"
CHILDREN_KEY = "children.json"
SUMMARY_KEY = "summary"
"""What the grader writes."""
FINISH_KEY = "finish"
"""What the operator writes when no more cells will end."""

RUN_KEY = "runKey"
OPERATOR_TOKEN = "operatorToken"  # noqa: S105 - the name of a key
DATASET_PASSWORD = "datasetPassword"  # noqa: S105 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSecrets:
    """What a run's programs know each other by.

    Attributes:
        run_key: what the gateway makes cell tokens with; written as hex.
        operator_token: lets the operator through the gateway's control doors.
        dataset_password: of every dataset's read-only user.
    """

    run_key: bytes = field(repr=False)
    operator_token: str = field(repr=False)
    dataset_password: str = field(repr=False)


def build_suite(scope: RunScope) -> KubeObject:
    """Return the ConfigMap with the frozen suite, which nobody can change."""
    data = {SUITE_KEY: canonical_json(scope.suite.to_file()).decode()}
    if scope.ca_bundle:
        data[CA_BUNDLE_KEY] = scope.ca_bundle
    return {**_document(scope, "ConfigMap", scope.names.suite), "immutable": True, "data": data}


def build_keys(scope: RunScope, secrets: RunSecrets) -> KubeObject:
    """Return the Secret; it is created once, and never read by who created it."""
    return {
        **_document(scope, "Secret", scope.names.keys),
        "type": "Opaque",
        "immutable": True,
        "stringData": {
            RUN_KEY: secrets.run_key.hex(),
            OPERATOR_TOKEN: secrets.operator_token,
            DATASET_PASSWORD: secrets.dataset_password,
        },
    }


def build_children(scope: RunScope, children: Mapping[str, Json]) -> KubeObject:
    """Return the ConfigMap that says where everything is, as far as it is known."""
    data = {CHILDREN_KEY: canonical_json(children).decode()}
    return {**_document(scope, "ConfigMap", scope.names.children), "data": data}


def build_grades(scope: RunScope) -> KubeObject:
    """Return the ConfigMap through which operator and grader talk; it begins empty."""
    return {**_document(scope, "ConfigMap", scope.names.grades), "data": {}}


def _document(scope: RunScope, kind: str, name: str) -> KubeObject:
    labels = {**MANAGED_BY, RUN_LABEL: scope.names.prefix}
    return {"apiVersion": "v1", "kind": kind, "metadata": scope.metadata(name, labels)}
