"""What the documentation shows exists: its commands parse, its links lead somewhere, its manifests validate."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from proctor.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def _blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text()) if name == language]


def _shown_commands(program: str) -> list[tuple[str, list[str]]]:
    """Every line `$ PROGRAM …` of every console block, continuation lines joined, pipes and redirections cut off."""
    shown = []
    for page in PAGES:
        for block in _blocks(page, "console"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ "):
                    words = shlex.split(re.split(r"[|>;]|&&", line[2:])[0], comments=True)
                    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                        words.pop(0)
                    if words and Path(words[0]).name == program:
                        shown.append((page.name, words[1:]))
    return shown


def test_documentation_exists() -> None:
    """Style: README, and docs/ for the rest."""
    assert ROOT / "README.md" in PAGES
    assert _shown_commands("make")
    assert _shown_commands("proctor")


@pytest.mark.parametrize(("page", "words"), _shown_commands("proctor"), ids=str)
def test_proctor_commands_parse(page: str, words: list[str]) -> None:
    """Each shown command names a command and options that exist."""
    command = typer.main.get_command(app)
    context = None
    while hasattr(command, "resolve_command"):
        context = command.make_context(command.name or "proctor", list(words), parent=context)
        if not context._protected_args and not context.args:
            return  # `proctor --help` and its like end here
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None, page
    if "--help" not in words:
        command.make_context(command.name, list(words), parent=context)


@pytest.mark.parametrize(("page", "words"), _shown_commands("make"), ids=str)
def test_make_targets_exist(page: str, words: list[str]) -> None:
    """Each shown `make TARGET` is in the Makefile."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert {word for word in words if "=" not in word} <= targets, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link is a file of the repository."""
    broken = [
        link for link in LINK.findall(page.read_text()) if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []
