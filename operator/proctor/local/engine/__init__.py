"""The embedded ClickHouse: one engine process per data folder, on loopback, that dies with its parent."""

from proctor.local.engine.clone import clone_dataset
from proctor.local.engine.config import ADMIN_ONLY, Access, AgentLimits, EngineLimits
from proctor.local.engine.discovery import find_engine, is_served
from proctor.local.engine.engine import Engine

__all__ = ["ADMIN_ONLY", "Access", "AgentLimits", "Engine", "EngineLimits", "clone_dataset", "find_engine", "is_served"]
