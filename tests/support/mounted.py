"""A run's mounted folder, as pods find it, and a stand-in of the API server for a grader's one ConfigMap."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme

from proctor.bootstrap.children_file import ChildrenFile
from proctor.core.digests import canonical_json

RUN = "11111111-2222-3333-4444-555555555555"
RUN_KEY, OPERATOR_TOKEN = "ab" * 32, "cd" * 32
DATASET_PASSWORD = "ef" * 32
ADMIN, ADMIN_PASSWORD = "proctor", "admin-password-of-the-house"
ANCHOR = "2026-11-30T12:00:00Z"


def make_suite(**fields: Any) -> dict[str, Any]:
    """A frozen suite of one scenario, one stdio server and one scripted model."""
    return {
        "scenarios": [{"name": "error-root-cause", "volume": "0.005"}],
        "anchor": ANCHOR,
        "servers": [{"name": "sql", "stdio": {"command": ["sql-server"]}, "allowedTools": ["run_query"]}],
        "models": [{"name": "newest", "scripted": {"policy": "newest"}}],
        "replicates": 1,
        "judge": {"none": True},
        "gate": {"enforcement": "Audit"},
        **fields,
    }


def make_children(**fields: Any) -> dict[str, Any]:
    """The children of a run of which nothing is known but where results go."""
    return {
        "run": RUN,
        "runName": "checkout-1",
        "anchor": ANCHOR,
        "store": {"host": "127.0.0.1", "port": 9},
        **fields,
    }


def make_dataset(**fields: Any) -> dict[str, Any]:
    """A dataset's place."""
    return {
        "hash": "0123456789abcdef",
        "digest": "d" * 64,
        "database": "ds_0123456789abcdef_1",
        "host": "127.0.0.1",
        "port": 9,
        "user": "pr_0123456789_0",
        **fields,
    }


def write_mount(
    root: Path, *, suite: Mapping[str, Any] | None = None, children: Mapping[str, Any] | None = None
) -> Path:
    """Write a whole folder; return it."""
    files = {
        "suite/suite.json": canonical_json(suite or make_suite()).decode(),
        "children/children.json": ChildrenFile.model_validate(dict(children or make_children())).render(),
        "keys/runKey": RUN_KEY,
        "keys/operatorToken": OPERATOR_TOKEN,
        "keys/datasetPassword": DATASET_PASSWORD,
        "clickhouse/user": ADMIN,
        "clickhouse/password": ADMIN_PASSWORD,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@dataclass
class StandIn:
    """An API server with one ConfigMap.

    Attributes:
        environment: by which a pod finds it.
        account: the folder of the pod's account.
        data: the ConfigMap's.
        failures: statuses to answer with, before anything is done.
        refused: requests for anything but that ConfigMap, or without the token.
    """

    environment: Mapping[str, str]
    account: Path
    path: str
    data: dict[str, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    patches: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for_summary(self, cells: int, seconds: float = 120) -> dict[str, Any]:
        """Return the summary once it has so many grades."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self._summary().get("grades", {})) >= cells, seconds)
        return self._summary()

    def _summary(self) -> dict[str, Any]:
        return dict(json.loads(self.data.get("summary", "{}")))


def make_account(folder: Path) -> Path:
    """Make an account's folder, whose certificate is the stand-in's own."""
    folder.mkdir(parents=True)
    (folder / "token").write_text("account-token")
    (folder / "namespace").write_text("team")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder


@contextmanager
def stand_in(folder: Path, config_map: str) -> Iterator[StandIn]:
    """Serve one ConfigMap over TLS on loopback."""
    account = make_account(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(account / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    environment = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.server_port),
        "PROCTOR_ACCOUNT_DIR": str(account),
    }
    state = StandIn(environment, account, f"/api/v1/namespaces/team/configmaps/{config_map}")
    server.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        is_merge = self.headers["content-type"] == "application/merge-patch+json"
        self._answer(json.loads(body)["data"] if is_merge else {})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, data: Mapping[str, str]) -> None:
        state: StandIn = self.server.state  # type: ignore[attr-defined]
        with state.changed:
            if self.path != state.path or self.headers["authorization"] != "Bearer account-token":
                state.refused.append(f"{self.command} {self.path}")
                self._send(403, {"message": "forbidden"})
            elif state.failures:
                self._send(state.failures.pop(0), {"message": "not now"})
            else:
                state.data.update(data)
                state.patches += bool(data)
                state.changed.notify_all()
                self._send(200, {"data": state.data})

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
