"""The builtin agent's loop, against a scripted gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor_agent.conversation import Conversation
from proctor_agent.ending import report_end
from proctor_agent.failures import AgentFailure, Malformed, Refused, Unreachable
from proctor_agent.parsing import parse_object
from proctor_agent.wire import Gateway
from support.fake_gateway import FakeGateway, error, run_gateway, say, use
from support.sandbox import short_folder

_STREAM = b"HTTP/1.1 200 OK\r\n\r\ndata: "


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def _run(folder: Path, gateway: FakeGateway, *, stream: bool = True) -> str:
    with run_gateway(folder, gateway):
        return Conversation(Gateway(gateway.address, "tok"), stream=stream).run()


def test_it_asks_calls_and_answers(folder: Path, stream: bool) -> None:
    """M-A7: brief, tools, a model's calls in their order, results, and the last text as the answer."""
    gateway = FakeGateway([use(("run_query", {"q": "1"}), ("odd name/ü", {}), text="Let me look."), say("It was Ü.")])
    assert _run(folder, gateway, stream=stream) == "the model stopped: end_turn"
    assert gateway.answer == "It was Ü."
    assert [path for _, path, _ in gateway.requests] == [
        "/brief", "/tools", "/v1/messages", "/tools/run_query", "/tools/odd%20name%2F%C3%BC", "/v1/messages", "/answer",
    ]  # fmt: skip
    first, second = gateway.asked
    assert first["messages"] == [{"role": "user", "content": "What failed?"}]
    assert (first["system"], first["model"], first["stream"]) == ("You are on call.", "m", stream)
    assert first["tools"][0] == {
        "name": "run_query",
        "input_schema": {"type": "object", "properties": {}},
        "description": "Runs SQL.",
    }
    assert first["tools"][1]["input_schema"] == {"type": "object"}
    results = second["messages"][2]["content"]
    assert [result["tool_use_id"] for result in results] == ["toolu_0", "toolu_1"]
    assert results[0]["content"] == [{"type": "text", "text": "run_query"}]
    assert second["messages"][1]["content"][0] == {"type": "text", "text": "Let me look."}
    assert all("Authorization: Bearer tok" in head for head in gateway.heads)


def test_an_empty_content_list_is_no_answer(folder: Path, stream: bool) -> None:
    """P27: a model that says nothing leaves no answer, and nothing is made up for it."""
    gateway = FakeGateway([say()])
    assert "no answer" in _run(folder, gateway, stream=stream)
    assert gateway.answer is None


def test_an_unknown_tool_is_asked_for_and_its_refusal_is_told(folder: Path) -> None:
    """S18: the gateway sees a call of a tool that isn't there, and the model is told."""
    gateway = FakeGateway(
        [use(("rm", {})), say("sorry")], call=lambda *_: (403, error("proctor_tool_refused", "no tool rm"))
    )
    _run(folder, gateway)
    (result,) = gateway.asked[1]["messages"][2]["content"]
    assert (result["is_error"], result["content"]) == (True, "no tool rm")
    assert gateway.answer == "sorry"


def test_a_tool_error_is_told_as_one(folder: Path) -> None:
    """M-A9: what the server calls an error reaches the model as one; empty texts are left out."""
    reply = {"content": [{"type": "text", "text": ""}, {"type": "text", "text": "bad"}], "isError": True}
    gateway = FakeGateway([use(("run_query", {})), say("x")], call=lambda *_: reply)
    _run(folder, gateway)
    (result,) = gateway.asked[1]["messages"][2]["content"]
    assert result == {
        "type": "tool_result", "tool_use_id": "toolu_0", "content": [{"type": "text", "text": "bad"}], "is_error": True,
    }  # fmt: skip


@pytest.mark.parametrize("limit", ["turn", "call", "token", "usd", "time"])
def test_at_a_budget_it_answers_with_what_it_has(folder: Path, limit: str) -> None:
    """S16: a refusal of the gateway for a budget ends the loop, and the last text is the answer."""
    refusal = (429, error(f"proctor_{limit}_limit", "used up"))
    gateway = FakeGateway([use(("run_query", {}), text="So far: pool."), refusal])
    assert _run(folder, gateway) == "stopped: used up"
    assert gateway.answer == "So far: pool."


def test_a_budget_that_a_tool_call_hits_ends_it_too(folder: Path) -> None:
    """S16: calls have a budget of their own."""
    refusal = (429, error("proctor_call_limit", "used up"))
    gateway = FakeGateway([use(("run_query", {}), text="So far.")], call=lambda *_: refusal)
    assert _run(folder, gateway) == "stopped: used up"
    assert gateway.answer == "So far."


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ((403, error("proctor_token_refused")), Refused),
        ((429, error("rate_limit_error")), Refused),
        ((529, error("overloaded_error")), Refused),
        ((502, {"no": "error"}), Refused),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Unreachable),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Malformed),
        (b"not http at all\r\n\r\n", Malformed),
        (b"HTTP/1.1 200 OK\r\n\r\ndata: nonsense\n\n", Malformed),
        (_STREAM + b'{"type":"content_block_delta","index":7,"delta":{"type":"text_delta"}}\n\n', Malformed),
        (_STREAM + b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n', Refused),
        (b"", Unreachable),
    ],
)  # fmt: skip
def test_what_ends_a_run_without_an_answer(folder: Path, reply: Any, failure: type[AgentFailure]) -> None:
    """P24, P27: refusals, cut replies and nonsense end the run with their own exit code; no answer is made up."""
    gateway = FakeGateway([reply])
    with pytest.raises(failure) as caught:
        _run(folder, gateway)
    assert caught.value.exit_code in {10, 11, 12}
    assert gateway.answer is None


