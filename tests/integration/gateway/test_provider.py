"""The model side against a real server that speaks the Messages API."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest

from proctor.adapters.models.messages_client import MessagesClient, ProviderAddress
from proctor.core.ids import CellKey
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AttemptRecord, ExitCause, Limit, Outcome, ProcessExit
from proctor.gateway.patience import Patience
from support.gateway import CELL, RunningGateway, make_suite, run_gateway
from support.messages_server import (
    KEY,
    MODEL,
    Cut,
    Failing,
    FailingInStream,
    Fault,
    Held,
    MessagesServer,
    Raw,
    overloaded,
    rate_limited,
    reply_text,
    reply_tool,
    serve_messages,
)

PRICE = {"inputPerMTok": "5", "outputPerMTok": "25", "cacheReadPerMTok": "0.5", "cacheWritePerMTok": "6.25"}
REAL_CELL = CellKey("error-root-cause", "sql", "real", 1)
EXITED = ProcessExit(ExitCause.EXITED, 0)
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class SleptClock:
    """Monotonic time that passes only in sleep."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_ns += int(seconds * 1e9)
        await asyncio.sleep(0)


class Case:
    """A gateway with one attempt of a provider's model."""

    def __init__(self, gateway: RunningGateway, server: MessagesServer, clock: SleptClock) -> None:
        self.gateway = gateway
        self.server = server
        self.clock = clock
        self.id = ""
        self.agent: httpx.AsyncClient

    async def ask(self, *, stream: bool, text: str = "what broke?", **fields: Any) -> httpx.Response:
        return await self.agent.post("/v1/messages", json=ask_body(text, stream=stream, **fields))

    def calls(self) -> list[Event]:
        return [event for event in self.gateway.sink.trajectory() if event.kind is EventKind.MODEL_CALL]

    async def end(self, process: ProcessExit = EXITED) -> AttemptRecord:
        await self.gateway.attempts.end(self.id, process)
        return (await self.gateway.attempts.ended_after(0, wait_seconds=5))[0]


def ask_body(text: str = "what broke?", *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "max_tokens": 1000,
        "stream": stream,
        "messages": [{"role": "user", "content": text}],
        **fields,
    }


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def text_of(response: httpx.Response, *, stream: bool) -> str:
    if not stream:
        return "".join(block["text"] for block in response.json()["content"])
    deltas = (event["delta"] for event in events_of(response) if event["type"] == "content_block_delta")
    return "".join(delta.get("text", "") for delta in deltas)


@asynccontextmanager
async def provider_case(
    *faults: Fault | None, play: Any = None, agent: Mapping[str, Any] | None = None, wait: int = 600, idle: float = 30
) -> AsyncIterator[Case]:
    model = {"model": MODEL, "secretKeyRef": {"name": "anthropic", "key": "api-key"}}
    suite = make_suite(models=[{"name": "real", "anthropic": model, "price": PRICE}], agent=agent)
    clock = SleptClock()
    patience = Patience(wait_seconds=wait, sleep=clock.sleep, jitter=lambda: 1.0, monotonic_ns=lambda: clock.now_ns)
    with serve_messages(play) as server:
        server.faults.extend(faults)

        def connect(_: object) -> MessagesClient:
            return MessagesClient(ProviderAddress(server.url, KEY, idle_seconds=idle))

        async with run_gateway(suite=suite, open_provider=connect, patience=patience) as gateway:
            case = Case(gateway, server, clock)
            opened = await gateway.open(REAL_CELL)
            case.id = opened.id
            async with gateway.agent(opened) as agent_client:
                case.agent = agent_client
                yield case


