"""The images, and what goes into each: the build context, and a digest of all that it depends on."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from builder.commands import run
from builder.digesting import digest_files, digest_texts
from builder.faults import ImageError
from builder.python_tree import install_pinned, install_proctor, install_requirements

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "images"
BUSYBOX = Path("/bin/busybox")
KUBECTL = Path(sys.executable).with_name("kubectl")
AGENT = ROOT / "operator" / "proctor_agent"
NPM = ROOT / "tests" / "npm" / "package.json"
SOURCES = (ROOT / "operator", ROOT / "scenarios", ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE")
CONSTRAINTS = ROOT / "constraints.txt"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Fill = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Entry:
    """One image.

    Args:
        name: its folder in `images/`.
        base: the entry that it starts from; none for the base itself and what starts from nothing.
        inputs: digest of the files that it is made of.
        fill: writes the build context into an empty folder; a second one keeps what takes long to make.
    """

    name: str
    base: str | None
    inputs: Callable[[], str]
    fill: Fill


def catalogue() -> dict[str, Entry]:
    """Return the images by name, each after its base."""
    extras = {"operator": ("operator", "web", "gateway", "seed", "grade", "report"), "clickhouse-embedded": ("house",)}
    entries = [
        Entry("base", None, partial(digest_texts, BASE_COMMAND), _fill_base),
        Entry("busybox", None, partial(digest_files, BUSYBOX), _fill_busybox),
        Entry("pause", None, partial(digest_files, BUSYBOX), _fill_busybox),
        Entry("kubectl", None, partial(digest_files, BUSYBOX, KUBECTL), _fill_kubectl),
        Entry("sandbox", "base", partial(digest_files, AGENT, BUSYBOX), _fill_sandbox),
        Entry("sandbox-claude-code", "sandbox", partial(digest_files, NPM), _fill_claude_code),
        *(
            Entry(name, "base", partial(digest_files, *SOURCES, CONSTRAINTS), partial(_fill_proctor, chosen))
            for name, chosen in extras.items()
        ),
        *(
            Entry(
                name, "base", partial(digest_texts, [_pin(name), *_pins()]), partial(install_pinned, ROOT, _pin(name))
            )
            for name in ("mcp-clickhouse", "clickscope")
        ),
    ]
    return {entry.name: entry for entry in entries}


BASE_COMMAND = (
    "mmdebstrap",
    "--variant=essential",
    "--include=python3,ca-certificates,tzdata,libstdc++6",
    "--customize-hook=rm -rf "
    + " ".join(f'"$1"/usr/share/{folder}/*' for folder in ("doc", "man", "locale", "info", "bash-completion")),
    "bookworm",
)


def _fill_base(context: Path, _kept: Path) -> None:
    # Without this machine's own Pythons on the path: the distribution's scripts call the distribution's.
    run(*BASE_COMMAND, str(context / "root.tar"), environment={"PATH": SYSTEM_PATH})


def _fill_busybox(context: Path, _kept: Path) -> None:
    (context / "bin").mkdir()
    if not BUSYBOX.exists():
        raise ImageError("no /bin/busybox: as root apt-get install busybox-static")
    shutil.copy(BUSYBOX, context / "bin" / "busybox")


def _fill_kubectl(context: Path, kept: Path) -> None:
    _fill_busybox(context, kept)
    (context / "bin" / "busybox").rename(context / "bin" / "sh")
    shutil.copy(KUBECTL, context / "bin" / "kubectl")


def _fill_sandbox(context: Path, kept: Path) -> None:
    _fill_busybox(context, kept)
    target = context / "agent" / "proctor_agent"
    shutil.copytree(AGENT, target, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "compileall", "-q", "-s", str(context / "agent"), "-p", "/opt/agent", str(target))


def _fill_claude_code(context: Path, _kept: Path) -> None:
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    version = json.loads(NPM.read_text())["dependencies"]["@anthropic-ai/claude-code"]
    package = f"@anthropic-ai/claude-code-linux-{machine}@{version}"
    run("npm", "pack", "--silent", "--pack-destination", str(context), package)
    archive = next(context.glob("*.tgz"))
    run("tar", "--extract", f"--file={archive}", f"--directory={context}")
    shutil.move(context / "package" / "claude", context / "claude")
    (context / "claude").chmod(0o755)


def _fill_proctor(extras: tuple[str, ...], context: Path, kept: Path) -> None:
    tree = kept / digest_texts([*extras, *_pins(), Path(__file__).with_name("python_tree.py").read_text()])
    if not tree.exists():
        install_requirements(ROOT, extras, tree)
    shutil.copytree(tree, context / "dependencies", copy_function=os.link)
    install_proctor(ROOT, context / "proctor")


def _pin(name: str) -> str:
    """Return the requirement by which the one-machine extra has a server, so that both measure the same one."""
    local = _project()["optional-dependencies"]["local"]
    return next(requirement for requirement in local if requirement.startswith(f"{name}=="))


def _pins() -> list[str]:
    """Return all that says which versions are installed."""
    project = _project()
    return [json.dumps([project["dependencies"], project["optional-dependencies"]]), CONSTRAINTS.read_text()]


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])
