"""Blinding: names that tell the arm leave the answer, and the investigated system's stay."""

from __future__ import annotations

import pytest

from proctor.api.model import AnthropicModel, Model
from proctor.api.server import Server
from proctor.bootstrap.judge import collect_names
from proctor.core.grading.blinding import Blind, SuiteNames
from support.judges import make_judged

SERVERS = [
    {
        "name": "mcp-clickhouse",
        "stdio": {"command": ["mcp-clickhouse"]},
        "allowedTools": ["list_databases", "run_query"],
    },
    {
        "name": "clickstack",
        "http": {"command": ["npx", "-y", "@hyperdx/acme-mcp", "--port", "8080"], "port": 8080},
        "env": [{"name": "SOURCE_NAME", "value": "Prod Spans"}, {"name": "LOG_LEVEL", "value": "error"}],
        "deniedTools": ["query"],
    },
    {"name": "elsewhere", "http": {"url": "https://api.vendor.example/mcp"}, "deniedTools": []},
]
KEPT = "payments-api can't connect to payments-pg-2"


def make_names() -> SuiteNames:
    model = {"model": "claude-opus-4-7", "secretKeyRef": {"name": "a", "key": "k"}}
    models = [Model(name="opus", anthropic=AnthropicModel.model_validate(model))]
    return collect_names((Server.model_validate(server) for server in SERVERS), models)


def hide(answer: str, *, salt: str = "run-1", kept: str = KEPT, tools: tuple[str, ...] = ()) -> str:
    return Blind(make_names(), salt=salt, kept=kept).hide(answer, tools=tools)


@pytest.mark.parametrize(
    ("answer", "blinded"),
    [
        ("I used run_query and LIST_DATABASES.", "I used [tool] and [tool]."),
        ("mcp__proctor__run_query returned 8 rows", "[tool] returned 8 rows"),
        ("via `query` and query(…), the query tool", "via [tool] and [tool]…), the [tool]"),
        ("The query shows 8 errors.", "The query shows 8 errors."),
        ("ClickHouse says so, and HyperDX too", "[product] says so, and [product] too"),
        ("in the source Prod Spans", "in the source [source]"),
        ("asked api.vendor.example", "asked [product]"),
        ("an acme dashboard", "an [product] dashboard"),
        ("I am Claude, claude-opus-4-7", "I am [product], [product]"),
        ("errors at level error", "errors at level error"),
        ("payments-api can't connect to payments-pg-2", "payments-api can't connect to payments-pg-2"),
        ("run_query2 and xrun_query are others", "run_query2 and xrun_query are others"),
    ],
)
def test_names_are_taken_out(answer: str, blinded: str) -> None:
    """Grading rule 6: server names, tool names, brand terms and source names."""
    assert hide(answer) == blinded


def test_a_servers_letter_is_the_same_in_all_of_a_run() -> None:
    """Grading rule 6: A/B labels are stable per run; over runs they tell nothing of a server's place."""
    text = "mcp-clickhouse, clickstack, elsewhere"
    assert hide(text) == hide(text)
    assert sorted(hide(text).split(", ")) == ["[server A]", "[server B]", "[server C]"]
    assert len({hide(text, salt=f"run-{number}") for number in range(20)}) > 1


def test_tools_that_only_this_attempt_called_are_taken_out_too() -> None:
    """Grading rule 6: with deniedTools a suite does not name what may be called; the trajectory does."""
    assert hide("find_traces told me", tools=("find_traces",)) == "[tool] told me"


def test_names_of_the_investigated_system_stay() -> None:
    """Grading rule 6: what the judge is told anyway is no secret, and without it the answer would say nothing."""
    assert hide("elsewhere", kept="the database elsewhere is down") == "elsewhere"


def test_the_shipped_prompt_keeps_its_own_facts() -> None:
    """The good planted answer loses nothing to blinding."""
    judged = make_judged(make_names())
    assert judged.blind.hide(judged.planted.good) == judged.planted.good


@pytest.mark.parametrize("answer", ["", "\x00" * 100, "[server A]", "mcp__" * 20_000, "run_query" * 8000, "(" * 65_536])
def test_any_text_is_blinded_in_linear_time(answer: str) -> None:
    """S21: catastrophic regex input is bounded."""
    hide(answer)
