"""One ConfigMap of this pod's own namespace, read and patched as the pod's ServiceAccount.

Standard library alone: the grader's image carries no client of the whole API for two requests.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from proctor.errors import InvalidInput, Retryable, Terminal

ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ACCOUNT_VARIABLE = "PROCTOR_ACCOUNT_DIR"
HOST_VARIABLE, PORT_VARIABLE = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"

_SECONDS = 15.0
_MAX_REPLY = 4 * 1024 * 1024
_PASSING = frozenset({
    HTTPStatus.UNAUTHORIZED,  # a token is read anew for every request, and the next may be newer
    HTTPStatus.FORBIDDEN,  # an API server that has just started doesn't know of any right yet
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """Where the API server is, and the folder of the account.

    Attributes:
        host: its address.
        port: its port.
        account: holds token, ca.crt and namespace.
    """

    host: str
    port: int
    account: Path = ACCOUNT_DIR

    @classmethod
    def of_pod(cls, environ: Mapping[str, str] = os.environ) -> ApiServer:
        """Return the API server of the cluster that this pod is in.

        Raises:
            InvalidInput: this is no pod.
        """
        host, port = environ.get(HOST_VARIABLE, ""), environ.get(PORT_VARIABLE, "443")
        if not host or not port.isdecimal():
            raise InvalidInput(f"{HOST_VARIABLE} is not set: this runs in a pod of a cluster")
        return cls(host=host, port=int(port), account=Path(environ.get(ACCOUNT_VARIABLE) or ACCOUNT_DIR))

    def namespace(self) -> str:
        """Return this pod's namespace.

        Raises:
            InvalidInput: the account is not mounted.
        """
        return self._read("namespace").strip()

    def token(self) -> str:
        """Return the token; the kubelet replaces it from time to time.

        Raises:
            InvalidInput: the account is not mounted.
        """
        return self._read("token").strip()

    def _read(self, name: str) -> str:
        path = self.account / name
        try:
            return path.read_text("utf-8")
        except OSError as error:
            raise InvalidInput(f"{path}: can't be read: {error.strerror}; mount the pod's account") from error


class ConfigMapClient:
    """Reads and patches one ConfigMap.

    Args:
        server: the API server.
        name: of the ConfigMap.
    """

    def __init__(self, server: ApiServer, name: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{server.namespace()}/configmaps/{name}"
        self._tls = ssl.create_default_context(cafile=str(server.account / "ca.crt"))

    async def read(self) -> dict[str, str]:
        """Return its data.

        Raises:
            Retryable: not now.
            Terminal: it is gone, or we may not.
        """
        return await asyncio.to_thread(self._exchange, "GET", None)

    async def patch(self, data: Mapping[str, str]) -> dict[str, str]:
        """Set some of its data, and leave the rest; return all of it.

        Raises:
            Retryable: not now.
            Terminal: it is gone, or we may not.
        """
        return await asyncio.to_thread(self._exchange, "PATCH", json.dumps({"data": dict(data)}).encode())

    def _exchange(self, method: str, body: bytes | None) -> dict[str, str]:
        attempted = f"{method} {self._path}"
        headers = {"Authorization": f"Bearer {self._server.token()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        connection = http.client.HTTPSConnection(
            self._server.host, self._server.port, timeout=_SECONDS, context=self._tls
        )
        try:
            connection.request(method, self._path, body, headers)
            response = connection.getresponse()
            text = response.read(_MAX_REPLY)
        except (OSError, http.client.HTTPException) as error:
            raise Retryable(f"{attempted}: the API server does not answer: {type(error).__name__}") from error
        finally:
            connection.close()
        return _judge(response.status, text, attempted)


def _judge(status: int, text: bytes, attempted: str) -> dict[str, str]:
    try:
        reply = json.loads(text)
    except ValueError:
        reply = None
    reply = reply if isinstance(reply, dict) else {}
    if status == HTTPStatus.OK:
        return {str(key): str(value) for key, value in (reply.get("data") or {}).items()}
    message = f"{attempted}: {status} {str(reply.get('message', ''))[:300]}"
    raise Retryable(message) if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR else Terminal(message)
