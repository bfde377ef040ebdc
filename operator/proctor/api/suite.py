"""EvalSuite: the standing definition of what is compared, on what, and what it has to show."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StringConstraints, model_validator

from proctor.api.fields import (
    Argument,
    Breach,
    Closed,
    Command,
    Cron,
    EnvName,
    EnvValue,
    Flag,
    Image,
    Instant,
    LabelKey,
    LabelValue,
    Money,
    Name,
    NameRef,
    Quantity,
    Share,
    Volume,
    refuse,
    repeated,
)
from proctor.api.gate import Gate
from proctor.api.model import Judge, Model
from proctor.api.rules import find_breaches
from proctor.api.server import Server


class ScenarioRef(Closed):
    """A scenario of the suite, and the dataset that is seeded for it."""

    name: Name = Field(description="A shipped scenario, or one's own by the two references.")
    volume: Volume = Field(default=Decimal(1), description="Scale of the dataset; the truth is the same at any scale.")
    seed: Annotated[StrictInt, Field(ge=0, le=2**53 - 1)] = Field(
        default=42, description="Fixes all chance; any but 42 redraws the scenario's names too."
    )
    config_map_ref: NameRef | None = Field(
        default=None, description="ConfigMap: brief.yaml, recipe.yaml, and variants.yaml if any."
    )
    answer_ref: NameRef | None = Field(default=None, description="Secret with answer.yaml and policies.yaml.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.config_map_ref is None) != (self.answer_ref is None):
            message = "configMapRef and answerRef belong together"
            refuse([Breach((), message, "give both for a scenario of your own, none for a shipped one")])
        return self


class AnchorPolicy(StrEnum):
    """How the anchor time is chosen when none is fixed."""

    LATEST_DAY = "LatestDay"


class AgentRuntime(StrEnum):
    """What drives the model in the sandbox."""

    BUILTIN = "Builtin"
    CLAUDE_CODE = "ClaudeCode"
    COMMAND = "Command"


OWN_VARIABLES = ("PROCTOR_", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Beginnings of variables that lead an agent to the gateway; a suite can't set them."""


class PlainEnvVar(Closed):
    """One environment variable of an agent: plain values only, a sandbox holds no secrets."""

    name: EnvName = Field(description="Name of the variable.")
    value: EnvValue = Field(description="A plain value; nothing in it is expanded.")


class AgentCommand(Closed):
    """An agent of one's own."""

    command: Command = Field(
        description="Program and arguments; started without a shell. A word that begins with ./ or ../ is a path, "
        "on one machine from the suite's folder, in an image from its working directory."
    )
    image: Image | None = Field(default=None, description="Image that holds the command; ignored on one machine.")
    env: Annotated[tuple[PlainEnvVar, ...], Field(max_length=64)] = Field(
        default=(), description="Its environment; PROCTOR_… and the variables of the Anthropic SDKs are set for it."
    )