def test_a_reply_cut_at_its_limit_goes_on(folder: Path, stream: bool) -> None:
    """A reply that stops at max_tokens makes no half call, and is continued."""
    gateway = FakeGateway([use(("run_query", {"q": 1}), text="half", stop="max_tokens"), say("whole")])
    _run(folder, gateway, stream=stream)
    assert not any(path == "/tools/run_query" for _, path, _ in gateway.requests)
    assert gateway.asked[1]["messages"][1]["content"] == [{"type": "text", "text": "half"}]
    assert gateway.answer == "whole"


def test_a_reply_cut_for_ever_ends(folder: Path) -> None:
    """A model that never fits into its limit doesn't go on for ever: its last text is the answer."""
    gateway = FakeGateway([say(f"part {number}", stop="max_tokens") for number in range(10)])
    _run(folder, gateway)
    assert gateway.answer == "part 3"


def test_the_turn_limit_is_put_on_record_by_the_gateway(folder: Path) -> None:
    """manifest: the agent asks once more than it may, so that the gateway sees the limit being hit."""
    refusal = (429, error("proctor_turn_limit", "used up"))
    gateway = FakeGateway([*[use(("run_query", {}), text="t") for _ in range(5)], refusal])
    assert _run(folder, gateway) == "stopped: used up"
    assert len(gateway.asked) == 6


def test_a_thousand_calls_in_one_turn(folder: Path) -> None:
    """S21: parallel calls are made one after the other, however many."""
    gateway = FakeGateway([use(*[("run_query", {"n": number}) for number in range(1000)]), say("done")])
    _run(folder, gateway)
    assert len(gateway.asked[1]["messages"][2]["content"]) == 1000
    assert gateway.answer == "done"


def test_control_characters_pass_unharmed(folder: Path, stream: bool) -> None:
    """S21: ANSI, NUL and lone surrogates are text like any other, in both directions."""
    odd = "\x1b[31m\x00\u2028\ud800 end"
    result = {"content": [{"type": "text", "text": odd}], "isError": False}
    gateway = FakeGateway([use(("run_query", {"q": odd})), say(odd)], call=lambda *_: result)
    _run(folder, gateway, stream=stream)
    assert gateway.asked[1]["messages"][2]["content"][0]["content"][0]["text"] == odd
    assert gateway.answer == odd.replace("\ud800", "?")


def test_arguments_that_are_not_an_object_are_told_to_the_model(folder: Path) -> None:
    """M-A9: a call whose arguments are no JSON object isn't made; the model is told."""
    gateway = FakeGateway([use(("run_query", "{half")), say("x")])
    _run(folder, gateway)
    second = gateway.asked[1]["messages"]
    assert second[1]["content"][0]["input"] == {}
    assert second[2]["content"][0]["is_error"] is True


def test_other_kinds_of_content_are_kept(folder: Path) -> None:
    """Images are handed on as images; what the Messages API has no word for, as its JSON."""
    content = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "resource_link", "uri": "x:y"}]
    gateway = FakeGateway([use(("run_query", {})), say("x")], call=lambda *_: {"content": content})
    _run(folder, gateway)
    image, other = gateway.asked[1]["messages"][2]["content"][0]["content"]
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert '"resource_link"' in other["text"]


@pytest.mark.parametrize(
    "gateway",
    [
        FakeGateway([], brief={"system": "s"}),
        FakeGateway([], brief=[]),
        FakeGateway([], tools={"tools": "none"}),
        FakeGateway([{"content": "text"}]),
    ],
    ids=["brief", "brief-list", "tools", "content"],
)
def test_malformed_doors_are_named(folder: Path, gateway: FakeGateway) -> None:
    """What isn't as promised ends the run with its own exit code."""
    with pytest.raises(Malformed):
        _run(folder, gateway, stream=False)


def test_no_gateway_is_its_own_failure(folder: Path) -> None:
    """P27: an agent that reaches no gateway fails, loudly."""
    with pytest.raises(Unreachable):
        Conversation(Gateway(f"unix:{folder}/none.sock", "t"), stream=True).run()


def test_nesting_that_no_parser_takes_is_malformed(capsys: pytest.CaptureFixture[str]) -> None:
    """M-A7: whatever depth a server or a model answers with, the agent ends with one line and its own exit code."""
    assert report_end(lambda: str(parse_object(b"[" * 9999, "the result"))) == Malformed.exit_code
    deep: list[Any] = []
    for _ in range(9999):
        deep = [deep]
    assert report_end(lambda: json.dumps(deep)) == Malformed.exit_code
    assert capsys.readouterr().out.splitlines() == ["Malformed: the result is not JSON", "Malformed: nested too deeply"]
