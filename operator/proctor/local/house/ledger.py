"""Which datasets a house serves to whom: on disk, so that a house that was killed serves the same at the same ports."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from proctor.api.fields import Instant
from proctor.errors import Terminal
from proctor.local.durable import translate_os_error, write_atomic

DatasetHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
UserName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class ServedEntry(BaseModel):
    """One dataset served to one user.

    Attributes:
        user: who may query it.
        hash: the dataset.
        database: its database.
        password_digest: SHA-256 of the user's password.
        port: where it is served.
        until: when that ends.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: UserName
    hash: DatasetHash
    database: str
    password_digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(repr=False)
    port: int
    until: Instant

    def is_over(self, now: datetime) -> bool:
        """Tell whether its time has come."""
        return now >= self.until


_ENTRIES = TypeAdapter(tuple[ServedEntry, ...])


class Ledger:
    """A file of entries, replaced in one step.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[ServedEntry, ...]:
        """Return the entries.

        Raises:
            Terminal: the file can't be read.
        """
        try:
            return _ENTRIES.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return ()
        except ValidationError as error:
            raise Terminal(f"{self._path}: can't be read; remove it, and what was served is seeded anew") from error
        except OSError as error:
            raise translate_os_error(error, f"reading {self._path}") from error

    def write(self, entries: Iterable[ServedEntry]) -> None:
        """Replace the entries.

        Raises:
            Terminal: the file can't be written.
        """
        write_atomic(self._path, _ENTRIES.dump_json(tuple(entries)))
