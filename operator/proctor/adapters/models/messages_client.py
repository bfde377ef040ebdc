"""Requests to a provider that speaks the Messages API: one connection pool per attempt, the key added here (S15)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import httpx

from proctor.adapters.wire import ConnectError, CutError, Response, Wire
from proctor.core.gatewaypolicy.headers import API_VERSION, build_provider_headers
from proctor.errors import Retryable

MAX_REPLY_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 30.0
_STREAM_IDLE_SECONDS = 90.0
"""A stream brings a ping every few seconds, so that this much silence means that it is cut."""

_REDACTED = "[key]"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request as it is sent.

    Attributes:
        body: the checked and rewritten body.
        version: revision of the API.
        betas: betas that are passed on.
        beta_path: whether the agent asked for the API's beta side.
        stream: whether the reply is to be streamed.
    """

    body: bytes
    version: str = API_VERSION
    betas: tuple[str, ...] = ()
    beta_path: bool = False
    stream: bool = False


@dataclass(frozen=True, slots=True)
class ProviderAddress:
    """Where a model is.

    Attributes:
        url: the checked base URL.
        key: the API key.
        idle_seconds: how long a connection may stay silent.
    """

    url: str
    key: str = field(repr=False)
    idle_seconds: float = 300.0


class ProviderReply:
    """A reply whose head has arrived."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self.status = response.status
        self.retry_after = response.headers.get("retry-after")
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        self.headers = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it arrives.

        Raises:
            Retryable: the connection broke.
        """
        try:
            async for piece in self._response.pieces():
                yield piece
        except CutError as error:
            raise Retryable(f"reading a reply of the provider: the connection broke ({_name(error)})") from error

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            Retryable: the connection broke, or the body is larger than any message.
        """
        chunks: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise Retryable(f"reading a reply of the provider: it has more than {MAX_REPLY_BYTES} bytes")
            chunks.append(piece)
        return b"".join(chunks)


class MessagesClient:
    """The connection of one attempt to its provider.

    Args:
        address: where the model is, and its key.
    """

    def __init__(self, address: ProviderAddress) -> None:
        self._address = address
        self._key = address.key.encode()
        self._path = f"{urlsplit(address.url).path.rstrip('/')}/v1/messages"
        # Neither proxies nor credentials of the machine's environment: the key goes to the checked host only.
        self._wire = Wire(address.url, connect_seconds=_CONNECT_SECONDS, tls=_tls, finish_seconds=0)

    @asynccontextmanager
    async def send(self, request: ModelRequest) -> AsyncIterator[ProviderReply]:
        """Send a request; give its reply when the head is there.

        Raises:
            Retryable: the provider can't be reached.
        """
        path = self._path + ("?beta=true" if request.beta_path else "")
        headers = build_provider_headers(
            self._address.key, version=request.version, betas=request.betas, stream=request.stream
        )
        idle = min(self._address.idle_seconds, _STREAM_IDLE_SECONDS) if request.stream else self._address.idle_seconds
        exchange = self._wire.exchange("POST", path, headers, body=request.body, idle_seconds=idle)
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(exchange)
            except (ConnectError, CutError) as error:
                raise Retryable(f"calling the provider: no reply ({_name(error)})") from error
            yield ProviderReply(response)

    def scrub(self, text: bytes) -> bytes:
        """Return a text of the provider's in which the key does not occur."""
        return text.replace(self._key, _REDACTED.encode()) if self._key in text else text

    async def close(self) -> None:
        """Close all connections."""
        self._wire.close()


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes 20 ms; once is enough for all attempts.
    return httpx.create_ssl_context(trust_env=False)


def _name(error: Exception) -> str:
    # Only the kind: an error's text may quote what was sent.
    return type(error).__name__