@BOTH
async def test_a_call_is_answered_and_recorded(*, stream: bool) -> None:
    """M-A8, M-B1: tokens, price, digests and both bodies of a call, the same whether it was streamed or not."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 40,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 8,
    }
    async with provider_case(play=lambda _: reply_text("the cart database", **usage)) as case:
        reply = await case.ask(stream=stream)
        assert reply.status_code == 200
        assert reply.headers["request-id"] == "req_test"
        assert text_of(reply, stream=stream) == "the cart database"
        (call,) = case.calls()
        assert (call.input_tokens, call.output_tokens, call.cache_read_tokens, call.cache_write_tokens) == (
            100,
            40,
            1000,
            8,
        )
        assert call.usd == Decimal("0.00205")
        result = json.loads(case.gateway.sink.blobs[call.result_digest])
        assert result["content"] == [{"type": "text", "text": "the cart database"}]
        assert result["stop_reason"] == "end_turn"
        assert json.loads(case.gateway.sink.blobs[call.request_digest])["messages"][0]["content"] == "what broke?"


async def test_a_stream_passes_event_by_event() -> None:
    """M-A8: what the provider streams is what the agent gets, in the same events."""
    play = lambda _: reply_tool("run_query", {"query": "SELECT 1"}, text="I look first.")  # noqa: E731
    async with provider_case(play=play) as case:
        reply = await case.ask(stream=True)
        kinds = [event["type"] for event in events_of(reply)]
        assert kinds[0] == "message_start"
        assert kinds[-2:] == ["message_delta", "message_stop"]
        assert "ping" in kinds
        (call,) = case.calls()
        result = json.loads(case.gateway.sink.blobs[call.result_digest])
        assert result["content"][1]["input"] == {"query": "SELECT 1"}


@BOTH
async def test_the_key_is_the_gateways_and_nothing_of_the_agents_is_passed_on(*, stream: bool) -> None:
    """S15: incoming credentials and headers stop here; the real key is added here."""
    async with provider_case() as case:
        case.agent.headers.update({"x-forwarded-for": "1.2.3.4", "cookie": "a=b", "anthropic-version": "1999-01-01"})
        await case.agent.post(
            "/v1/messages?beta=true",
            json=ask_body(stream=stream, metadata={"user_id": "device"}),
            headers={"anthropic-beta": "interleaved-thinking-2025-05-14,unknown-2030-01-01"},
        )
        (seen,) = case.server.seen
        assert seen.path == "/v1/messages?beta=true"
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["anthropic-version"] == "2026-10-21"
        assert seen.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
        assert not {"x-api-key", "cookie", "x-forwarded-for"} & set(seen.headers)
        assert "metadata" not in seen.body


async def test_an_agent_of_the_older_revision_is_spoken_for_in_it() -> None:
    """S15: of the revisions of the API, those known here are passed on; each has its own header for the key."""
    async with provider_case() as case:
        case.agent.headers["anthropic-version"] = "2023-06-01"
        assert (await case.ask(stream=False, temperature=0.5)).status_code == 200
        (seen,) = case.server.seen
        assert (seen.headers["anthropic-version"], seen.headers["x-api-key"]) == ("2023-06-01", KEY)
        assert "authorization" not in seen.headers


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        overloaded("2"),
        rate_limited("2"),
        Failing(500, "api_error", retry_after="2"),
        Failing(503, "api_error", retry_after="2"),
    ],
    ids=["529", "429", "500", "503"],
)
async def test_an_overload_is_waited_out(fault: Failing, *, stream: bool) -> None:
    """P23: Retry-After is honoured; the wait is kept apart from latency and from the agent's deadline."""
    async with provider_case(fault, fault) as case:
        reply = await case.ask(stream=stream)
        assert text_of(reply, stream=stream) == "the cart database"
        (call,) = case.calls()
        assert call.retry == 2
        assert call.waited_us == 4_000_000
        assert call.latency_us == 0
        record = await case.end()
        assert record.waited_us == 4_000_000
        assert record.turns == 1


