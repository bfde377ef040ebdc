"""The brief: what the agent may see of a scenario."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from proctor.core.scenarios.document import Document
from proctor.core.scenarios.variants import load_part
from proctor.core.seeding.identity import WRITTEN_SEED

BRIEF_FILE = "brief.yaml"


class AnswerFormat(StrEnum):
    """What the final answer is."""

    TEXT = "text"
    JSON = "json"


class Brief(Document):
    """What is reported and what is asked. It names no cause, no service and no scenario."""

    prompt: str = Field(
        min_length=20, max_length=8000, description="What happened and what is asked, as a colleague would write it."
    )
    answer: AnswerFormat = Field(default=AnswerFormat.TEXT, description="Whether the final answer is prose or JSON.")


def load_brief(folder: Path, seed: int = WRITTEN_SEED) -> Brief:
    """Read the brief of a scenario folder as a dataset seed has it.

    Raises:
        InvalidInput: there is none, or it is no brief.
    """
    return load_part(folder, BRIEF_FILE, Brief, seed)
