"""The kinds of objects that Proctor reads or writes, and where the API server has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    Attributes:
        name: as in an object's `kind`.
        api_version: as in an object's `apiVersion`.
        plural: as in a path.
    """

    name: str
    api_version: str
    plural: str

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """Return the path of a collection, or of one object.

        Args:
            namespace: None for all namespaces.
            name: None for the collection.
        """
        root = "/api" if "/" not in self.api_version else "/apis"
        within = "" if namespace is None else f"/namespaces/{namespace}"
        tail = "" if name is None else f"/{name}"
        return f"{root}/{self.api_version}{within}/{self.plural}{tail}"

    def __str__(self) -> str:
        return self.name


EVAL_SUITE = Kind("EvalSuite", "proctor.dev/v1alpha1", "evalsuites")
EVAL_RUN = Kind("EvalRun", "proctor.dev/v1alpha1", "evalruns")
POD = Kind("Pod", "v1", "pods")
CONFIG_MAP = Kind("ConfigMap", "v1", "configmaps")
SECRET = Kind("Secret", "v1", "secrets")
SERVICE = Kind("Service", "v1", "services")
SERVICE_ACCOUNT = Kind("ServiceAccount", "v1", "serviceaccounts")
EVENT = Kind("Event", "v1", "events")
DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments")
JOB = Kind("Job", "batch/v1", "jobs")
NETWORK_POLICY = Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies")
RESOURCE_QUOTA = Kind("ResourceQuota", "v1", "resourcequotas")
ENDPOINT_SLICE = Kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices")
ROLE = Kind("Role", "rbac.authorization.k8s.io/v1", "roles")
ROLE_BINDING = Kind("RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings")

_ALL = (
    EVAL_SUITE, EVAL_RUN, POD, CONFIG_MAP, SECRET, SERVICE, SERVICE_ACCOUNT, EVENT, DEPLOYMENT, JOB, NETWORK_POLICY,
    RESOURCE_QUOTA, ENDPOINT_SLICE, ROLE, ROLE_BINDING,
)  # fmt: skip
KINDS = {kind.name: kind for kind in _ALL}
"""By name."""
