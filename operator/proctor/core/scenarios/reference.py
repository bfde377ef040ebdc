"""The reference record of a scenario: the facts of one dataset, so that answers can be graded without seeding one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from proctor.core.scenarios.document import Document, FactName
from proctor.core.scenarios.variants import load_part
from proctor.core.seeding.identity import WRITTEN_SEED

REFERENCE_FILE = "reference.yaml"

Value = Annotated[str, StringConstraints(max_length=500)]


class Reference(Document):
    """What the fact queries return on a freshly seeded dataset; a test seeds one and compares."""

    seed: int = Field(description="The dataset's seed.")
    anchor: datetime = Field(description="The dataset's anchor.")
    volume: Value = Field(description="The dataset's volume.")
    facts: dict[FactName, int | Value] = Field(max_length=60, description="Each fact of answer.yaml.")


def load_reference(folder: Path, seed: int = WRITTEN_SEED) -> Reference:
    """Read the reference record of a scenario folder as a dataset seed has it.

    Raises:
        InvalidInput: there is none, or it is no reference record.
    """
    return load_part(folder, REFERENCE_FILE, Reference, seed)
