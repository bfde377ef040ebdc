"""Wiring of the gateway: its configuration becomes the parts that its doors use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from pydantic import ValidationError

from proctor.adapters.mcp.elsewhere import ElsewhereLauncher
from proctor.adapters.mcp.launch import PlainLauncher, ServerLauncher
from proctor.adapters.models.hosts import check_provider_url
from proctor.adapters.models.messages_client import MessagesClient, ProviderAddress
from proctor.api.model import AnthropicModel
from proctor.bootstrap.engine_watch import EngineAddress, EngineWatch, see_nothing
from proctor.bootstrap.gateway_config import GatewayConfig, SandboxMode
from proctor.bootstrap.record_store import Sink, open_sink
from proctor.bootstrap.server_launcher import SandboxLauncher
from proctor.core.agents.prompt import NeutralPrompt, PromptLimits, neutral_prompt
from proctor.core.agents.scripted import ScriptContext, SqlTool, find_policy, reply
from proctor.core.ids import AttemptKey
from proctor.core.scenarios.brief import Brief
from proctor.core.scenarios.document import Document
from proctor.core.scenarios.policies import Policies
from proctor.core.trajectory.outcome import AttemptRecord
from proctor.errors import InvalidInput

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What the doors use.

    Attributes:
        sink: takes the record.
        earlier: attempts of this run that the store has from before.
        begun: attempts of this run that the store has anything of.
        prompts: what agents are told, by scenario.
        policies: the scripted policies, by scenario.
        launcher: starts commands of servers under test.
        engine_losses: how often a scenario's engine was not there for what was asked of it, so far.
        look_at_engine: sees now whether it is there, where losses are seen only from beside.
        open_provider: makes a connection to a provider.
    """

    sink: Sink
    earlier: tuple[AttemptRecord, ...]
    begun: tuple[AttemptKey, ...]
    prompts: Mapping[str, NeutralPrompt]
    policies: Mapping[str, Policies | None]
    launcher: ServerLauncher
    engine_losses: Callable[[str], int]
    look_at_engine: Callable[[str], Awaitable[None]]
    open_provider: Callable[[AnthropicModel], MessagesClient]

    def open_scripted(
        self, policy: str, *, scenario: str, sql_tool: SqlTool | None
    ) -> Callable[[JsonObject], JsonObject]:
        """Return a scripted model for one attempt.

        Raises:
            InvalidInput: the scenario has no such policy.
        """
        context = ScriptContext(sql_tool=sql_tool, policies=self.policies[scenario])
        find_policy(policy, context.policies)
        return lambda body: reply(policy, body, context)


@asynccontextmanager
async def build_parts(config: GatewayConfig) -> AsyncIterator[GatewayParts]:
    """Give the parts, and take down on leaving what they opened.

    Raises:
        InvalidInput: a brief or a policy of the configuration is none.
    """
    for model in config.suite.models:
        if model.anthropic is not None:
            # Before the first cell, so that a missing key costs nothing.
            _find_address(config, model.anthropic)
    prompts, policies = _build_prompts(config), _parse_policies(config)
    # Nobody but this process's user may enter: sandboxes get single sockets of it, never the folder.
    config.sockets_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    config.sockets_dir.chmod(0o700)
    async with AsyncExitStack() as stack:
        sink, before = await open_sink(config, stack)
        launcher, losses, look = await _open_launcher(config, stack)
        yield GatewayParts(
            sink=sink,
            earlier=before.ended,
            begun=before.begun,
            prompts=prompts,
            policies=policies,
            launcher=launcher,
            engine_losses=losses,
            look_at_engine=look,
            open_provider=partial(_open_provider, config),
        )


async def _open_launcher(
    config: GatewayConfig, stack: AsyncExitStack
) -> tuple[ServerLauncher, Callable[[str], int], Callable[[str], Awaitable[None]]]:
    match config.sandbox:
        case SandboxMode.NONE:
            return PlainLauncher(), lambda _: 0, see_nothing
        case SandboxMode.ELSEWHERE:
            logins = {name: parts.dataset for name, parts in config.scenarios.items()}
            watch = EngineWatch({name: EngineAddress(at.host, at.port, at.secure) for name, at in logins.items()})
            await stack.enter_async_context(watch.watching())
            hooks = {(hook.server, logins[hook.scenario].database): (hook.host, hook.port) for hook in config.hooks}
            return ElsewhereLauncher(hooks), watch.losses, watch.look
        case SandboxMode.BWRAP:
            addresses = {name: (parts.dataset.host, parts.dataset.port) for name, parts in config.scenarios.items()}
            private = (*config.private_dirs, config.spool_dir, config.sockets_dir)
            launcher = SandboxLauncher(config.sockets_dir, private)
            await launcher.open_bridges(stack, addresses.values())
            return launcher, lambda scenario: launcher.losses(addresses[scenario]), see_nothing
    assert_never(config.sandbox)


def _open_provider(config: GatewayConfig, model: AnthropicModel) -> MessagesClient:
    return MessagesClient(_find_address(config, model))


def _find_address(config: GatewayConfig, model: AnthropicModel) -> ProviderAddress:
    name = f"{model.secret_key_ref.name}/{model.secret_key_ref.key}"
    if name not in config.secrets:
        raise InvalidInput(f"model {model.model}: secret {name} is not given")
    url = check_provider_url(model.url, config.allowed_hosts)
    key = config.secrets[name].get_secret_value().strip()
    return ProviderAddress(url, key, idle_seconds=config.retry.idle_seconds)


def _build_prompts(config: GatewayConfig) -> dict[str, NeutralPrompt]:
    agent = config.suite.agent
    limits = PromptLimits(max_turns=agent.max_turns, max_tool_calls=agent.max_tool_calls)
    anchor = config.anchor or config.suite.anchor
    assert anchor is not None  # noqa: S101 - the configuration was checked for it
    return {
        name: neutral_prompt(
            _parse(Brief, parts.brief, f"brief of scenario {name}"),
            anchor,
            limits,
            instructions=agent.instructions or "",
        )
        for name, parts in config.scenarios.items()
    }


def _parse_policies(config: GatewayConfig) -> dict[str, Policies | None]:
    return {
        name: _parse(Policies, parts.policies, f"policies of scenario {name}") if parts.policies else None
        for name, parts in config.scenarios.items()
    }


def _parse(model: type[Any], value: Mapping[str, Any], what: str) -> Any:  # noqa: ANN401 - returns a `model`
    if not issubclass(model, Document):
        raise TypeError(f"{model} is no document")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"the gateway's configuration: {what}: {where}: {first['msg']}") from None
