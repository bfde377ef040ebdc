"""What all runs of one operator share: its settings, its way to the API server, and what is around its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proctor.adapters.control import GatewayControl
from proctor.adapters.kube.client import KubeClient, Object
from proctor.adapters.kube.kinds import SERVICE
from proctor.api.suite import EvalSuiteSpec
from proctor.bootstrap.operator_settings import OperatorSettings
from proctor.clock import Clock, utc_now
from proctor.errors import Retryable
from proctor.manifests.scope import Images, Placement, RunScope

_SERVICE_NAME_PARTS = 3


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is, as a pod reaches it.

    Attributes:
        host: an IP address, or a name that only its asker can look up.
        service: the Service behind it; None for what is no Service.
    """

    host: str
    service: Object | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One operator's installation.

    Attributes:
        kube: its way to the API server.
        settings: what it was told.
        master_key: every run's key is derived from it.
        namespace: where the operator itself runs.
        ca_bundle: PEM text of certificates to trust instead of the system's; empty for those.
        dial: opens the control doors of a gateway, given its address and the operator's token.
        clock: tells the time.
        gateway_heard: told how many seconds a gateway took to say where its attempts are.
    """

    kube: KubeClient
    settings: OperatorSettings
    master_key: bytes = field(repr=False)
    namespace: str
    ca_bundle: str = ""
    dial: Callable[[str, str], GatewayControl] = GatewayControl
    clock: Clock = utc_now
    gateway_heard: Callable[[float], None] = lambda _seconds: None

    async def find(self, host: str) -> Address:
        """Return where a host is: a Service's name becomes its address, so that no pod has to look it up.

        Raises:
            Retryable: there is no such Service now.
            Terminal: the operator may not look.
        """
        parts = host.split(".")
        if len(parts) < _SERVICE_NAME_PARTS or parts[2] != "svc":
            return Address(host)
        name, namespace = parts[:2]
        service = await self.kube.get(SERVICE, namespace, name)
        if service is None:
            raise Retryable(f"looking for {host}: there is no Service {namespace}/{name}", delay=5.0)
        return Address(service["spec"]["clusterIP"], service)

    def scope(self, namespace: str, name: str, uid: str, suite: EvalSuiteSpec) -> RunScope:
        """Return what all children of a run share."""
        settings = self.settings
        defaults = settings.sandbox_defaults
        return RunScope(
            name=name,
            namespace=namespace,
            uid=uid,
            suite=suite,
            images=Images(
                operator=settings.images.operator,
                sandbox=settings.images.sandbox,
                claude_code=settings.images.claude_code or "",
                servers=frozenset(settings.server_images.values()),
            ),
            clickhouse_secret=settings.clickhouse.secret_name,
            placement=Placement(
                runtime_class=defaults.runtime_class_name,
                node_selector=defaults.node_selector,
                tolerations=tuple(toleration.to_file() for toleration in defaults.tolerations),
                pull_secrets=settings.image_pull_secrets,
                user_namespace=defaults.user_namespace,
            ),
            sandbox_resources=defaults.resources,
            egress=self._egress(),
            ca_bundle=self.ca_bundle,
        )

    def _egress(self) -> dict[str, str]:
        proxy = self.settings.proxy
        if proxy.https is None:
            return {}
        return {"HTTPS_PROXY": proxy.https, "NO_PROXY": proxy.no_proxy}
