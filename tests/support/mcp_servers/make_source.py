"""The `provision` hook of `accounts_server.py`: makes an account and a source, and prints how they are used.

`make_source.py [MODE]` goes wrong in the way that the mode's name says.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

SERVER = os.environ.get("PROCTOR_SERVER_URL", "")
FIELDS = ("host", "port", "user", "password", "database")


def post(path: str, token: str, value: dict[str, Any]) -> Any:
    request = urllib.request.Request(  # noqa: S310 - the server that it prepares
        SERVER + path, data=json.dumps(value).encode(), headers={"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310 - as above
        return json.load(reply)


def make() -> dict[str, Any]:
    token = post("/accounts", os.environ.get("ADMIN_TOKEN", "admin"), {"name": "proctor"})["token"]
    source = post("/sources", token, {name: os.environ[f"PROCTOR_DATASET_{name.upper()}"] for name in FIELDS})
    return {"url": f"{SERVER}/mcp/{source['id']}", "headers": {"Authorization": f"Bearer {token}"}}


def can_connect(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def look(targets: str) -> None:
    seen = {name: can_connect(*target) for name, target in json.loads(targets).items()}
    sys.exit(json.dumps({"seen": seen, "told": SERVER, "variables": sorted(os.environ)}))


def flood() -> None:
    for _ in range(100):
        sys.stdout.write("x" * 1_000_000)


def leave_child() -> None:
    subprocess.Popen(["/bin/sleep", "600"])
    print(json.dumps(make()))


def fail_late() -> None:
    made = make()
    print(json.dumps(made), flush=True)
    sys.exit(f"cannot close {made['headers']['Authorization']}")


def close_early() -> None:
    print(json.dumps(make()), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    time.sleep(1)


MODES: dict[str, Callable[[], object]] = {
    "": lambda: print(json.dumps(make())),
    "fail": lambda: sys.exit("no account: the server is full"),
    "hang": lambda: time.sleep(600),
    "garbage": lambda: print("done!\x1b[31m\x00"),
    "silent": lambda: None,
    "flood": flood,
    "fork": leave_child,
    "elsewhere": lambda: print(json.dumps({**make(), "url": "http://127.0.0.1:1/mcp"})),
    "unknown": lambda: print(json.dumps({**make(), "token": "t"})),
    "protocol": lambda: print(json.dumps({"headers": {"Host": "evil.example"}})),
    "early-close": close_early,
    "late-failure": fail_late,
    "look": lambda: look(sys.argv[2]),
}

if __name__ == "__main__":
    print("making an account …", flush=True)
    MODES[sys.argv[1] if len(sys.argv) > 1 else ""]()