async def test_waiting_does_not_count_against_the_deadline() -> None:
    """P23: 500 s of waiting leave a deadline of 300 s untouched; 300 s of the agent's own time end it."""
    async with provider_case(overloaded("250"), overloaded("250")) as case:
        assert (await case.ask(stream=True)).status_code == 200
        assert (await case.ask(stream=False)).status_code == 200
        case.clock.now_ns += 300_000_000_000
        refused = await case.ask(stream=False)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "proctor_time_limit")
        record = await case.end()
        assert (record.outcome, record.waited_us, record.limit) == (Outcome.TIME_LIMIT, 500_000_000, Limit.TIME)


async def test_without_retry_after_pauses_grow() -> None:
    """P23: each pause is twice the one before, up to a cap."""
    async with provider_case(*[overloaded()] * 7) as case:
        assert (await case.ask(stream=False)).status_code == 200
        assert case.clock.slept == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    "fault",
    [FailingInStream(), FailingInStream("api_error", 0), Cut(1), Cut(0)],
    ids=["overload", "at once", "cut", "cut at once"],
)
async def test_a_stream_that_failed_before_it_said_anything_is_started_again(fault: Fault) -> None:
    """P24: an overload inside a stream of status 200, or a cut one, is retried unseen by the agent."""
    async with provider_case(fault) as case:
        reply = await case.ask(stream=True)
        kinds = [event["type"] for event in events_of(reply)]
        assert kinds.count("message_start") == 1
        assert "error" not in kinds
        assert text_of(reply, stream=True) == "the cart database"
        assert case.calls()[0].retry == 1


@pytest.mark.parametrize(
    ("fault", "error_class", "told"),
    [
        (FailingInStream(after_events=3), "overloaded_error", "overloaded_error"),
        (Cut(after_events=3), "cut", "proctor_provider_unavailable"),
    ],
    ids=["overload", "cut"],
)
async def test_a_stream_that_broke_off_is_told_and_infrastructures(fault: Fault, error_class: str, told: str) -> None:
    """P24: what was passed on can't be taken back: the agent is told, and unless it asks again it is no one's fault."""
    async with provider_case(fault) as case:
        reply = await case.ask(stream=True)
        assert events_of(reply)[-1]["error"]["type"] == told
        (call,) = case.calls()
        assert (call.status, call.error_class) == (Status.INFRA_ERROR, error_class)
        record = await case.end(ProcessExit(ExitCause.EXITED, 1))
        assert record.outcome is Outcome.INFRA_ERROR
        assert record.turns == 0


async def test_an_agent_that_asks_again_has_recovered() -> None:
    """P24: a broken stream that the agent got over leaves the attempt its own."""
    async with provider_case(Cut(after_events=3)) as case:
        await case.ask(stream=True)
        assert text_of(await case.ask(stream=True), stream=True) == "the cart database"
        assert (await case.end()).outcome is Outcome.GAVE_UP


@BOTH
@pytest.mark.parametrize("retry_after", ["3600", "Wed, 30 Nov 2095 12:00:00 GMT"])
async def test_a_pause_longer_than_the_cap_ends_the_attempt(retry_after: str, *, stream: bool) -> None:
    """P23: an hour's Retry-After freezes nothing: the attempt is an infrastructure error at once."""
    async with provider_case(rate_limited(retry_after)) as case:
        reply = await case.ask(stream=stream)
        assert reply.status_code == 502
        assert reply.json()["error"]["type"] == "proctor_provider_unavailable"
        assert case.clock.slept == []
        again = await case.ask(stream=stream)
        assert again.json()["error"]["type"] == "proctor_provider_unavailable"
        other = await case.gateway.open(CellKey("error-root-cause", "sql", "real", 2))
        async with case.gateway.agent(other) as agent:
            assert (await agent.post("/v1/messages", json=ask_body())).status_code == 502
        assert case.clock.slept == []
        assert len(case.server.seen) == 1
        record = await case.end(ProcessExit(ExitCause.EXITED, 1))
        assert record.outcome is Outcome.INFRA_ERROR
        assert "was not there within 600 s" in record.reason


