"""What an export may be asked for; apart from what writes it, so that asking loads nothing."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    CSV = "csv"
    OTLP = "otlp"


class Subject(StrEnum):
    """What a line of it is."""

    CELLS = "cells"
    EVENTS = "events"
