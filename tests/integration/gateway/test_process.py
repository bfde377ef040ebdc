"""`python -m proctor.gateway` as others start it."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.gateway import CELL, make_suite
from support.gateway_process import make_config, start_gateway
from support.local_runs import SQL_SERVER

SUITE = make_suite().to_file()


def test_it_serves_until_its_standard_input_ends() -> None:
    """P6, M-A5: an attempt through the real process; nothing is left when whoever started it has gone."""
    with start_gateway(SUITE) as gateway:
        with gateway.control() as control:
            opened = control.post(
                "/runs/attempts", json={"cell": str(CELL), "attempt": 1, "deadlineSeconds": 60}
            ).json()
            with gateway.client(opened["socket"], opened["token"]) as agent:
                brief = agent.get("/brief").json()
                assert "site reliability engineer" in brief["system"]
                assert brief["prompt"].startswith("Checkout requests")
            assert control.get("/runs/progress").json()["open"][0]["requests"] == 1
        assert gateway.stop() == 0
        assert not Path(opened["socket"]).exists()
        assert not Path(gateway.control_socket).exists()


def test_a_wrong_configuration_is_told_without_its_values() -> None:
    """S15: the message names fields; keys never show up in it."""
    config = make_config(
        SUITE, Path("/nowhere"), secrets={"a/b": "sk-very-secret"}, colour="red", runKey="short-secret"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "proctor.gateway"],
        input=json.dumps(config).encode() + b"\n",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 64
    assert b"colour" in ended.stderr
    assert b"secret" not in ended.stderr


def find_processes(mark: str) -> set[int]:
    """Processes whose command line has a mark."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "left"])
@pytest.mark.parametrize("sandbox", [pytest.param("bwrap", marks=pytest.mark.sandbox), "none"])
def test_servers_end_with_their_gateway(sandbox: str, *, killed: bool) -> None:
    """M-A5, M-D6: however the gateway ends, nothing that it started is left."""
    mark = f"--mark-{secrets.token_hex(8)}"
    suite = SUITE | {
        "servers": [{"name": "sql", "stdio": {"command": ["python3", str(SQL_SERVER), mark]}, "deniedTools": []}]
    }
    with start_gateway(suite, sandbox=sandbox) as gateway:
        with gateway.control() as control:
            opened = control.post(
                "/runs/attempts", json={"cell": str(CELL), "attempt": 1, "deadlineSeconds": 60}
            ).json()
            with gateway.client(opened["socket"], opened["token"]) as agent:
                assert agent.get("/tools").status_code == 200
        assert find_processes(mark)
        if killed:
            gateway.process.kill()
            gateway.process.wait()
        else:
            assert gateway.stop() == 0
        given_up = time.monotonic() + 30
        while find_processes(mark) and time.monotonic() < given_up:
            time.sleep(0.05)
        assert find_processes(mark) == set()