class Agent(Closed):
    """The agent and its budget, the same for every arm."""

    runtime: AgentRuntime = Field(
        default=AgentRuntime.BUILTIN,
        description="What drives the model; control cells are always played through Builtin.",
    )
    command: AgentCommand | None = Field(default=None, description="The agent's program, with `runtime: Command`.")
    instructions: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=16384)] | None = Field(
        default=None, description="Text appended to the neutral prompt: a prompt under test."
    )
    max_turns: Annotated[StrictInt, Field(ge=1, le=500)] = Field(default=25, description="Model calls per cell.")
    max_tool_calls: Annotated[StrictInt, Field(ge=0, le=2000)] = Field(default=40, description="Tool calls per cell.")
    deadline_seconds: Annotated[StrictInt, Field(ge=1, le=21600)] = Field(
        default=300, description="Time per cell; waiting for an overloaded provider doesn't count."
    )
    max_tokens: Annotated[StrictInt, Field(ge=1, le=100_000_000)] = Field(
        default=400_000, description="Input and output tokens per cell."
    )
    max_usd: Money | None = Field(
        default=None, alias="maxUSD", description="Dollars per cell; every model needs a price."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = []
        if (self.runtime is AgentRuntime.COMMAND) != (self.command is not None):
            message = "command belongs to `runtime: Command`, and only to it"
            breaches.append(Breach(("command",), message, "add or remove the command"))
        if self.command is not None:
            breaches += [
                Breach(("command", *breach.path), breach.message, breach.fix)
                for breach in repeated([variable.name for variable in self.command.env], "env", "variable")
            ]
            breaches += [
                Breach(("command", "env"), f"{variable.name} is set by Proctor", "remove it, or choose another name")
                for variable in self.command.env
                if variable.name.startswith(OWN_VARIABLES)
            ]
        refuse(breaches)
        return self


MAX_ADAPTIVE_REPLICATES = 200


class Adaptive(Closed):
    """Replicates are added in blocks until the verdict is settled."""

    max_replicates: Annotated[StrictInt, Field(ge=1, le=MAX_ADAPTIVE_REPLICATES)] = Field(
        description="Where adding ends."
    )


class Weights(Closed):
    """How a score is put together: programmatic and judge parts less a penalty for the agent's tool mistakes."""

    programmatic: Share = Field(default=Decimal("0.4"), description="Weight of the checks.")
    judge: Share = Field(default=Decimal("0.6"), description="Weight of the judge.")
    error_penalty_cap: Share = Field(default=Decimal("0.2"), description="Most that tool mistakes can cost.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.programmatic + self.judge != 1:
            refuse([Breach((), "programmatic and judge do not add up to 1", "like 0.4 and 0.6")])
        return self


class Limits(Closed):
    """When a run gives up."""

    active_deadline_seconds: Annotated[StrictInt, Field(ge=1, le=604_800)] = Field(
        default=7200, description="Time for the whole run."
    )
    pending_deadline_seconds: Annotated[StrictInt, Field(ge=1, le=86_400)] = Field(
        default=300, description="Time for a cell's sandbox to start."
    )
    infra_retries: Annotated[StrictInt, Field(ge=0, le=10)] = Field(
        default=2, description="New attempts of a cell after infrastructure failures; no other failure is retried."
    )


class History(Closed):
    """How many finished runs are kept."""

    passed: Annotated[StrictInt, Field(ge=0, le=1000)] = Field(default=10, description="Runs that passed.")
    failed: Annotated[StrictInt, Field(ge=0, le=1000)] = Field(default=10, description="All other finished runs.")


ResourceList = Annotated[dict[LabelKey, Quantity], Field(max_length=8)]


class Resources(Closed):
    """Requests and limits of a sandbox's pod."""

    requests: ResourceList = Field(default_factory=dict, description="What is set aside.")
    limits: ResourceList = Field(default_factory=dict, description="What it can't exceed.")


class Toleration(Closed):
    """A node taint that sandboxes tolerate, as in a pod."""

    key: LabelKey | None = Field(default=None, description="Taint key; all keys if left out.")
    operator: Literal["Exists", "Equal"] | None = Field(default=None, description="How the key is matched.")
    value: LabelValue | None = Field(default=None, description="Taint value, with Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Taint effect."
    )
    toleration_seconds: Annotated[StrictInt, Field(ge=0, le=86_400)] | None = Field(
        default=None, description="How long NoExecute is tolerated."
    )


class Sandbox(Closed):
    """Where and how sandbox pods run; a cluster's matter."""

    runtime_class_name: Annotated[
        str, StringConstraints(pattern=r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$", max_length=253)
    ] = Field(default="", description="RuntimeClass of the pods (gVisor, Kata); empty for the cluster's own.")
    resources: Resources | None = Field(default=None, description="Requests and limits.")
    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)] = Field(
        default_factory=dict, description="Labels that a node must have."
    )
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=16)] = Field(
        default=(), description="Node taints that are tolerated."
    )
    image_pull_secrets: Annotated[tuple[NameRef, ...], Field(max_length=8)] = Field(
        default=(), description="Secrets for pulling images."
    )


