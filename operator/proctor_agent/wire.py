"""HTTP/1.1 over a Unix socket or TCP: as much of it as the gateway's doors need.

`http.client` brings `email` and `ssl` with it: three times the start of the whole agent.
"""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator, Mapping

from proctor_agent.failures import AgentFailure, Malformed, Refused, Unreachable

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
"""Above the 8 MiB to which the gateway cuts a tool's result, with room for its JSON form."""

_PIECE_BYTES = 64 * 1024
_SAFE_IN_PATH = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_HTTP_OK = range(200, 300)


class Gateway:
    """Where the gateway is, and the token that it knows this agent by.

    Not a dataclass: `dataclasses` brings `inspect` with it, which takes longer to load than all the rest.

    Args:
        address: ``unix:/path`` or ``http://host:port``.
        token: sent as a bearer token with each request.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token

    def request(self, method: str, path: str, body: bytes | None = None) -> Iterator[bytes]:
        """Send one request on a connection of its own; give the pieces of the reply's body as they arrive.

        Raises:
            Unreachable: there is no connection, or it broke.
            Refused: the status is not 2xx.
            Malformed: the reply is not HTTP.
        """
        try:
            with self._connect() as connection:
                connection.sendall(self._head(method, path, body) + (body or b""))
                with connection.makefile("rb") as stream:
                    reply = _Reply(stream)
                    if reply.status not in _HTTP_OK:
                        raise _parse_refusal(reply.status, b"".join(reply.pieces()))
                    yield from reply.pieces()
        except OSError as e:
            raise Unreachable(f"{method} {path}: {e}") from e

    def fetch(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the whole body of the reply.

        Raises:
            Unreachable: there is no connection, or it broke.
            Refused: the status is not 2xx.
            Malformed: the reply is not HTTP.
        """
        return b"".join(self.request(method, path, body))

    def _connect(self) -> socket.socket:
        kind, _, rest = self.address.partition(":")
        if kind == "unix":
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(rest)
            except OSError:
                connection.close()
                raise
            return connection
        host, _, port = rest.strip("/").rpartition(":")
        return socket.create_connection((host, int(port)))

    def _head(self, method: str, path: str, body: bytes | None) -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: gateway",
            "Connection: close",
            f"Authorization: Bearer {self.token}",
            "Anthropic-Version: 2023-06-01",
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def find_gateway(environment: Mapping[str, str]) -> Gateway | None:
    """Return the gateway that an agent's environment names; None if it names none."""
    address, token = environment.get("PROCTOR_GATEWAY", ""), environment.get("PROCTOR_TOKEN", "")
    if not check_address(address) or not token.isascii() or not token.isprintable() or not token:
        return None
    return Gateway(address, token)


def check_address(address: str) -> bool:
    """Tell whether a gateway's address has one of the two forms."""
    kind, _, rest = address.partition(":")
    if kind == "unix":
        return rest.startswith("/")
    return kind == "http" and rest.rpartition(":")[2].strip("/").isdecimal()


def quote_segment(text: str) -> str:
    """Write any text as one segment of a path."""
    return "".join(
        chr(byte) if byte in _SAFE_IN_PATH else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")
    )


class _Reply:
    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._headers: dict[str, str] = {}
        self.status = self._read_head()
        while self.status // 100 == 1:
            self.status = self._read_head()

    def _read_head(self) -> int:
        version, _, rest = self._line().partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdecimal()):
            raise Malformed("the reply has no HTTP status line")
        size = 0
        self._headers = {}
        while line := self._line():
            size += len(line)
            if size > MAX_HEAD_BYTES:
                raise Malformed("the reply's head is too large")
            name, _, value = line.partition(":")
            self._headers[name.strip().lower()] = value.strip()
        return int(code)

    def _line(self) -> str:
        line = self._stream.readline(MAX_HEAD_BYTES)
        if not line.endswith(b"\n"):
            raise _cut() if len(line) < MAX_HEAD_BYTES else Malformed("the reply's head is too large")
        return line.decode("latin-1").rstrip("\r\n")

    def pieces(self) -> Iterator[bytes]:
        """Give the body; no more than `MAX_BODY_BYTES` of it."""
        total = 0
        for piece in self._body():
            total += len(piece)
            if total > MAX_BODY_BYTES:
                raise Malformed(f"the reply has more than {MAX_BODY_BYTES} bytes")
            yield piece

    def _body(self) -> Iterator[bytes]:
        if self._headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        length = self._headers.get("content-length")
        if length is None:
            return iter(lambda: self._stream.read1(_PIECE_BYTES), b"")
        if not (length.isascii() and length.isdecimal()):
            raise Malformed("the reply's length is no number")
        return self._exactly(int(length))

    def _chunks(self) -> Iterator[bytes]:
        while True:
            try:
                size = int(self._line().partition(";")[0], 16)
            except ValueError as e:
                raise Malformed("a chunk's size is no number") from e
            if size < 0:
                raise Malformed("a chunk's size is negative")
            if size == 0:
                while self._line():
                    pass
                return
            yield from self._exactly(size)
            self._line()

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._stream.read1(min(size, _PIECE_BYTES))
            if not piece:
                raise _cut()
            size -= len(piece)
            yield piece


def _cut() -> AgentFailure:
    return Unreachable("the connection closed in the middle of a reply")


def _parse_refusal(status: int, body: bytes) -> Refused:
    try:
        error = json.loads(body)["error"]
        return Refused(status, str(error["type"]), str(error["message"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Refused(status, "http_error", body[:200].decode("utf-8", "replace"))
