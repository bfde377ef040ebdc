"""The example agents, one attempt each: what they do when a budget is used up."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.adapters.sandbox.agents import AgentPlace
from proctor.adapters.sandbox.own_agents import OwnAgent, own_agent_spec
from proctor.api.loading import load_suite
from proctor.core.trajectory.outcome import AnswerSource, Outcome
from support.agents import look_for_ever, open_work
from support.playing import ROOT
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox


@pytest.mark.drill
@pytest.mark.parametrize("example", ["python", "node", "shell"])
async def test_at_a_limit_what_there_is_counts(agents: Path, example: str) -> None:
    """Runtimes: the refusal of a budget is taken for what it is, once, and what was said is sent as the answer."""
    command = load_suite(agents / f"{example}.yaml").spec.agent.command
    assert command is not None
    own = OwnAgent(command=command.command, folder=agents, search_path=f"{ROOT / '.venv' / 'bin'}:/usr/bin:/bin")
    async with open_work(look_for_ever, maxTurns=2) as work:
        spec = own_agent_spec(own, AgentPlace(socket=work.door.socket, token=work.door.token))
        record = await work.run(spec)
        assert (record.outcome, record.turns) == (Outcome.TURN_LIMIT, 2)
        assert work.denied == [("POST /v1/messages", "proctor_turn_limit")]
        assert (record.answer_source, work.answer) == (AnswerSource.PUT, "Not yet.")
