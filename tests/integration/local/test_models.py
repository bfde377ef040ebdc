"""A real model differs from a scripted one only by its key: the same suite against a server that speaks its API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.settings import shipped_scenarios_dir
from support.local_runs import Machine, make_suite
from support.messages_server import KEY, MODEL, Failing, MessagesServer, overloaded, play_policy, serve_messages


@pytest.fixture
def provider() -> Iterator[MessagesServer]:
    scenario = shipped_scenarios_dir() / "error-root-cause"
    with serve_messages(play=play_policy(scenario, "newest", {"query": "sql"}), key=KEY) as server:
        yield server


def run_model(machine: Machine, provider: MessagesServer, suite: Path) -> tuple[int, dict[str, object], str]:
    host = provider.url.removeprefix("http://")
    with_key = Machine(machine.root, {"ANTHROPIC_API_KEY": KEY})
    model = ("--model", MODEL, "--base-url", provider.url, "--allow-host", host)
    finished = with_key.call("run", str(suite), *model, "--new", "--json")
    return finished.returncode, json.loads(finished.stdout), finished.stderr


def holders_of(secret: bytes, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def test_a_model_behind_the_messages_api(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """M-A10: `--model` on the same cells; an overload in between costs time, not a cell; the key is nowhere on disk."""
    provider.faults.append(overloaded("1"))
    code, document, err = run_model(machine, provider, machine.write_suite(make_suite("model")))
    assert code == 0, err
    cells = {cell["cell"]: cell for cell in document["cells"]}  # type: ignore[attr-defined]
    for replicate in (1, 2):
        cell = cells[f"error-root-cause/sql/{MODEL}/{replicate}"]
        assert cell["score"] == reference[f"error-root-cause/sql/newest/{replicate}"]
    waited = sum(Decimal(cell["waitedSeconds"]) for cell in cells.values())
    assert waited >= Decimal("0.5")
    assert not holders_of(KEY.encode(), machine.data_dir)


def test_a_key_that_is_refused_says_so(
    machine: Machine, reference: dict[str, str | None], provider: MessagesServer
) -> None:
    """A model that answers 401: an Error that names the reason, never a score of 0."""
    assert reference
    provider.faults.extend(Failing(401, "authentication_error", "invalid x-api-key") for _ in range(100))
    code, document, err = run_model(machine, provider, machine.write_suite(make_suite("refused")))
    status = document["run"]["status"]  # type: ignore[index]
    assert (code, status["verdict"], status["reason"]) == (3, "Error", "TooManyInfraErrors"), err
    assert "refused the key" in status["summary"]
