"""The embedded engines of a cluster: one process that seeds datasets, serves each to its user, and keeps results."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from support.engines import ask
from support.houses import House, keep_house
from support.mounted import DATASET_PASSWORD
from support.seeding import EVERYTHING

pytestmark = pytest.mark.engine

RECIPE = (EVERYTHING / "recipe.yaml").read_text()
USER, OTHER = "pr_0123456789_0", "pr_9876543210_0"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with keep_house(tmp_path_factory.mktemp("h")) as running:
        yield running


@pytest.fixture(scope="module")
def record(house: House) -> dict[str, Any]:
    answer = house.seed(RECIPE)
    assert "record" in answer, answer
    return dict(answer["record"])


def serve(house: House, record: dict[str, Any], user: str = USER) -> dict[str, Any]:
    reply = house.serve(record["hash"], user)
    assert reply.status_code == httpx.codes.OK, reply.text
    return dict(reply.json())


def test_equal_orders_are_one_dataset(house: House, record: dict[str, Any]) -> None:
    """M-D1: equal inputs, equal hash; a Job that is tried again builds nothing twice."""
    assert house.seed(RECIPE)["record"] == record
    assert house.seed(RECIPE, seed=43)["record"]["hash"] != record["hash"]


def test_a_dataset_is_served_to_one_user_who_sees_nothing_else(house: House, record: dict[str, Any]) -> None:
    """architecture, Datasets (S19): SELECT and SHOW on one database; results are absent; the password is the run's."""
    served = serve(house, record)
    agent = house.agent(served, USER)
    table = next(iter(record["tables"]))
    count = f"SELECT count() FROM {table}"  # noqa: S608 - a table of ours
    assert int(ask(agent, count).text) == record["tables"][table]["rows"]
    assert ask(agent, "SHOW DATABASES").text.split() == [record["database"]]
    for forbidden in ("SELECT * FROM system.processes", "CREATE TABLE x (a Int8) ENGINE = Memory", "SYSTEM SHUTDOWN"):
        assert not ask(agent, forbidden).ok, forbidden
    assert ask(replace(agent, password="wrong"), "SELECT 1").code == 516
    assert ask(replace(agent, port=house.ports[0], database="default"), "SELECT 1").code == 516, "not where results are"
    assert ask(house.results, "SELECT 1").ok
    assert ask(replace(house.results, port=served["port"]), "SELECT 1").code == 516, "the owner's password is not here"


def test_two_users_of_one_dataset_have_an_engine_each(house: House, record: dict[str, Any]) -> None:
    """pain-points: two runs on one dataset do not touch one another."""
    first, second = serve(house, record), serve(house, record, OTHER)
    assert first["port"] != second["port"]
    assert serve(house, record) == first, "asking again changes nothing"
    assert ask(house.agent(second, USER), "SELECT 1").code == 516
    with house.control() as client:
        assert client.delete(f"/served/{OTHER}").status_code == httpx.codes.NO_CONTENT
        assert client.delete(f"/served/{OTHER}").status_code == httpx.codes.NO_CONTENT
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the kernel likes
        ask(house.agent(second, OTHER), "SELECT 1")


def test_killed_and_started_again_it_serves_the_same_at_the_same_ports(house: House, record: dict[str, Any]) -> None:
    """issue, Faults: ClickHouse down; whoever was told an address and a password goes on with them."""
    served = serve(house, record)
    ask(house.results, "CREATE TABLE IF NOT EXISTS kept (a Int8) ENGINE = MergeTree ORDER BY a")
    assert ask(house.results, "INSERT INTO kept VALUES (1)").ok
    house.end(signal.SIGKILL)
    house.start()
    assert serve(house, record) == served
    assert ask(house.agent(served, USER), "SHOW DATABASES").text.split() == [record["database"]]
    assert ask(house.results, "SELECT count() > 0 FROM kept").text.strip() == "1"


def test_what_is_over_is_served_no_more(house: House, record: dict[str, Any]) -> None:
    """S31: a run that nobody ended leaves no engine behind: its time is on disk."""
    late = "pr_aaaaaaaaaa_0"
    until = "2026-01-01T00:00:00Z"
    served = house.serve(record["hash"], late, until=until).json()
    house.end()
    house.start()
    with pytest.raises(OSError):  # noqa: PT011 - as above
        ask(house.agent(served, late), "SELECT 1")
    assert not (house.directory / "served" / late).exists()


def test_it_ends_in_order(house: House) -> None:
    """issue, Children: SIGTERM ends engines before the process."""
    assert house.end() == 0
    house.start()


def served(**fields: Any) -> dict[str, Any]:
    return {"hash": "0" * 16, "user": "u", "password": DATASET_PASSWORD, "until": "2027-01-01T00:00:00Z", **fields}


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("/datasets", {"scenario": "../x", "recipe": "r", "seed": 1, "anchor": "2026-11-30T12:00:00Z"}, "scenario"),
        ("/datasets", {"surprise": 1}, "scenario"),
        ("/served", served(user="a;b"), "user"),
        ("/served", served(hash="/etc"), "hash"),
        ("/served", served(surprise=1), "surprise"),
        ("/served", served(), "not here"),
    ],
)
def test_hostile_orders_are_refused_for_good(house: House, path: str, body: dict[str, Any], word: str) -> None:
    """S29: names become paths and SQL; no Job tries such an order again."""
    with house.control() as client:
        reply = client.post(path, json=body)
    assert reply.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert (reply.json()["retryable"], word in reply.json()["error"]) == (False, True)
    assert DATASET_PASSWORD not in reply.text


def test_a_recipe_that_is_none_is_told_at_the_end(house: House) -> None:
    """P-seeding: the message names line and field; it is final."""
    told = house.seed("version: 1\nsurprise: 2\n")
    assert told["retryable"] is False
    assert "recipe.yaml" in told["error"]


def test_only_whoever_knows_the_password_may_order(house: House) -> None:
    """S17: the control port is as closed as the database."""
    with house.control("wrong") as client:
        assert client.post("/datasets", json={}).status_code == httpx.codes.UNAUTHORIZED
        assert client.get("/healthz").text == "ok\n"


def test_a_user_reads_one_dataset_alone(house: House, record: dict[str, Any]) -> None:
    """architecture, Datasets: one user per dataset."""
    serve(house, record)
    other = house.seed(RECIPE, seed=43)["record"]
    reply = house.serve(other["hash"], USER)
    assert reply.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "never two" in reply.json()["error"]
