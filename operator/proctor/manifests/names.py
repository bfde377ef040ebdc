"""Names and labels of a run's children: derived from its uid alone, so that they name nothing that an agent may use."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

RUN_LABEL = "proctor.dev/run"
ROLE_LABEL = "proctor.dev/role"
ATTEMPT_LABEL = "proctor.dev/attempt"
PART_LABEL = "proctor.dev/part"
"""Which of several children of one role this is: `<server>-<scenario>`, by their indices in the suite."""

STOP_ANNOTATION = "proctor.dev/stop-cause"
"""Why a pod was stopped, put on it before it is deleted."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "proctor"}

_DIGITS = 10


class Role(StrEnum):
    """What a pod is for; network policies select by it."""

    SANDBOX = "sandbox"
    GATEWAY = "gateway"
    TOOLBOX = "toolbox"
    PROVISION = "provision"
    SEED = "seed"
    GRADE = "grade"


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of one run's children.

    Attributes:
        prefix: what all of them begin with.
    """

    prefix: str

    @classmethod
    def of(cls, run_uid: str) -> RunNames:
        """Return the names for the EvalRun with a uid."""
        return cls("pr-" + hashlib.sha256(run_uid.encode()).hexdigest()[:_DIGITS])

    @property
    def suite(self) -> str:
        """ConfigMap with the frozen suite."""
        return f"{self.prefix}-suite"

    @property
    def keys(self) -> str:
        """Secret with what the run's own programs know each other by."""
        return f"{self.prefix}-keys"

    @property
    def children(self) -> str:
        """ConfigMap that says where everything is."""
        return f"{self.prefix}-children"

    @property
    def grades(self) -> str:
        """ConfigMap through which operator and grader talk."""
        return f"{self.prefix}-grades"

    @property
    def gateway(self) -> str:
        """Deployment and Service."""
        return f"{self.prefix}-gateway"

    @property
    def grade(self) -> str:
        """Job, ServiceAccount, Role and RoleBinding."""
        return f"{self.prefix}-grade"

    @property
    def canary(self) -> str:
        """Pod."""
        return f"{self.prefix}-canary"

    @property
    def account(self) -> str:
        """ServiceAccount of all pods but the grader's: it may do nothing."""
        return f"{self.prefix}-none"

    def seed(self, scenario: int) -> str:
        """Job that seeds the dataset of a scenario, by its index in the suite."""
        return f"{self.prefix}-seed-{scenario}"

    def toolbox(self, server: int, scenario: int) -> str:
        """Deployment and Service of a server for a scenario's dataset, by their indices in the suite."""
        return f"{self.prefix}-tb-{server}-{scenario}"

    def provision(self, server: int, scenario: int) -> str:
        """Job and Service of the hook that prepares a server for a dataset, by their indices in the suite."""
        return f"{self.prefix}-pv-{server}-{scenario}"

    def attempt(self, opaque_id: str) -> str:
        """Sandbox pod of an attempt."""
        return f"{self.prefix}-a-{opaque_id}"

    def policy(self, role: Role) -> str:
        """NetworkPolicy of a role."""
        return f"{self.prefix}-{role}"

    def selector(self, role: Role) -> dict[str, str]:
        """Return the labels that select all pods of a role in this run."""
        return {RUN_LABEL: self.prefix, ROLE_LABEL: role.value}

    def labels(self, role: Role) -> dict[str, str]:
        """Return the labels of a child that is the only one of its role."""
        return {**MANAGED_BY, **self.selector(role)}

    def part_labels(self, role: Role, server: int, scenario: int) -> dict[str, str]:
        """Return the labels of a child that serves one server for one dataset."""
        return {**self.labels(role), PART_LABEL: f"{server}-{scenario}"}

    def attempt_labels(self, opaque_id: str) -> dict[str, str]:
        """Return the labels of a sandbox pod."""
        return {**self.labels(Role.SANDBOX), ATTEMPT_LABEL: opaque_id}
