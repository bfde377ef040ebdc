"""What a Job's status says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """One Job.

    Attributes:
        complete: it ended well.
        failed: it will not be tried again.
        starts: pods that it had.
        message: why it failed, for people.
    """

    name: str
    complete: bool
    failed: bool
    starts: int
    message: str


def read_job(job: Mapping[str, Any]) -> JobSeen:
    """Read a Job."""
    status = job.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or () if item.get("status") == "True"}
    failed = conditions.get("Failed")
    return JobSeen(
        name=job["metadata"]["name"],
        complete="Complete" in conditions,
        failed=failed is not None,
        starts=int(status.get("failed") or 0) + int(status.get("active") or 0) + int(status.get("succeeded") or 0),
        message="" if failed is None else str(failed.get("message", "")),
    )
