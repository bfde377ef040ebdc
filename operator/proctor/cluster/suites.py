"""The suite of a run: frozen once into a ConfigMap that nobody can change, and read from there ever after."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from proctor.adapters.kube.client import Object
from proctor.adapters.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVAL_SUITE, POD
from proctor.api.run import EvalRunSpec
from proctor.api.suite import EvalSuiteSpec
from proctor.api.suite_status import EvalSuiteStatus
from proctor.cluster.installation import Installation
from proctor.cluster.preflight import NotYet, check_room
from proctor.errors import InvalidInput, Retryable
from proctor.manifests.documents import SUITE_KEY, build_suite
from proctor.manifests.names import RunNames
from proctor.reconcile.suites_freezing import FreezeSources, SuiteRefused, freeze_suite
from proctor.reconcile.suites_plan import GENERATION_ANNOTATION

_OWN_SECRETS = frozenset({"proctor-master", "proctor-web"})
_RUN_KEYS = re.compile(r"pr-[0-9a-f]{10}-keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBody:
    """One EvalRun, as the API server has it.

    Attributes:
        metadata: as it is.
        spec: parsed.
    """

    metadata: Mapping[str, Any]
    spec: EvalRunSpec

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.metadata["namespace"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def uid(self) -> str:
        """Of this run, and of none after it."""
        return str(self.metadata["uid"])

    def __str__(self) -> str:
        return f"EvalRun {self.namespace}/{self.name}"


async def read_frozen(installation: Installation, run: RunBody) -> EvalSuiteSpec | None:
    """Return the suite that a run is fixed to; None if it isn't yet.

    Raises:
        Retryable: not now.
        InvalidInput: somebody else's ConfigMap has its name.
    """
    name = RunNames.of(run.uid).suite
    body = await installation.kube.get(CONFIG_MAP, run.namespace, name)
    if body is None:
        return None
    try:
        return EvalSuiteSpec.model_validate_json(body["data"][SUITE_KEY])
    except (ValidationError, KeyError) as e:
        raise InvalidInput(
            f"ConfigMap {run.namespace}/{name} is no frozen suite: delete the run and make it anew"
        ) from e


async def freeze(installation: Installation, run: RunBody) -> EvalSuiteSpec:
    """Fix a run to its suite as it is now.

    Raises:
        NotYet: there is no such suite, or others need the room that it needs.
        Retryable: not now.
        SuiteRefused: the run can't be made of the suite.
        Terminal: never.
        InvalidInput: the cluster refuses what was frozen.
    """
    name = run.spec.suite_ref.name
    suite = await installation.kube.get(EVAL_SUITE, run.namespace, name)
    if suite is None:
        raise NotYet("SuiteNotFound", f"{run} waits for EvalSuite {name}")
    asked = (run.metadata.get("annotations") or {}).get(GENERATION_ANNOTATION, "")
    if asked.isdecimal() and suite["metadata"].get("generation", 0) < int(asked):
        raise Retryable(f"{run} is of a newer generation of EvalSuite {name} than was read")
    spec = _parse_suite(suite, name)
    status = EvalSuiteStatus.model_validate(suite.get("status") or {})
    frozen = freeze_suite(
        spec,
        run.spec,
        FreezeSources(
            now=installation.clock(),
            followed=await follow_images(installation, run.namespace, spec),
            shipped=installation.settings.server_images,
            last_passed={} if status.last_passed is None else status.last_passed.images,
        ),
    )
    refuse_own_secrets(frozen, installation.settings.clickhouse.secret_name)
    scope = installation.scope(run.namespace, run.name, run.uid, frozen)
    await check_room(installation, scope)
    await installation.kube.create(build_suite(scope))
    return frozen


def refuse_own_secrets(suite: EvalSuiteSpec, store_secret: str) -> None:
    """Refuse a suite that would have Proctor's own Secrets sent to a server or a model of its choice (S17).

    Raises:
        SuiteRefused: it names one.
    """
    for name in _secret_names(suite.to_file()):
        if name in {store_secret, *_OWN_SECRETS} or _RUN_KEYS.fullmatch(name):
            raise SuiteRefused("SecretRefused", f"Secret {name} is Proctor's own: name one of yours")


def _secret_names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"secretKeyRef", "answerRef"}:
                yield str(inner["name"])
            yield from _secret_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_names(inner)


async def follow_images(installation: Installation, namespace: str, spec: EvalSuiteSpec) -> dict[str, str]:
    """Return the images that followed Deployments run, by server; one that rolls out, or isn't there, is left out.

    Raises:
        Retryable: not now.
    """
    followed = {}
    for server in spec.servers:
        if server.image_from is None:
            continue
        deployment = await installation.kube.get(DEPLOYMENT, namespace, server.image_from.deployment)
        labels = (((deployment or {}).get("spec") or {}).get("selector") or {}).get("matchLabels")
        if labels:
            pods = await installation.kube.list(POD, namespace, labels=labels)
            images = {image for pod in pods for image in running_images(pod, server.image_from.container)}
            if len(images) == 1:
                followed[server.name] = images.pop()
    return followed


def running_images(pod: Object, container: str) -> list[str]:
    """Return the image of a container of a ready pod, by its digest."""
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp") or status.get("phase") != "Running":
        return []
    return [
        item["imageID"].removeprefix("docker-pullable://")
        for item in status.get("containerStatuses") or ()
        if item["name"] == container and item.get("ready") and "@sha256:" in item.get("imageID", "")
    ]


def _parse_suite(suite: Object, name: str) -> EvalSuiteSpec:
    try:
        return EvalSuiteSpec.model_validate(suite["spec"], by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise SuiteRefused("InvalidSuite", f"EvalSuite {name}: {field}: {first['msg']}") from error