class EvalSuiteSpec(Closed):
    """What is compared, on what, and what it has to show."""

    scenarios: Annotated[tuple[ScenarioRef, ...], Field(min_length=1, max_length=32)] = Field(
        description="Situations that the agents investigate."
    )
    anchor: Instant | None = Field(
        default=None, description='The instant that "the past 10 minutes" means; part of the dataset\'s hash.'
    )
    anchor_policy: AnchorPolicy | None = Field(
        default=None, description="Instead of `anchor`: LatestDay is midnight UTC of the run's day."
    )
    servers: Annotated[tuple[Server, ...], Field(min_length=1, max_length=16)] = Field(description="What is judged.")
    models: Annotated[tuple[Model, ...], Field(min_length=1, max_length=16)] = Field(
        description="What the agents run on. An arm is server × model."
    )
    agent: Agent = Field(default=Agent(), description="The agent and its budget.")
    replicates: Annotated[StrictInt, Field(ge=1, le=200)] = Field(
        default=5, description="Statistical repeats of each scenario and arm."
    )
    adaptive: Adaptive | None = Field(default=None, description="Add replicates until the verdict is settled.")
    parallelism: Annotated[StrictInt, Field(ge=1, le=64)] = Field(default=4, description="Cells that run at once.")
    judge: Judge = Field(description="Who grades what checks can't.")
    weights: Weights = Field(default=Weights(), description="How a score is put together.")
    gate: Gate = Field(description="What the run has to show to pass.")
    limits: Limits = Field(default=Limits(), description="When the run gives up.")
    schedule: Cron | None = Field(
        default=None, description="Cron times (UTC) of trend runs; they never touch the gate."
    )
    run_on_change: Flag = Field(default=False, description="Each new generation or image digest makes one run.")
    run_request_id: Annotated[str, StringConstraints(strict=True, max_length=128)] = Field(
        default="", description="Any new text makes one run."
    )
    history: History = Field(default=History(), description="How many finished runs are kept.")
    sandbox: Sandbox = Field(default=Sandbox(), description="Where and how sandbox pods run.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(find_breaches(self))
        return self

    def anchor_at(self, now: datetime) -> datetime:
        """Return the anchor time of a run that starts at ``now``."""
        if self.anchor is not None:
            return self.anchor.astimezone(UTC)
        return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def server(self, name: str) -> Server:
        """Return a server by name.

        Raises:
            KeyError: the suite has none of that name.
        """
        return {server.name: server for server in self.servers}[name]

    def model(self, name: str) -> Model:
        """Return a model by name.

        Raises:
            KeyError: the suite has none of that name.
        """
        return {model.name: model for model in self.models}[name]


class Metadata(Closed):
    """What identifies an object."""

    name: Name = Field(description="Name of the object.")
    namespace: Name | None = Field(default=None, description="Its namespace; ignored on one machine.")
    labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = Field(
        default_factory=dict, description="Labels."
    )
    annotations: Annotated[dict[LabelKey, Argument], Field(max_length=64)] = Field(
        default_factory=dict, description="Annotations."
    )
    uid: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Set by who stores it."
    )
    generation: Annotated[StrictInt, Field(ge=0)] | None = Field(default=None, description="Set by who stores it.")


class EvalSuite(Closed):
    """The standing definition: scenarios × arms × replicates, and the gate."""

    api_version: Literal["proctor.dev/v1alpha1"] = Field(description="Version of this API.")
    kind: Literal["EvalSuite"] = Field(description="This kind.")
    metadata: Metadata = Field(description="What identifies the suite.")
    spec: EvalSuiteSpec = Field(description="What is compared, on what, and what it has to show.")
