"""`python -m proctor.gateway` as others start it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.gateway import CELL, make_suite
from support.gateway_process import make_config, start_gateway

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
