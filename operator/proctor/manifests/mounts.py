"""What Proctor's own programs find below /etc/proctor: exactly what each of them needs, and nothing else.

suite/suite.json, children/children.json, keys/…, clickhouse/{user,password}, secrets/<name>/<key>,
scenarios/<name>/{brief.yaml,recipe.yaml,variants.yaml} and, by who may read them, answer.yaml or policies.yaml
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proctor.api.fields import SecretKeyRef
from proctor.api.suite import ScenarioRef
from proctor.core.seeding.identity import VARIANTS_FILE
from proctor.manifests.documents import CA_BUNDLE_KEY, CHILDREN_KEY, SUITE_KEY
from proctor.manifests.pods import mount, scratch_mounts, scratch_volume, variable
from proctor.manifests.scope import KubeObject, RunScope

ROOT = "/etc/proctor"
RUNTIME = "/var/run/proctor"
"""What is written: the spool, sockets."""

_SETTINGS_VOLUME = "proctor"
_RUNTIME_VOLUME = "runtime"
_SCRATCH_SIZE = "64Mi"
_READABLE_BY_GROUP = 0o440
ANSWER = "answer.yaml"
POLICIES = "policies.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one program needs.

    Attributes:
        keys: of the run's own Secret.
        secrets: of the suite's.
        scenarios: whose documents, where they are the user's own; those that ship are in the image.
        answers: which document of a scenario's Secret.
        runtime_size: of what it writes.
    """

    keys: tuple[str, ...]
    secrets: tuple[SecretKeyRef, ...] = ()
    scenarios: tuple[ScenarioRef, ...]
    answers: str
    runtime_size: str


def settings_volumes(scope: RunScope, needs: Needs) -> tuple[KubeObject, ...]:
    """Return the volumes of one of Proctor's own programs."""
    sources = [
        _config_map(scope.names.suite, "suite", (SUITE_KEY, *([CA_BUNDLE_KEY] if scope.ca_bundle else []))),
        _config_map(scope.names.children, "children", (CHILDREN_KEY,)),
        _secret(scope.names.keys, "keys", needs.keys),
        _secret(scope.clickhouse_secret, "clickhouse", ("user", "password")),
        *_suite_secrets(needs.secrets),
        *_scenarios(needs),
    ]
    return (
        {"name": _SETTINGS_VOLUME, "projected": {"defaultMode": _READABLE_BY_GROUP, "sources": sources}},
        {"name": _RUNTIME_VOLUME, "emptyDir": {"sizeLimit": needs.runtime_size}},
        scratch_volume(_SCRATCH_SIZE),
    )


def settings_mounts() -> tuple[KubeObject, ...]:
    """Return where one of Proctor's own programs sees them."""
    return (mount(_SETTINGS_VOLUME, ROOT), mount(_RUNTIME_VOLUME, RUNTIME, writable=True), *scratch_mounts())


def egress_variables(scope: RunScope) -> Iterator[KubeObject]:
    """Give the variables of a program that calls providers."""
    for name, value in scope.egress.items():
        yield variable(name, value)
    if scope.ca_bundle:
        yield variable("SSL_CERT_FILE", f"{ROOT}/suite/{CA_BUNDLE_KEY}")


def _suite_secrets(references: Iterable[SecretKeyRef]) -> Iterator[KubeObject]:
    keys: dict[str, list[str]] = {}
    for reference in references:
        found = keys.setdefault(reference.name, [])
        if reference.key not in found:
            found.append(reference.key)
    for name, wanted in sorted(keys.items()):
        yield _secret(name, f"secrets/{name}", tuple(sorted(wanted)))


def _scenarios(needs: Needs) -> Iterator[KubeObject]:
    for scenario in needs.scenarios:
        folder = f"scenarios/{scenario.name}"
        if scenario.config_map_ref is not None:
            yield _config_map(scenario.config_map_ref.name, folder, ("brief.yaml", "recipe.yaml"))
            # Where there is none, every dataset seed has the documents as they are written.
            yield _optional(_config_map(scenario.config_map_ref.name, folder, (VARIANTS_FILE,)))
        if scenario.answer_ref is not None:
            yield _secret(scenario.answer_ref.name, folder, (needs.answers,))


def _config_map(name: str, folder: str, keys: tuple[str, ...]) -> KubeObject:
    return {"configMap": {"name": name, "items": _items(folder, keys)}}


def _optional(source: KubeObject) -> KubeObject:
    return {kind: {**told, "optional": True} for kind, told in source.items()}


def _secret(name: str, folder: str, keys: tuple[str, ...]) -> KubeObject:
    return {"secret": {"name": name, "items": _items(folder, keys)}}


def _items(folder: str, keys: tuple[str, ...]) -> list[KubeObject]:
    return [{"key": key, "path": f"{folder}/{key}"} for key in keys]
