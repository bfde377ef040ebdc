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
from asyncio.subprocess import PIPE
from pathlib import Path
from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.sandboxed import launch
from proctor.adapters.sandbox.spec import Limits
from proctor.adapters.sandbox.starting import Streams, start

async def main():
    socket, code, orders = Path(sys.argv[1]) / "g.sock", sys.argv[2], json.loads(sys.argv[3])
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), socket)
    spec = agent_spec(socket, "token", limits=Limits(processes=24, files=2000))

    def build(code, **variables):
        command = (spec.command[0], "-ISEc", "import os\\nos.read(0, 1)\\n" + code)
        return dataclasses.replace(spec, command=command, environment={**spec.environment, **variables})

    started = await start(build(code, ATTACK=json.dumps(orders)), Streams(PIPE, PIPE, PIPE))
    print((await started.process.stdout.read()).decode())
    await started.gone()
    started.close()
    ended = await (await launch(build(sys.argv[4]))).wait()
    print(json.dumps([ended.cause, ended.message]))
    server.close()

asyncio.run(main())
"""

_MANY_FILES = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0)  # no longer dumpable: what /proc shows of it is root's
for number in range(60000):
    os.close(os.open(f"/dev/shm/{number}", os.O_CREAT))
time.sleep(20)
"""


async def test_s4_s5_s23_s24_without_root() -> None:
    """S4, S5, S23, S24: an ordinary user's sandboxes refuse the same, and count their own processes."""
    attacker = (_ROOT / "tests/support/attacks.py").read_text()
    orders = {
        "call_kernel": {},
        "dial": {"tcp": [["127.0.0.1", 22]], "unix": ["/run/gateway.sock"]},
        "fork_until_refused": {"most": 200, "seconds": 1},
    }
    site = next((_ROOT / ".venv/lib").glob("python3*/site-packages"), None)
    with short_folder() as folder:
        folder.chmod(0o777)
        said, many = await _run_as_nobody(folder, attacker, orders, [_ROOT / "operator", *([site] if site else [])])
    assert (said["call_kernel"]["seccomp"], said["call_kernel"]["keyctl"]) == ("2", "EPERM")
    assert (said["dial"]["tcp 127.0.0.1:22"], said["dial"]["unix /run/gateway.sock"]) == ("ECONNREFUSED", "ok")
    assert said["fork_until_refused"]["reason"] == "EAGAIN"
    assert 15 < said["fork_until_refused"]["count"] < 24
    assert many == ["excess", "it made more than 2000 files"]


async def _run_as_nobody(folder: Path, code: str, orders: dict[str, Any], path: list[Path]) -> list[Any]:
    process = await asyncio.create_subprocess_exec(
        *(_SYSTEM_PYTHON, "-c", _STARTER, str(folder), code, json.dumps(orders), _MANY_FILES),
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
    return [json.loads(line) for line in output.decode().splitlines() if line]
