"""A dataset's record: what was built from what, and what it holds. A dataset without a record does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proctor.core.seeding.digest import TableDigest, digest_tables
from proctor.core.seeding.facts import FactSheet, FactValue
from proctor.errors import Terminal

ROLLUP_SUFFIX = "_rollup_15m"
"""What the names of rollups end in."""


class TableRecord(BaseModel):
    """One table of a dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(ge=0, description="How many rows it has.")
    digest: str = Field(description="The digest of its rows, whatever their order.")


class DatasetRecord(BaseModel):
    """A dataset, committed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hash: str = Field(pattern=r"^[0-9a-f]{16}$", description="The dataset's name: equal inputs, equal hash.")
    database: str = Field(pattern=r"^ds_[0-9a-f]{16}_[0-9a-z]{1,16}$", description="The database of its tables.")
    generator: str = Field(description="The version of the generator.")
    recipe: str = Field(description="The recipe's digest.")
    label: str = Field(default="", max_length=100, description="The scenario's name, for people; agents never see it.")
    seed: int = Field(description="The seed.")
    anchor: datetime = Field(description="The anchor.")
    volume: Decimal = Field(description="The share of the background's rows.")
    tables: dict[str, TableRecord] = Field(description="Per table, rows and digest.")
    facts: dict[str, dict[str, FactValue]] = Field(
        default_factory=dict, description="Facts, per digest of the queries that found them."
    )
    sheets: dict[str, str] = Field(
        default_factory=dict, description="Per digest of an answer key's file, the digest of its queries."
    )
    seconds: float = Field(ge=0, description="How long seeding took.")

    @property
    def rows(self) -> int:
        """How many raw rows it has; rollups are not counted."""
        return sum(table.rows for name, table in self.tables.items() if not name.endswith(ROLLUP_SUFFIX))

    @property
    def digest(self) -> str:
        """One digest for all its tables."""
        return digest_tables({name: TableDigest(one.rows, one.digest) for name, one in self.tables.items()})

    def differences(self, found: Mapping[str, TableDigest]) -> list[str]:
        """Return in words how tables differ from what is recorded; nothing if they don't."""
        return [
            f"{name}: {found[name].rows} rows, digest {found[name].digest}; the record says {told.rows}, {told.digest}"
            for name, told in self.tables.items()
            if found[name] != (told.rows, told.digest)
        ]

    def with_facts(self, sheet: FactSheet, facts: Mapping[str, FactValue]) -> DatasetRecord:
        """Return the record with the facts of one answer key added."""
        added = {
            "facts": {**self.facts, sheet.digest: dict(facts)},
            "sheets": {**self.sheets, sheet.source: sheet.digest},
        }
        return self.model_copy(update=added)


def parse_record(text: str | bytes, source: str) -> DatasetRecord:
    """Read a record.

    Raises:
        Terminal: it is damaged, or of another version.
    """
    try:
        return DatasetRecord.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise Terminal(
            f"dataset record {source}: can't be read: {field}: {first['msg']}; remove the dataset"
        ) from error
