"""The gateway: the only door of a run's sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.api.fields import SecretKeyRef
from proctor.api.server import EnvVar, Header
from proctor.api.suite import EvalSuiteSpec
from proctor.manifests.documents import DATASET_PASSWORD, OPERATOR_TOKEN, RUN_KEY
from proctor.manifests.mounts import POLICIES, ROOT, Needs, egress_variables, settings_mounts, settings_volumes
from proctor.manifests.names import Role
from proctor.manifests.pods import SCRATCH_ENVIRONMENT, Container, Pod, variables
from proctor.manifests.scope import Amounts, KubeObject, RunScope
from proctor.manifests.services import PYTHON, build_service, http_probe, one_replica

GATEWAY_PORT = 8080
HEALTH_PATH = "/healthz"

_AMOUNTS = Amounts(cpu="2", memory="1Gi", storage="1536Mi", cpu_set_aside="100m")
_SPOOL_SIZE = "1Gi"
_GRACE_SECONDS = 30
"""To bring what is spooled to the store."""


def build_gateway(scope: RunScope) -> tuple[KubeObject, KubeObject]:
    """Return the gateway's Deployment and Service.

    One replica at most, also while it is replaced: who has an attempt's connection keeps its record.
    """
    suite = scope.suite
    needs = Needs(
        keys=(RUN_KEY, OPERATOR_TOKEN, DATASET_PASSWORD),
        secrets=tuple(_secrets(suite)),
        scenarios=suite.scenarios,
        answers=POLICIES,
        runtime_size=_SPOOL_SIZE,
    )
    container = Container(
        name="gateway",
        image=scope.images.operator,
        amounts=_AMOUNTS,
        command=(*PYTHON, "-m", "proctor.gateway", "--mounted", ROOT),
        env=(*variables(SCRATCH_ENVIRONMENT), *egress_variables(scope)),
        mounts=settings_mounts(),
        port=GATEWAY_PORT,
        startup=http_probe(HEALTH_PATH, GATEWAY_PORT, period=1, failures=120),
        readiness=http_probe(HEALTH_PATH, GATEWAY_PORT, period=5, failures=3),
    )
    pod = Pod(
        containers=(container,),
        volumes=settings_volumes(scope, needs),
        account=scope.names.account,
        placement=scope.placement,
        deadline_seconds=None,
        dns=calls_providers(suite) or calls_elsewhere(suite),
        grace_seconds=_GRACE_SECONDS,
    )
    metadata = scope.metadata(scope.names.gateway, scope.names.labels(Role.GATEWAY))
    selector = scope.names.selector(Role.GATEWAY)
    return one_replica(metadata, selector, pod), build_service(metadata, selector, GATEWAY_PORT)


def calls_providers(suite: EvalSuiteSpec) -> bool:
    """Whether agents run on a provider's model."""
    return any(model.anthropic is not None for model in suite.models)


def calls_elsewhere(suite: EvalSuiteSpec) -> bool:
    """Whether a server under test runs elsewhere."""
    return any(server.http is not None and server.http.url is not None for server in suite.servers)


def _secrets(suite: EvalSuiteSpec) -> Iterator[SecretKeyRef]:
    """Give what it needs: keys and headers to send, and what servers know, to take it out of what they say."""
    for model in suite.models:
        if model.anthropic is not None:
            yield model.anthropic.secret_key_ref
    for server in suite.servers:
        items: tuple[EnvVar | Header, ...] = (*server.env, *server.headers)
        for item in items:
            if item.secret_key_ref is not None:
                yield item.secret_key_ref
