"""The page's answers to gates: status, JSON, and nothing without the token."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.web.__main__ import read_token
from proctor.web.app import build_app
from support.readers import TOKEN, MemoryReader
from support.statuses import PASSING, PROGRESSING, SUITE_UNGATED, SUITES_STOPPED, Object

RUN = "/v1/evals/evalruns/nightly"
SUITE = "/v1/evals/evalsuites/sql-servers"


def client(*replies: Object | ProctorError | None, token: str | None = TOKEN) -> TestClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return TestClient(build_app(MemoryReader(list(replies)), TOKEN), headers=headers)


@pytest.mark.parametrize("state", PROGRESSING)
def test_a_run_that_goes_on_answers_200_and_pending(state: str) -> None:
    """A 404 would be an error to Argo Rollouts, and some of those end an analysis."""
    reply = client(PROGRESSING[state]).get(RUN)
    assert reply.status_code == 200
    assert (reply.json()["verdict"], reply.json()["passes"]) == ("Pending", False)


def test_a_finished_run_and_a_suite() -> None:
    assert client(PASSING["Pass"]).get(RUN).json() == {
        "kind": "EvalRun",
        "namespace": "evals",
        "name": "nightly",
        "generation": 3,
        "verdict": "Pass",
        "enforcement": "Enforce",
        "passes": True,
        "reason": "Because",
        "summary": "it is so",
        "run": "nightly",
    }
    reply = client(SUITES_STOPPED["Fail"]).get(SUITE)
    assert (reply.json()["verdict"], reply.json()["run"]) == ("Fail", "sql-servers-1")
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("token", [None, "", "another", TOKEN[:-1], TOKEN + "x", "tökén"])
def test_nothing_is_told_without_the_token(token: str | None) -> None:
    """Health alone is open, and the API server isn't even asked."""
    reader = MemoryReader([PASSING["Pass"]])
    stranger = TestClient(build_app(reader, TOKEN))
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    for path in (RUN, SUITE, "/v1/evals/evalruns/nightly/report", "/nowhere"):
        assert stranger.get(path, headers=headers).status_code == 401
    assert reader.asked == []
    assert stranger.get("/healthz").status_code == 200


def test_a_report_says_what_it_may_load_and_who_may_frame_it() -> None:
    """D5: nothing but its own script and style, in no frame, and in no cache."""

    async def render(_: Object) -> str:
        return "<!doctype html>"

    app = build_app(MemoryReader([PASSING["Pass"]]), TOKEN, render)
    reply = TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}).get(f"{RUN}/report")
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert (reply.text, reply.headers["cache-control"]) == ("<!doctype html>", "no-store")


@pytest.mark.parametrize(
    ("reply", "status"),
    [(None, 404), (Retryable("the API server is away"), 503), (Terminal("not allowed"), 502), (SUITE_UNGATED, 409)],
)
def test_what_can_not_be_answered_says_why(reply: Object | ProctorError | None, status: int) -> None:
    answer = client(reply).get(SUITE)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2fb", "A", "x" * 64, "a;b"])
def test_only_names_reach_the_api_server(name: str) -> None:
    """No part of a path is anything but a name."""
    reader = MemoryReader([PASSING["Pass"]])
    stranger = TestClient(build_app(reader, TOKEN), headers={"Authorization": f"Bearer {TOKEN}"})
    assert stranger.get(f"/v1/evals/evalruns/{name}").status_code == 404
    assert reader.asked == []


def test_a_token_is_long_and_never_quoted(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("hunter2")
    with pytest.raises(InvalidInput, match="shorter than 16") as refused:
        read_token(path)
    assert "hunter2" not in str(refused.value)
    path.write_text(TOKEN + "\n")
    assert read_token(path) == TOKEN
    with pytest.raises(InvalidInput, match="no token can be read"):
        read_token(tmp_path / "nothing")
