"""The results store's schema: forward migrations in numbered files, applied once each, in order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from proctor.core.digests import digest_bytes


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step.

    Attributes:
        version: its number, counted from 1 without gaps.
        name: its file's name.
        statements: SQL, each of which may be repeated harmlessly, because a migration may die half-way.
        checksum: of the file.
    """

    version: int
    name: str
    statements: tuple[str, ...]
    checksum: str


def load_migrations() -> tuple[Migration, ...]:
    """Return every migration that this version of Proctor knows, in order."""
    sources = sorted((item for item in files(__name__).iterdir() if item.name.endswith(".sql")), key=lambda x: x.name)
    migrations = tuple(_parse_migration(item.name, item.read_text("utf-8")) for item in sources)
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError(f"migrations are not numbered 1, 2, 3 …: {[migration.name for migration in migrations]}")
    return migrations


def _parse_migration(name: str, text: str) -> Migration:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    statements = tuple(part.strip() for part in "\n".join(lines).split(";\n\n") if part.strip())
    return Migration(
        version=int(name.partition("_")[0]),
        name=name,
        statements=tuple(statement.rstrip(";\n ") for statement in statements),
        checksum=digest_bytes(text.encode()),
    )
