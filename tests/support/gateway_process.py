"""The gateway as the process that it is in production."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.gateway import OPERATOR_TOKEN, RUN, RUN_KEY

BRIEF = {"prompt": "Checkout requests have been failing for ten minutes. What is the cause?"}

DATASET = {"host": "127.0.0.1", "port": 9, "user": "agent", "password": "dataset-password", "database": "ds"}


def make_config(suite: Mapping[str, Any], directory: Path, **fields: Any) -> dict[str, Any]:
    """A configuration without a store, whose servers run as plain processes."""
    return {
        "run": RUN,
        "suite": suite,
        "runKey": RUN_KEY.decode(),
        "operatorToken": OPERATOR_TOKEN,
        "scenarios": {scenario["name"]: {"brief": BRIEF, "dataset": DATASET} for scenario in suite["scenarios"]},
        "spoolDir": str(directory / "spool"),
        "socketsDir": str(directory / "s"),
        "sandbox": "none",
        **fields,
    }


@dataclass
class GatewayProcess:
    """A running gateway, and what it has logged once it has ended."""

    process: subprocess.Popen[bytes]
    directory: Path
    control_socket: str
    logs: bytes = b""

    def client(self, socket: str, token: str) -> httpx.Client:
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=socket),
            base_url="http://gateway",
            headers={"authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
        )

    def control(self) -> httpx.Client:
        return self.client(self.control_socket, OPERATOR_TOKEN)

    def stop(self) -> int:
        """End it as its parent's death would."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        assert self.process.stderr is not None
        self.logs += self.process.stderr.read()
        return code


@contextmanager
def start_gateway(suite: Mapping[str, Any], **fields: Any) -> Iterator[GatewayProcess]:
    """Start `python -m proctor.gateway`; it is gone on leaving."""
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        directory = Path(name)
        process = subprocess.Popen(
            [sys.executable, "-m", "proctor.gateway"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(make_config(suite, directory, **fields)).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        try:
            assert line, process.stderr.read() if process.stderr else b""
            gateway = GatewayProcess(process, directory, json.loads(line)["control"])
            yield gateway
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