async def test_waiting_ends_at_the_cap() -> None:
    """P23: many short waits are capped together."""
    async with provider_case(*[overloaded("20")] * 9, wait=60) as case:
        assert (await case.ask(stream=False)).status_code == 502
        assert case.clock.slept == [20, 20, 20]


@BOTH
async def test_a_refused_key_is_told_clearly_and_never_shown(*, stream: bool) -> None:
    """S15: 401 from the provider ends the attempt as infrastructure; the key shows up nowhere."""
    fault = Failing(401, "authentication_error", f"invalid x-api-key: {KEY}")
    async with provider_case(fault) as case:
        reply = await case.ask(stream=stream)
        assert reply.json()["error"] == {"type": "proctor_key_refused", "message": "the provider refused the key"}
        record = await case.end(ProcessExit(ExitCause.EXITED, 1))
        assert record.outcome is Outcome.INFRA_ERROR
        assert "refused the key" in record.reason
        assert KEY not in record.reason
        assert all(KEY.encode() not in body for body in case.gateway.sink.blobs.values())


async def test_an_error_body_is_scrubbed() -> None:
    """S15: a request that the provider finds wrong is the agent's; what it says is passed on without the key."""
    async with provider_case(Failing(400, "invalid_request_error", f"bad, sent with {KEY}")) as case:
        reply = await case.ask(stream=False)
        assert reply.status_code == 400
        assert reply.json()["error"] == {"type": "invalid_request_error", "message": "bad, sent with [key]"}
        (call,) = case.calls()
        assert (call.status, call.error_class) == (Status.AGENT_ERROR, "invalid_request_error")


@pytest.mark.parametrize(
    "fault",
    [
        Raw(302, (("location", "http://evil.example/v1/messages"),), b""),
        Failing(404, "not_found_error", "model: gone"),
        Failing(402, "billing_error"),
        Failing(400, "invalid_request_error", "Your credit balance is too low to access the API"),
    ],
    ids=["redirect", "model", "billing", "credit"],
)
async def test_what_no_retry_can_mend_ends_the_attempt_at_once(fault: Fault) -> None:
    """S15: a redirect is not followed; an unknown model or an empty account is no agent's fault."""
    async with provider_case(fault) as case:
        assert (await case.ask(stream=False)).status_code == 502
        assert len(case.server.seen) == 1
        assert (await case.end()).outcome is Outcome.INFRA_ERROR


