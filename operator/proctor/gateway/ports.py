"""What the gateway needs from elsewhere; `bootstrap.gateway` fills these in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from proctor.adapters.models.messages_client import ModelRequest, ProviderReply
from proctor.api.model import AnthropicModel
from proctor.core.agents.scripted import SqlTool
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.events import Event
from proctor.core.trajectory.outcome import AttemptRecord

JsonObject = dict[str, Any]


class RecordSink(Protocol):
    """Where the record goes: on disk until the store has acknowledged it."""

    def submit(
        self,
        *,
        events: Sequence[tuple[AttemptKey, Event]] = (),
        blobs: Mapping[str, bytes] | None = None,
        attempts: Sequence[AttemptRecord] = (),
    ) -> None:
        """Take rows and bodies; returns at once."""
        ...

    async def settled(self, key: AttemptKey) -> None:
        """Return when the store has acknowledged all rows of an attempt that were submitted so far."""
        ...


class BriefText(NamedTuple):
    """All that an agent is told."""

    system: str
    prompt: str


class ScriptedModel(Protocol):
    """A model that needs no provider, played for one attempt."""

    def __call__(self, body: JsonObject, /) -> JsonObject:
        """Return the Messages reply to a request body, as if it had not asked to stream."""
        ...


class OpenScripted(Protocol):
    """Makes scripted models."""

    def __call__(self, policy: str, *, scenario: str, sql_tool: SqlTool | None) -> ScriptedModel:
        """Return the policy for one attempt.

        Args:
            policy: its name.
            scenario: the scenario, which may have policies of its own.
            sql_tool: the tool to ask through; None if there is none.
        """
        ...


class Closable(Protocol):
    """Something that an attempt opened and that ends with it."""

    async def close(self) -> None:
        """End it, and everything that it started; a second call does nothing."""
        ...


class Provider(Closable, Protocol):
    """The connection of one attempt to its provider."""

    def send(self, request: ModelRequest) -> AbstractAsyncContextManager[ProviderReply]:
        """Send a request; give its reply when the head is there.

        Raises:
            Retryable: the provider can't be reached.
        """
        ...

    def scrub(self, text: bytes) -> bytes:
        """Return a text of the provider's in which the key does not occur."""
        ...


class OpenProvider(Protocol):
    """Makes connections to a provider."""

    def __call__(self, model: AnthropicModel, /) -> Provider:
        """Return a connection of its own, with the model's key.

        Raises:
            InvalidInput: there is no such key, or the host is not allowed.
        """
        ...


class Probe(Protocol):
    """Starts every server of the suite once for every scenario."""

    async def __call__(self) -> JsonObject:
        """Return what was found, as the control door answers it; a server's failure is part of it."""
        ...
