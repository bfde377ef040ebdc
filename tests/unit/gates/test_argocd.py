"""Argo CD's health checks, run in a real Lua without its libraries, as Argo CD runs them."""

from __future__ import annotations

from typing import Any

import pytest
from lupa import LuaRuntime

from support.recipes_of_gates import load_gate
from support.statuses import (
    PASSING,
    PROGRESSING,
    STOPPED,
    SUITE_UNGATED,
    SUITES_PASSING,
    SUITES_PROGRESSING,
    SUITES_STOPPED,
    SUSPENDED,
    UNKNOWN,
    Object,
    refused_suite,
)

RUN = "resource.customizations.health.proctor.dev_EvalRun"
SUITE = "resource.customizations.health.proctor.dev_EvalSuite"
# Argo CD opens the base library and tables alone; nothing may reach files, programs or other code.
CLOSED = "for _, name in ipairs({'io','os','package','require','dofile','loadfile','load','debug'}) do _G[name]=nil end"


def health(key: str, body: Object) -> tuple[str, str]:
    (configuration,) = load_gate("argocd-cm.yaml")
    lua: Any = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    lua.execute(CLOSED)
    lua.globals().obj = lua.table_from(body, recursive=True)
    found = lua.execute(configuration["data"][key])
    return found.status, found.message


def cases(key: str, states: dict[str, dict[str, Object]]) -> list[Any]:
    return [
        pytest.param(key, body, wanted, id=f"{key[-9:]}: {name}")
        for wanted, bodies in states.items()
        for name, body in bodies.items()
    ]


@pytest.mark.parametrize(
    ("key", "body", "wanted"),
    [
        *cases(RUN, {"Progressing": PROGRESSING, "Healthy": PASSING, "Degraded": STOPPED}),
        *cases(RUN, {"Degraded": {"a word of the future": UNKNOWN}, "Suspended": {"suspended": SUSPENDED}}),
        *cases(SUITE, {"Progressing": SUITES_PROGRESSING, "Healthy": SUITES_PASSING, "Degraded": SUITES_STOPPED}),
        *cases(SUITE, {"Healthy": {"no gate": SUITE_UNGATED}, "Degraded": {"refused": refused_suite()}}),
    ],
)
def test_health(key: str, body: Object, wanted: str) -> None:
    """A sync wave goes on at Healthy, fails at the first Degraded, and waits otherwise."""
    status, message = health(key, body)
    assert status == wanted
    assert message


def test_an_audited_failure_says_so() -> None:
    assert health(RUN, PASSING["Audit and Fail"])[1] == "Fail: audit only: it is so"
    assert health(SUITE, refused_suite())[1] == "schedule names no time"
