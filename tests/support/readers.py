"""An API server that has answers ready, one after another."""

from __future__ import annotations

from dataclasses import dataclass, field

from proctor.adapters.kube.kinds import Kind
from proctor.errors import ProctorError
from support.statuses import Object

TOKEN = "a-token-of-enough-length"


@dataclass
class MemoryReader:
    """Answers each look with the next object, error or nothing; the last one stays."""

    replies: list[Object | ProctorError | None]
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append((kind.name, namespace, name))
        if isinstance(reply, ProctorError):
            raise reply
        return reply
