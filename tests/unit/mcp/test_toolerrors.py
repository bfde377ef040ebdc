"""Whose doing a failed call is (grading rule 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.gatewaypolicy.toolerrors import (
    Fault,
    blame_fault,
    blame_http_status,
    blame_result,
    blame_rpc_error,
)
from proctor.core.trajectory.events import Status


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_is_someones_and_never_the_agents(fault: Fault) -> None:
    """M-A9: a server that fails, or the way to it, is never the agent's mistake."""
    blame = blame_fault(fault, 503)
    assert blame.status in {Status.SERVER_ERROR, Status.INFRA_ERROR}
    assert blame.error_class


@given(st.text())
def test_no_text_moves_the_blame(text: str) -> None:
    """M-A9, grading rule 8: never by finding "503" in text."""
    for words in (text, "503 Service Unavailable", "429", "ECONNREFUSED", "timeout while connecting"):
        result = {"content": [{"type": "text", "text": words}], "isError": True}
        assert blame_result(result).status is Status.AGENT_ERROR


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32602, Status.AGENT_ERROR),
        (-32601, Status.AGENT_ERROR),
        (-32002, Status.AGENT_ERROR),
        (-32603, Status.SERVER_ERROR),
        (-32700, Status.SERVER_ERROR),
        (-32600, Status.SERVER_ERROR),
        (-32000, Status.SERVER_ERROR),
        (7, Status.SERVER_ERROR),
    ],
)
def test_codes(code: int, status: Status) -> None:
    """Grading rule 8: by JSON-RPC error code."""
    assert blame_rpc_error(code).status is status
    assert blame_rpc_error(code).error_class == str(code)


@pytest.mark.parametrize(
    ("http", "status"),
    [
        (429, Status.INFRA_ERROR),
        (502, Status.INFRA_ERROR),
        (503, Status.INFRA_ERROR),
        (504, Status.INFRA_ERROR),
        (401, Status.INFRA_ERROR),
        (413, Status.AGENT_ERROR),
        (400, Status.SERVER_ERROR),
        (500, Status.SERVER_ERROR),
    ],
)
def test_http_statuses(http: int, status: Status) -> None:
    """M-A9: rate limits and 503s are not the agent's, nor in its error rate at all."""
    assert blame_http_status(http).status is status


def test_a_lost_engine_is_infrastructure_only_by_the_forwarders_word() -> None:
    """Grading rule 8: the same failed result is the agent's, unless the way to the engine refused meanwhile."""
    failed = {"content": [], "isError": True}
    assert blame_result(failed).status is Status.AGENT_ERROR
    assert blame_result(failed, engine_lost=True).status is Status.INFRA_ERROR
    assert blame_result({"content": []}, engine_lost=True).status is Status.OK
    assert blame_rpc_error(-32603, engine_lost=True).status is Status.INFRA_ERROR
    assert blame_rpc_error(-32602, engine_lost=True).status is Status.AGENT_ERROR


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"content": [{"type": "text", "text": '{"error": "x"}'}]}, True),
        ({"content": [{"type": "text", "text": ' \n{"error": {"code": 1}}'}]}, True),
        ({"content": [], "structuredContent": {"error": "x"}}, True),
        ({"content": [{"type": "text", "text": '{"error": null, "rows": []}'}]}, False),
        ({"content": [{"type": "text", "text": '{"rows": [{"error": "x"}]}'}]}, False),
        ({"content": [{"type": "text", "text": '[{"error": "x"}]'}]}, False),
        ({"content": [{"type": "text", "text": '"error": "x"'}]}, False),
        ({"content": [{"type": "text", "text": '{"error": "x"'}]}, False),
        ({"content": [{"type": "text", "text": "{" * 100_000 + '"error"'}]}, False),
        ({"content": "error"}, False),
        ({"content": [7, {"text": 7}]}, False),
        ({}, False),
    ],
)
def test_the_error_field(result: dict[str, object], failed: object) -> None:
    """errorField: a JSON result object with that key is an error, though `isError` is false; nothing else is."""
    assert (blame_result(result, error_field="error").status is Status.AGENT_ERROR) is failed
    assert blame_result(result).status is Status.OK
