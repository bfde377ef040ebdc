"""The page as its own process: it reads a cluster's API server, and answers on the loopback."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from cluster.kubectl import Kubectl
from support.installed import await_it
from support.mcp import find_free_port
from support.operated import make_settings
from support.readers import TOKEN

STOP_SECONDS = 30


@contextlib.contextmanager
def serve_page(kubectl: Kubectl, folder: Path) -> Iterator[str]:
    """Serve the page until the block ends, and give its address.

    Args:
        kubectl: the cluster.
        folder: empty; what the chart mounts is written there.
    """
    mounted = {
        "operator.json": json.dumps(make_settings().to_file()),
        "web/token": TOKEN,
        "clickhouse/user": "proctor",
        "clickhouse/password": "unused: no report is asked for",
    }
    for name, content in mounted.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    address = f"127.0.0.1:{find_free_port()}"
    environment = {"KUBECONFIG": str(kubectl.kubeconfig), "PROCTOR_MOUNTED": str(folder), "PROCTOR_LISTEN": address}
    process = subprocess.Popen([sys.executable, "-m", "proctor.web"], env=os.environ | environment)
    try:
        await_it("the page answers", lambda: process.poll() is None and _is_healthy(address))
        yield address
    finally:
        process.terminate()
        process.wait(timeout=STOP_SECONDS)


def _is_healthy(address: str) -> bool:
    try:
        with urlopen(f"http://{address}/healthz", timeout=5) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False
