"""One attempt's agent: the pod that holds strangers' words, and reaches the gateway alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from proctor.api.suite import AgentRuntime
from proctor.errors import InvalidInput
from proctor.manifests.canary import waiting_container
from proctor.manifests.pods import (
    SCRATCH,
    SCRATCH_ENVIRONMENT,
    Container,
    Pod,
    scratch_mounts,
    scratch_volume,
    variables,
)
from proctor.manifests.programs import run_agent
from proctor.manifests.scope import Amounts, KubeObject, RunScope

CLAUDE_CODE_PROGRAM = "/opt/claude"
"""Where the image with Claude Code has it."""

_SMALL = Amounts(cpu="250m", memory="384Mi", storage="64Mi")
_LARGE = Amounts(cpu="1", memory="2Gi", storage="256Mi")
_SMALL_SCRATCH = "64Mi"
_LARGE_SCRATCH = "256Mi"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxAttempt:
    """One attempt, as its pod is built.

    Attributes:
        opaque_id: all that the pod is known by.
        token: lets it through the gateway's doors.
        gateway: the gateway's address, `IP:port`.
        control: whether a control cell is played, which is the builtin agent's always.
        deadline_seconds: after which the pod is killed, the time to start included.
        closed: targets that have to be closed before the agent starts, as of `canary.Probe`.
    """

    opaque_id: str
    token: str = field(repr=False)
    gateway: str
    control: bool
    deadline_seconds: int
    closed: tuple[str, ...]


def build_sandbox(scope: RunScope, attempt: SandboxAttempt) -> KubeObject:
    """Return the pod of an attempt.

    Raises:
        InvalidInput: the agent's image is missing, or not named by its digest.
    """
    runtime = AgentRuntime.BUILTIN if attempt.control else scope.suite.agent.runtime
    small = runtime is AgentRuntime.BUILTIN
    pod = Pod(
        containers=(_agent(scope, attempt, runtime),),
        before=(waiting_container(scope, answers=attempt.gateway, closed=attempt.closed),),
        volumes=(scratch_volume(_SMALL_SCRATCH if small else _LARGE_SCRATCH),),
        account=scope.names.account,
        placement=scope.untrusted_placement,
        deadline_seconds=attempt.deadline_seconds,
    )
    metadata = scope.metadata(scope.names.attempt(attempt.opaque_id), scope.names.attempt_labels(attempt.opaque_id))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.to_spec()}


def _agent(scope: RunScope, attempt: SandboxAttempt, runtime: AgentRuntime) -> Container:
    default = Amounts.of(scope.sandbox_resources, _SMALL if runtime is AgentRuntime.BUILTIN else _LARGE)
    image, command, folder = _program(scope, runtime)
    own = scope.suite.agent.command
    given = {item.name: item.value for item in own.env} if own is not None and runtime is AgentRuntime.COMMAND else {}
    address = f"http://{attempt.gateway}"
    environment = {
        **SCRATCH_ENVIRONMENT,
        **given,
        "PROCTOR_GATEWAY": address,
        "PROCTOR_ADDRESS": address,
        "PROCTOR_TOKEN": attempt.token,
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": attempt.token,
    }
    return Container(
        name="agent",
        image=image,
        amounts=Amounts.of(scope.suite.sandbox.resources, default),
        command=command,
        env=variables(environment),
        mounts=scratch_mounts(),
        folder=folder,
    )


def _program(scope: RunScope, runtime: AgentRuntime) -> tuple[str, tuple[str, ...], str | None]:
    """Return image, command, and where it starts: None for the image's own folder."""
    if runtime is AgentRuntime.BUILTIN:
        return scope.images.sandbox, run_agent("proctor_agent.__main__"), SCRATCH
    if runtime is AgentRuntime.CLAUDE_CODE:
        if not scope.images.claude_code:
            raise InvalidInput("runtime ClaudeCode: no image is set up for it: set images.claudeCode in the chart")
        return scope.images.claude_code, run_agent("proctor_agent.claude_code", CLAUDE_CODE_PROGRAM), SCRATCH
    own = scope.suite.agent.command
    assert own is not None  # noqa: S101 - validation admits no such runtime without a command
    return scope.images.admit(own.image, "agent.command"), own.command, None
