"""A Prometheus of the distribution."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

VENV_PROMETHEUS = Path(__file__).resolve().parents[3] / ".venv" / "prometheus" / "usr" / "bin"


def _find(program: str) -> Path:
    found = shutil.which(program, path=os.pathsep.join([str(VENV_PROMETHEUS), os.environ.get("PATH", "")]))
    assert found is not None, f"no {program}: make test-integration fetches it (Debian: apt-get install prometheus)"
    return Path(found)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The checker of rules."""
    return _find("promtool")


@pytest.fixture(scope="session")
def prometheus() -> Path:
    """The server."""
    return _find("prometheus")