@pytest.mark.parametrize(
    "fault", [Raw(), Cut(), Raw(body=b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}')]
)
async def test_a_reply_that_is_no_message_is_retried(fault: Fault) -> None:
    """P24: garbage, a cut body, or an overload with status 200."""
    async with provider_case(fault) as case:
        assert (await case.ask(stream=False)).status_code == 200
        assert case.calls()[0].retry == 1


async def test_a_provider_that_is_not_there_is_infrastructures() -> None:
    """P27: an attempt without a provider is never an agent's failure."""
    async with provider_case(wait=3) as case:
        attempt = case.gateway.attempts.find(case.id)
        nobody = MessagesClient(ProviderAddress("http://127.0.0.1:9", KEY))
        attempt.model = replace(attempt.model, provider=nobody)
        assert (await case.ask(stream=False)).status_code == 502
        record = await case.end(ProcessExit(ExitCause.EXITED, 1))
        assert (record.outcome, record.turns) == (Outcome.INFRA_ERROR, 0)


async def test_one_attempts_rate_limit_is_everybodys() -> None:
    """P23: what a provider told one attempt holds for all that use the same key."""
    async with provider_case(rate_limited("100"), wait=600) as case:
        await case.ask(stream=False)
        other = await case.gateway.open(CellKey("error-root-cause", "sql", "real", 2))
        case.gateway.attempts.find(case.id).model.pause.extend(50, now_ns=case.clock.now_ns)
        async with case.gateway.agent(other) as agent:
            await agent.post("/v1/messages", json=ask_body())
        assert case.clock.slept == [100, 50]


@pytest.mark.parametrize(
    ("agent", "limit", "outcome"),
    [
        ({"maxTurns": 2}, Limit.TURNS, Outcome.TURN_LIMIT),
        ({"maxTokens": 54}, Limit.TOKENS, Outcome.BUDGET_LIMIT),
        ({"maxUSD": "0.0005"}, Limit.USD, Outcome.BUDGET_LIMIT),
    ],
)
async def test_a_budget_ends_with_a_code_of_its_own(agent: dict[str, Any], limit: Limit, outcome: Outcome) -> None:
    """S16: past a budget nothing is sent; the code can't be mistaken for the provider's 429."""
    async with provider_case(agent=agent) as case:
        assert (await case.ask(stream=False)).status_code == 200
        assert (await case.ask(stream=True)).status_code == 200
        refused = await case.ask(stream=False)
        assert refused.status_code == 429
        assert refused.headers["x-should-retry"] == "false"
        assert refused.json()["error"]["type"] == f"proctor_{limit.value.removesuffix('s')}_limit".replace(
            "_usd_", "_usd_"
        )
        assert len(case.server.seen) == 2
        record = await case.end()
        assert (record.outcome, record.limit, record.denied) == (outcome, limit, 1)


async def test_output_is_capped_by_what_is_left() -> None:
    """M-A8: max_tokens never exceeds the budget's rest."""
    async with provider_case(agent={"maxTokens": 500}) as case:
        await case.ask(stream=False)
        await case.ask(stream=False)
        assert [seen.body["max_tokens"] for seen in case.server.seen] == [500, 473]


async def test_calls_at_the_same_time_keep_order_and_budget() -> None:
    """M-B1, S16: concurrent calls leave no gap in the numbers and can't pass a limit together."""
    release = threading.Event()
    async with provider_case(*[Held(release)] * 3, agent={"maxTurns": 3}) as case:
        tasks = [asyncio.create_task(case.ask(stream=number % 2 == 0)) for number in range(5)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        release.set()
        replies = await asyncio.gather(*tasks)
        assert sorted(reply.status_code for reply in replies) == [200, 200, 200, 429, 429]
        assert done
        seqs = [event.seq for event in case.gateway.sink.trajectory()]
        assert seqs == list(range(1, len(seqs) + 1))


async def test_an_attempt_that_ends_in_the_middle_of_a_call_has_it_in_its_record() -> None:
    """M-A8: the call that was open when the agent was killed is recorded, once, as abandoned."""
    release = threading.Event()
    async with provider_case(Held(release)) as case:
        asking = asyncio.create_task(case.ask(stream=False))
        await asyncio.to_thread(case.server.arrived.wait, 30)
        record = await case.end(ProcessExit(ExitCause.DEADLINE))
        release.set()
        with pytest.raises(httpx.TransportError):
            await asking
        (call,) = case.calls()
        assert call.error_class == "abandoned"
        assert record.outcome is Outcome.TIME_LIMIT
        assert record.events == 3


async def test_the_last_text_that_ended_a_turn_is_the_answer() -> None:
    """The answer: without a PUT, the last assistant text with stop_reason end_turn."""
    replies = iter(
        [
            reply_text("first"),
            reply_tool("run_query", {}, text="thinking aloud"),
            reply_text("cut", stop_reason="max_tokens"),
        ]
    )
    async with provider_case(play=lambda _: next(replies)) as case:
        for _ in range(3):
            await case.ask(stream=True)
        record = await case.end()
        assert case.gateway.sink.blobs[record.answer_digest] == b"first"
        assert record.answer_source == "last_text"


async def test_scripted_models_stream_too() -> None:
    """M-A8: scripted models are behind the same endpoint, streaming and not."""
    async with run_gateway() as gateway:
        opened = await gateway.open(CELL)
        async with gateway.agent(opened) as agent:
            reply = await agent.post("/v1/messages", json={**ask_body(stream=True), "model": "scripted/newest"})
        assert text_of(reply, stream=True) == "played newest"
        assert events_of(reply)[-1]["type"] == "message_stop"
