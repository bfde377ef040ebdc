"""The embedded ClickHouse: one engine process per data folder, that dies with its parent; on loopback by default."""

from proctor.local.engine.clone import clone_dataset
from proctor.local.engine.config import ADMIN_ONLY, Access, EngineLimits, Known
from proctor.local.engine.discovery import find_engine, is_served
from proctor.local.engine.engine import Engine

__all__ = [
    "ADMIN_ONLY",
    "Access",
    "Engine",
    "EngineLimits",
    "Known",
    "clone_dataset",
    "find_engine",
    "is_served",
]
