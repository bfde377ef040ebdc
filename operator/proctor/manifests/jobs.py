"""Seeding and grading: Jobs of Proctor's own programs."""

from __future__ import annotations

from proctor.manifests.documents import DATASET_PASSWORD
from proctor.manifests.mounts import ANSWER, ROOT, Needs, egress_variables, settings_mounts, settings_volumes
from proctor.manifests.names import MANAGED_BY, Role
from proctor.manifests.pods import SCRATCH_ENVIRONMENT, Container, Pod, mount, variables
from proctor.manifests.scope import Amounts, KubeObject, RunScope
from proctor.manifests.services import PYTHON

_FINAL_CODES = (1, 64)
"""Failed for good, and configuration refused; anything else is tried again."""

_TRIES = 4
_SEED_AMOUNTS = Amounts(cpu="1", memory="512Mi", storage="256Mi", cpu_set_aside="100m")
_GRADE_AMOUNTS = Amounts(cpu="2", memory="1Gi", storage="512Mi", cpu_set_aside="100m")
_TOKEN_SECONDS = 3600
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def build_seed(scope: RunScope, scenario: int, arguments: tuple[str, ...], *, workers: int = 1) -> KubeObject:
    """Return the Job that seeds the dataset of a scenario.

    Args:
        scope: the run.
        scenario: its index in the suite.
        arguments: of `proctor.jobs.seed`, beside where its settings are and which scenario it is.
        workers: how many pods share the work, each a part of the rows.
    """
    reference = scope.suite.scenarios[scenario]
    needs = Needs(keys=(DATASET_PASSWORD,), scenarios=(reference,), answers=ANSWER, runtime_size="64Mi")
    if workers > 1:
        arguments = (*arguments, "--parts", str(workers))
    container = Container(
        name="seed",
        image=scope.images.operator,
        amounts=_SEED_AMOUNTS,
        command=(*PYTHON, "-m", "proctor.jobs.seed", "--mounted", ROOT, "--scenario", reference.name, *arguments),
        env=variables(SCRATCH_ENVIRONMENT),
        mounts=settings_mounts(),
    )
    pod = Pod(
        containers=(container,),
        volumes=settings_volumes(scope, needs),
        account=scope.names.account,
        placement=scope.placement,
        deadline_seconds=scope.suite.limits.active_deadline_seconds,
    )
    metadata = scope.metadata(scope.names.seed(scenario), scope.names.labels(Role.SEED))
    job = build_job(metadata, pod)
    if workers > 1:
        job["spec"] |= {"completionMode": "Indexed", "completions": workers, "parallelism": workers}
    return job


def build_grade(scope: RunScope) -> tuple[KubeObject, ...]:
    """Return the grader: its ServiceAccount, Role, RoleBinding and Job, in the order in which they are created.

    It may read and change one ConfigMap, through a token that ends by itself.
    """
    names = scope.names
    judge = scope.suite.judge.anthropic
    needs = Needs(
        keys=(DATASET_PASSWORD,),
        secrets=(judge.secret_key_ref,) if judge is not None else (),
        scenarios=scope.suite.scenarios,
        answers=ANSWER,
        runtime_size="256Mi",
    )
    container = Container(
        name="grade",
        image=scope.images.operator,
        amounts=_GRADE_AMOUNTS,
        command=(*PYTHON, "-m", "proctor.jobs.grade", "--mounted", ROOT),
        env=(*variables(SCRATCH_ENVIRONMENT), *egress_variables(scope)),
        mounts=(*settings_mounts(), mount("account", _ACCOUNT)),
    )
    pod = Pod(
        containers=(container,),
        volumes=(*settings_volumes(scope, needs), _account_volume()),
        account=names.grade,
        placement=scope.placement,
        deadline_seconds=scope.suite.limits.active_deadline_seconds,
        dns=judge is not None,
    )
    job = build_job(scope.metadata(names.grade, names.labels(Role.GRADE)), pod)
    return (*_grader_account(scope), job)


def build_account(scope: RunScope) -> KubeObject:
    """Return the ServiceAccount of all other pods: it may do nothing, and no token of it is mounted."""
    return _account(scope, scope.names.account)


def build_job(metadata: KubeObject, pod: Pod) -> KubeObject:
    """Return a Job of one pod: tried again when it was disturbed, not when it says that nothing can help."""
    main = pod.containers[0].name
    fatal = {"containerName": main, "operator": "In", "values": list(_FINAL_CODES)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": _TRIES - 1,
            "activeDeadlineSeconds": pod.deadline_seconds,
            "podFailurePolicy": {
                "rules": [
                    {"action": "FailJob", "onExitCodes": fatal},
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                ]
            },
            "template": {"metadata": {"labels": dict(metadata["labels"])}, "spec": pod.to_spec()},
        },
    }


def _grader_account(scope: RunScope) -> tuple[KubeObject, ...]:
    name, labels = scope.names.grade, scope.names.labels(Role.GRADE)
    group = "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [scope.names.grades],
        "verbs": ["get", "patch"],
    }
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": scope.metadata(name, labels),
        "rules": [rule],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": scope.metadata(name, labels),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": scope.namespace}],
    }
    return _account(scope, name), role, binding


def _account(scope: RunScope, name: str) -> KubeObject:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": scope.metadata(name, {**MANAGED_BY, "proctor.dev/run": scope.names.prefix}),
        "automountServiceAccountToken": False,
    }


def _account_volume() -> KubeObject:
    """Return what a client in a cluster looks for, for the one program that calls the API."""
    token = {"path": "token", "expirationSeconds": _TOKEN_SECONDS}
    certificate = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": token},
        {"configMap": certificate},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": "account", "projected": {"defaultMode": 0o440, "sources": sources}}
