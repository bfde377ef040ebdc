"""Opening an attempt whose opener died, and the time that an attempt has."""

from __future__ import annotations

import httpx
import pytest

from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import ExitCause, ProcessExit
from proctor.errors import InvalidInput
from proctor.gateway.attempts import Attempts
from proctor.gateway.patience import Patience
from support.gateway import CELL, OPERATOR_TOKEN, RunningGateway, run_gateway


async def tcp_client(gateway: RunningGateway, token: str = "") -> httpx.AsyncClient:
    host, port = await gateway.listeners.open_tcp("127.0.0.1", 0)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers, timeout=30, trust_env=False)


async def test_an_attempt_that_served_nothing_is_told_again() -> None:
    """issue, Faults: the operator killed between opening an attempt and creating its pod opens it again."""
    async with run_gateway() as gateway:
        first = await gateway.open()
        assert await gateway.open() == first
        assert len(gateway.attempts.open_attempts) == 1
        assert [kind for kind, _ in gateway.sink.kinds()] == ["attempt_opened"]


async def test_an_attempt_that_somebody_uses_is_nobody_elses() -> None:
    """S16: a token that was used is told to no second sandbox."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with gateway.agent(opened) as agent:
            assert (await agent.get("/brief")).status_code == 200
        with pytest.raises(InvalidInput, match="opened before"):
            await gateway.open()


async def test_an_attempt_that_ended_is_never_opened_again() -> None:
    """P4: a new try has a new number."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        await gateway.attempts.end(opened.id, ProcessExit(ExitCause.LOST))
        with pytest.raises(InvalidInput, match="opened before"):
            await gateway.open()


async def test_an_attempt_of_an_earlier_gateway_is_told_and_never_opened_again() -> None:
    """P4: what it did is in the record under its number; a second try there would be mixed with the first."""
    async with run_gateway() as gateway:
        key = AttemptKey(gateway.context.run, CELL, 1)
        gateway.attempts = Attempts(gateway.context, gateway.listeners, begun=[key])
        assert gateway.attempts.voided == [key.opaque_id]
        with pytest.raises(InvalidInput, match="opened before"):
            await gateway.open()


async def test_an_attempt_is_always_in_one_of_three_lists() -> None:
    """issue, Reconciling: open, then settling until the store has its rows, then ended; never in none."""
    seen: list[tuple[bool, bool, bool]] = []
    async with run_gateway() as gateway:

        def look(attempts: Attempts) -> None:
            ended = [record.key.opaque_id for record in attempts._ended]
            seen.append((opened.id in attempts.open_attempts, opened.id in attempts.settling, opened.id in ended))

        async def hold() -> None:
            look(gateway.attempts)

        gateway.sink.hold = hold
        opened = await gateway.open()
        look(gateway.attempts)
        await gateway.attempts.end(opened.id, ProcessExit(ExitCause.EXITED, 0))
        await gateway.attempts.ended_after(0, wait_seconds=10)
        look(gateway.attempts)
    assert seen == [(True, False, False), (False, True, False), (False, False, True)]


async def test_an_agents_time_begins_with_its_first_request() -> None:
    """M-A9: a pod that takes a minute to be scheduled costs the agent none of its own minutes."""
    now = [0]
    async with run_gateway(patience=Patience(monotonic_ns=lambda: now[0])) as gateway:
        opened = await gateway.open()
        now[0] = 60_000_000_000
        async with gateway.agent(opened) as agent:
            await agent.get("/brief")
        now[0] += 2_000_000_000
        attempt = gateway.attempts.find(opened.id)
        assert attempt is not None
        assert attempt.active_us == 2_000_000


async def test_a_kubelet_needs_neither_token_nor_name() -> None:
    """cluster: readiness is asked by address, over TCP alone; every other door stays shut."""
    async with run_gateway() as gateway, await tcp_client(gateway) as client:
        assert (await client.get("/healthz", headers={"host": "10.1.2.3:8080"})).text == "ok\n"
        assert (await client.get("/runs/health")).status_code == 401
        assert (await client.post("/healthz")).status_code == 401
        async with gateway.control() as control:
            assert (await control.get("/healthz")).status_code == 403


async def test_a_token_belongs_to_the_address_that_used_it_first() -> None:
    """S16: over TCP the source is the peer's address."""
    async with run_gateway() as gateway:
        opened = await gateway.open()
        async with await tcp_client(gateway, opened.token) as here:
            assert (await here.get("/brief")).status_code == 200
        host, port = await gateway.listeners.open_tcp("127.0.0.1", 0)
        transport = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
        async with httpx.AsyncClient(
            base_url=f"http://{host}:{port}", transport=transport, headers={"authorization": f"Bearer {opened.token}"}
        ) as there:
            refused = await there.get("/brief")
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            401,
            "the token belongs to another source",
        )
        assert OPERATOR_TOKEN not in refused.text
        assert CELL.scenario not in refused.text
