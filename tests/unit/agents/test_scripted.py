"""Scripted models as functions of a request."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from proctor.core.agents.scripted import NOOP_ANSWER, GeneralPolicy, ScriptContext, SqlTool, find_policy, reply
from proctor.core.scenarios.policies import Policies, ScriptedPolicy, Step, load_policies
from proctor.errors import InvalidInput
from support.playing import SCENARIOS, add_result, make_body, play

SCENARIO = "error-root-cause"
TOOL = SqlTool("run_query", "query")
POLICIES = Policies(
    oracle=ScriptedPolicy(
        steps=[
            Step(query="SELECT concat('<<trace', '=', x, '>>') FROM t WHERE ts < '<<anchor>>'", markers=["trace"]),
            Step(query="SELECT concat('<<n', '=', y, '>>') FROM t WHERE TraceId = '<<trace>>'", markers=["n"]),
        ],
        answer="<<n>> in <<trace>>",
    ),
    impostors={"parrot": ScriptedPolicy(answer="It is the loudest.")},
)
CONTEXT = ScriptContext(sql_tool=TOOL, policies=POLICIES)


def _step(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Answer the model's next call with a text, and return what it says then."""
    add_result(body, reply("oracle", body, CONTEXT), text)
    return reply("oracle", body, CONTEXT)


def test_oracle_asks_then_answers_from_what_came_back() -> None:
    """Issue, part 5: oracle answers from what the tools returned."""
    body = make_body(SCENARIO, "list_tables", "run_query")
    first = reply("oracle", body, CONTEXT)
    assert first["stop_reason"] == "tool_use"
    assert first["content"][0]["name"] == "run_query"
    assert first["content"][0]["input"] == {
        "query": "SELECT concat('<<trace', '=', x, '>>') FROM t WHERE ts < '2026-11-30 12:00:00'"
    }
    second = _step(body, '{"rows": [["<<trace=abc123>>"]]}')
    assert second["content"][0]["input"]["query"].endswith("WHERE TraceId = 'abc123'")
    last = _step(body, "<<n=7>>")
    assert last["stop_reason"] == "end_turn"
    assert last["content"] == [{"type": "text", "text": "7 in abc123"}]


def test_a_missing_marker_is_said() -> None:
    """Manifest, controls: a server that loses rows makes even the oracle fail, and it says what it missed."""
    body = make_body(SCENARIO, "run_query")
    last = _step(body, '{"error": "Code: 241. Memory limit exceeded"}')
    assert last["content"][0]["text"] == "The tools did not return n, trace, so there is no finding."


@pytest.mark.parametrize("value", ["x' OR 1=1 --", "x\\' UNION ALL SELECT 1", "a;b", "a" * 300, "{x}"])
def test_a_returned_value_that_could_end_a_string_goes_into_no_query(value: str) -> None:
    """Hostile servers: what a tool returned is put into a query only as a plain name, id or time."""
    body = make_body(SCENARIO, "run_query")
    assert _step(body, f"<<trace={value}>>")["stop_reason"] == "end_turn"


def test_a_tool_behind_a_clients_prefix_is_found() -> None:
    """Issue, part 5: any agent may play a scripted model; clients prefix the names of MCP tools."""
    body = make_body(SCENARIO, "mcp__server__run_query")
    assert reply("oracle", body, CONTEXT)["content"][0]["name"] == "mcp__server__run_query"


@pytest.mark.parametrize("context", [ScriptContext(policies=POLICIES), CONTEXT])
def test_without_the_tool_nothing_is_claimed(context: ScriptContext) -> None:
    """Manifest, controls: a server without sqlTool."""
    last = reply("oracle", make_body(SCENARIO, "other"), context)
    assert last["stop_reason"] == "end_turn"
    assert "nothing was looked at" in last["content"][0]["text"]


def test_noop_and_impostors() -> None:
    """Manifest, scripted policies: noop looks at nothing; a scenario's impostors play by name."""
    body = make_body(SCENARIO, "run_query")
    assert reply("noop", body, CONTEXT)["content"][0]["text"] == NOOP_ANSWER
    assert reply("parrot", body, CONTEXT)["content"][0]["text"] == "It is the loudest."


@pytest.mark.parametrize(("name", "policies"), [("nobody", POLICIES), ("parrot", None), ("oracle", None)])
def test_an_unknown_policy_is_refused(name: str, policies: Policies | None) -> None:
    """Bad input: the message names the policies that there are."""
    with pytest.raises(InvalidInput, match="newest"):
        find_policy(name, policies)


@pytest.mark.parametrize("policy", [*GeneralPolicy])
def test_replies_are_pure_and_of_the_apis_form(policy: str) -> None:
    """Issue, part 5: scripted models behind the same Messages endpoint; equal requests, equal replies and counts."""
    body = make_body(SCENARIO, "run_query")
    before = copy.deepcopy(body)
    one, two = reply(policy, body, CONTEXT), reply(policy, copy.deepcopy(body), CONTEXT)
    assert one == two
    assert body == before
    assert {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"} == set(one)
    assert (one["type"], one["role"], one["model"]) == ("message", "assistant", "scripted")
    assert all(count >= 0 for count in one["usage"].values())
    json.dumps(one)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None, "tools": 3, "system": 5},
        {"messages": [None, 1, {"role": "user"}, {"role": "user", "content": [None, {"type": "tool_result"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]}]},
        {"tools": [{}, {"name": 3}, "x"], "messages": [{"role": "assistant", "content": "hello"}]},
        {"system": [{"type": "text", "text": "x"}], "messages": []},
    ],
)
@pytest.mark.parametrize("policy", ["oracle", "newest", "noop"])
def test_odd_requests_get_a_reply(policy: str, body: dict[str, Any]) -> None:
    """Hostile input: a request that no client would send is answered, not crashed on."""
    assert reply(policy, body, CONTEXT)["type"] == "message"


async def test_system_blocks_and_string_results_are_read() -> None:
    """Messages API: system and tool results may be strings or lists of blocks."""
    body = make_body(SCENARIO, "run_query")
    body["system"] = [{"type": "text", "text": body["system"]}]
    message = reply("oracle", body, CONTEXT)
    add_result(body, message, "")
    body["messages"][-1]["content"][0]["content"] = "<<trace=t1>>"
    assert "t1" in reply("oracle", body, CONTEXT)["content"][0]["input"]["query"]


@pytest.mark.parametrize("policy", ["oracle", "newest", "loudest"])
async def test_they_end_however_a_server_answers(policy: str) -> None:
    """Bad input: a server that answers nonsense, or repeats the query, ends in a text that claims nothing."""
    context = ScriptContext(sql_tool=TOOL, policies=load_policies(SCENARIOS / SCENARIO))

    async def repeat(_: str, arguments: dict[str, Any]) -> str:
        return json.dumps({"executed_sql": arguments["query"], "rows": []})

    played = await play(policy, context, make_body(SCENARIO, "run_query"), repeat)
    assert "did not return" in played.answer
