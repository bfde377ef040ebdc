"""How an attempt is put together from the suite, before its door opens."""

from __future__ import annotations

from datetime import timedelta

from proctor.api.model import Model
from proctor.api.server import Server
from proctor.api.suite import Agent
from proctor.core.agents.scripted import REFERENCE_SQL, SqlTool
from proctor.core.gatewaypolicy.budget import Budget, BudgetLimits
from proctor.core.gatewaypolicy.pricing import TokenPrice
from proctor.core.gatewaypolicy.tokens import TokenClaims, derive_secret
from proctor.core.ids import AttemptKey, CellKey
from proctor.errors import InvalidInput
from proctor.gateway.attempt import Attempt, AttemptSpec
from proctor.gateway.context import GatewayContext
from proctor.gateway.model_side import ModelSide, ProviderSide, ScriptedSide, scripted_name
from proctor.gateway.recorder import Recorder
from proctor.gateway.reference_sql import plays_on_reference

_MICROSECONDS = 1_000_000


def build_attempt(context: GatewayContext, key: AttemptKey, *, deadline_seconds: int) -> Attempt:
    """Return a new attempt of a cell of the suite.

    Raises:
        InvalidInput: the suite has no such cell, or its model has no key.
    """
    _check_cell(context, key.cell)
    opened = context.clock()
    expires = opened + timedelta(seconds=deadline_seconds + context.patience.wait_seconds)
    spec = AttemptSpec(
        key=key,
        server=context.suite.server(key.cell.server),
        opened=opened,
        claims=TokenClaims(key, expires),
        deadline_seconds=deadline_seconds,
    )
    model = None if key.cell.control else context.suite.model(key.cell.model)
    monotonic_ns = context.patience.monotonic_ns
    secret = derive_secret(context.run_key, spec.claims).encode()
    attempt = Attempt(
        spec=spec,
        recorder=Recorder(key, context.sink, clock=context.clock, monotonic_ns=monotonic_ns, secret=secret),
        monotonic_ns=monotonic_ns,
        started_ns=monotonic_ns(),
        budget=Budget(_limits(context.suite.agent, deadline_seconds), _price(model)),
        model=_model_side(context, key.cell, model),
    )
    if context.open_toolbox is not None:
        attempt.toolbox = context.open_toolbox(attempt)
    return attempt


def _check_cell(context: GatewayContext, cell: CellKey) -> None:
    suite = context.suite
    known = {
        "scenario": (cell.scenario, {scenario.name for scenario in suite.scenarios}),
        "server": (cell.server, {server.name for server in suite.servers}),
        "model": (cell.model, {model.name for model in suite.models} | ({cell.model} if cell.control else set())),
    }
    for what, (name, names) in known.items():
        if name not in names:
            raise InvalidInput(f"opening an attempt of cell {cell}: the suite has no {what} {name!r}")


def _limits(agent: Agent, deadline_seconds: int) -> BudgetLimits:
    return BudgetLimits(
        turns=agent.max_turns,
        calls=agent.max_tool_calls,
        tokens=agent.max_tokens,
        usd=agent.max_usd,
        active_us=deadline_seconds * _MICROSECONDS,
    )


def _price(model: Model | None) -> TokenPrice | None:
    return None if model is None or model.price is None else model.price.tokens


def _model_side(context: GatewayContext, cell: CellKey, model: Model | None) -> ModelSide:
    if model is not None and model.anthropic is not None:
        return ProviderSide(
            model.anthropic.model,
            context.open_provider(model.anthropic),
            context.patience.pause_of(f"{model.anthropic.url} {model.anthropic.secret_key_ref}"),
        )
    policy = model.scripted.policy if model is not None and model.scripted is not None else str(cell.control)
    tool = _find_sql_tool(cell, context.suite.server(cell.server))
    return ScriptedSide(scripted_name(policy), context.open_scripted(policy, scenario=cell.scenario, sql_tool=tool))


def _find_sql_tool(cell: CellKey, server: Server) -> SqlTool | None:
    if plays_on_reference(cell, server):
        return REFERENCE_SQL
    return None if server.sql_tool is None else SqlTool(server.sql_tool.name, server.sql_tool.argument)
