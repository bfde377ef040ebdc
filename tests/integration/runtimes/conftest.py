from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.local_runs import Machine
from support.playing import ROOT

NPM = ROOT / ".venv" / "npm" / "node_modules"
_NOT_THE_AGENTS = {"claude-code", "claude-code-linux-x64", "claude-code-linux-arm64"}
"""Of npm's packages those by Anthropic that are hundreds of megabytes, and no agent in Node needs."""


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """One data dir: its dataset is seeded once. Programs are those of the environment that the tests run in."""
    path = os.pathsep.join((str(ROOT / ".venv" / "bin"), os.environ.get("PATH", os.defpath)))
    return Machine(tmp_path_factory.mktemp("runtimes"), {"PATH": path})


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example agents, with what `npm install` would put beside the one in Node."""
    folder = tmp_path_factory.mktemp("agents")
    shutil.copytree(ROOT / "examples" / "agents", folder, dirs_exist_ok=True)
    shutil.copytree(NPM, folder / "node" / "node_modules", ignore=_ignore, copy_function=_link)
    return folder


def _ignore(folder: str, _: list[str]) -> set[str]:
    return _NOT_THE_AGENTS if Path(folder) == NPM / "@anthropic-ai" else set()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
