"""Datasets on one machine: each a folder with an engine's data and a record; the record's rename is the commit.

    datasets/<hash>/record.json, engine/

Finding a dataset reads one file and starts nothing; nor does this module load what building one takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from proctor.core.seeding.identity import (
    GENERATOR_VERSION,
    anchor_nanoseconds,
    answer_digest,
    dataset_hash,
    recipe_digest,
)
from proctor.core.seeding.record import DatasetRecord, parse_record
from proctor.errors import Terminal
from proctor.local.durable import translate_os_error

RECORD = "record.json"
ENGINE = "engine"


@dataclass(frozen=True, kw_only=True)
class SeedRequest:
    """A dataset that somebody wants.

    Attributes:
        scenario: the scenario's folder.
        seed: the seed.
        anchor: the anchor.
        volume: the share of the background's rows.
        with_facts: whether the record must hold the facts of the scenario's answer key, where it has one.
        threads: how many statements run at a time.
    """

    scenario: Path = field(kw_only=False)
    seed: int
    anchor: datetime
    volume: Decimal
    with_facts: bool = True
    threads: int = 2

    @property
    def hash(self) -> str:
        """The dataset's hash."""
        return dataset_hash(recipe_digest(self.scenario, self.seed), self.seed, self.anchor, self.volume)

    def is_met_by(self, record: DatasetRecord) -> bool:
        """Tell whether a record holds the facts that are asked for."""
        source = self.answer_source()
        return source is None or source in record.sheets

    def answer_source(self) -> str | None:
        """Return the digest of the answer key's file; None if facts aren't asked for or there is no key."""
        return answer_digest(self.scenario) if self.with_facts else None


def datasets_dir(data_dir: Path) -> Path:
    """Return where datasets are."""
    return data_dir / "datasets"


def engine_dir(data_dir: Path, digest: str) -> Path:
    """Return where a committed dataset's engine data are: to be cloned, never to be served from."""
    return datasets_dir(data_dir) / digest / ENGINE


def find_dataset(request: SeedRequest, *, data_dir: Path) -> DatasetRecord | None:
    """Return a dataset's record; None if it is not there, or lacks the facts that are asked for.

    Raises:
        Terminal: what is there is damaged, or was made from other inputs than its name says.
    """
    record = read_record(datasets_dir(data_dir) / request.hash)
    if record is None:
        return None
    refuse_mismatch(record, request)
    return record if request.is_met_by(record) else None


def list_datasets(data_dir: Path) -> tuple[DatasetRecord, ...]:
    """Return the records of all committed datasets, by hash.

    Raises:
        Terminal: a record is damaged.
    """
    found = [read_record(folder) for folder in _committed_folders(data_dir)]
    return tuple(record for record in found if record is not None)


def _committed_folders(data_dir: Path) -> list[Path]:
    root = datasets_dir(data_dir)
    if not root.is_dir():
        return []
    return sorted(folder for folder in root.iterdir() if not folder.name.startswith(".") and folder.is_dir())


def read_record(folder: Path) -> DatasetRecord | None:
    """Return the record in a dataset's folder; None if the dataset is not there.

    Raises:
        Terminal: it can't be read.
    """
    path = folder / RECORD
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate_os_error(error, f"reading {path}") from error
    return parse_record(text, str(path))


def refuse_mismatch(record: DatasetRecord, request: SeedRequest) -> None:
    """Refuse a record that is not of what its name says.

    Raises:
        Terminal: it was made from other inputs.
    """
    told = (record.hash, record.generator, record.recipe, record.seed, anchor_nanoseconds(record.anchor), record.volume)
    asked = (
        request.hash,
        GENERATOR_VERSION,
        recipe_digest(request.scenario, request.seed),
        request.seed,
        anchor_nanoseconds(request.anchor),
        request.volume,
    )
    if told != asked:
        raise Terminal(
            f"dataset {request.hash}: its record says it was made from other inputs; "
            f"`proctor dataset rm {request.hash}`, and seed again"
        )
