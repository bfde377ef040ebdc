"""The same for a user without rights, whose sandboxes get their namespaces from bubblewrap alone."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.sandbox import needs_sandbox, short_folder

_SYSTEM_PYTHON = shutil.which("python3.11", path="/usr/bin") or ""
_NOBODY = 65534
_ROOT = Path(__file__).parents[3]

pytestmark = [
    *needs_sandbox,
    pytest.mark.skipif(os.geteuid() != 0, reason="then every other test is this one"),
    pytest.mark.skipif(not _SYSTEM_PYTHON, reason="no Python 3.11 that everybody can run"),
]

_STARTER = """
import asyncio, dataclasses, json, os, sys
from pathlib import Path
from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.spec import Limits

async def main():
    socket, code, orders = Path(sys.argv[1]) / "g.sock", sys.argv[2], json.loads(sys.argv[3])
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), socket)
    spec = agent_spec(socket, "token", limits=Limits(processes=24))
    for name, order in orders.items():
        command = (spec.command[0], "-ISEc", "import os\\nos.read(0, 1)\\n" + code)
        environment = {**spec.environment, "ATTACK": json.dumps({name: order})}
        ended = await (await launch(dataclasses.replace(spec, command=command, environment=environment))).wait()
        print(json.dumps([name, ended.exit_code, ended.message]))
    server.close()

asyncio.run(main())
"""


async def test_s4_s5_s24_without_root() -> None:
    """S4, S5, S24: an ordinary user's sandboxes refuse the same, and count their own processes."""
    attacker = (_ROOT / "tests/support/attacks.py").read_text()
    orders = {
        "call_kernel": {},
        "dial": {"tcp": [["127.0.0.1", 22]], "unix": ["/run/gateway.sock"]},
        "fork_until_refused": {"most": 200, "seconds": 1},
    }
    site = next((_ROOT / ".venv/lib").glob("python3*/site-packages"), None)
    with short_folder() as folder:
        folder.chmod(0o777)
        said = await _run_as_nobody(folder, attacker, orders, [_ROOT / "operator", *([site] if site else [])])
    assert said["call_kernel"]["seccomp"] == "2"
    assert said["call_kernel"]["calls"]["keyctl"] == "EPERM"
    assert said["dial"]["tcp"] == {"127.0.0.1:22": "ECONNREFUSED"}
    assert said["dial"]["unix"] == {"/run/gateway.sock": "ok"}
    assert said["fork_until_refused"]["reason"] == "EAGAIN"
    assert 15 < said["fork_until_refused"]["count"] < 24


async def _run_as_nobody(folder: Path, code: str, orders: dict[str, Any], path: list[Path]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(_SYSTEM_PYTHON, "-c", _STARTER, str(folder), code, json.dumps(orders)),
        env={"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
    )
    output, errors = await process.communicate()
    if b"Permission denied" in errors or b"ModuleNotFoundError" in errors:
        pytest.skip("this checkout can't be read by everybody")
    assert process.returncode == 0, errors.decode()
    said: dict[str, Any] = {}
    for line in output.decode().splitlines():
        name, exit_code, message = json.loads(line)
        assert exit_code == 0, message
        said |= json.loads(message)
        assert name in said
    return said
