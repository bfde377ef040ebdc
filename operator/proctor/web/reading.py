"""What the page reads."""

from __future__ import annotations

from typing import Any, Protocol

from proctor.adapters.kube.kinds import Kind


class Reader(Protocol):
    """What reads one object of the API server."""

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """Return an object; None if there is none.

        Raises:
            Retryable: not now.
            Terminal: never.
        """
        ...
