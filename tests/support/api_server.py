"""A small API server over HTTP: it gives its replies one after another, and a kubeconfig that leads to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

DROPPED = "dropped"
"""A reply that is none: the connection is closed instead."""


@dataclass
class ScriptedApi:
    """What is answered, and what was asked.

    Attributes:
        replies: objects, HTTP statuses or `DROPPED`; the last one stays.
    """

    replies: Sequence[dict[str, Any] | int | str]
    paths: list[str] = field(default_factory=list)
    kubeconfig: Path = Path()

    def next_reply(self, path: str) -> dict[str, Any] | int | str:
        reply = self.replies[min(len(self.paths), len(self.replies) - 1)]
        self.paths.append(path)
        return reply


@contextmanager
def serve_api(
    folder: Path, replies: Sequence[dict[str, Any] | int | str], *, namespace: str = "evals"
) -> Iterator[ScriptedApi]:
    """Serve replies until the block ends."""
    api = ScriptedApi(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            reply = api.next_reply(self.path)
            if reply == DROPPED:
                self.close_connection = True
                return
            status = reply if isinstance(reply, int) else 200
            body = json.dumps({"kind": "Status", "message": "no"} if isinstance(reply, int) else reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the test looks at `paths`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        api.kubeconfig = write_kubeconfig(folder, f"http://127.0.0.1:{server.server_port}", namespace)
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_kubeconfig(folder: Path, url: str, namespace: str) -> Path:
    path = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "k",
        "contexts": [{"name": "k", "context": context}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(document))
    return path
