"""Python packages as a folder tree that is copied over a virtual environment in an image."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.commands import run
from builder.faults import ImageError

ENVIRONMENT = "/opt/proctor"
VERSION = "3.11"
LIBRARIES = f"lib/python{VERSION}/site-packages"
# What Debian 12, the oldest base in use, has.
PLATFORM = "manylinux_2_36"


def install_requirements(root: Path, extras: Iterable[str], target: Path) -> None:
    """Install what `proctor[extras]` needs, without Proctor: a layer that seldom changes."""
    _install(root, target, "--requirements", str(root / "pyproject.toml"), *(f"--extra={extra}" for extra in extras))


def install_proctor(root: Path, target: Path) -> None:
    """Build the wheel of this tree and install it alone."""
    with TemporaryDirectory() as folder:
        run(_uv(), "build", "--quiet", "--wheel", f"--out-dir={folder}", str(root))
        wheel = next(Path(folder).glob("*.whl"))
        _install(root, target, "--no-deps", str(wheel))


def install_pinned(root: Path, requirement: str, context: Path, _kept: Path) -> None:
    """Install one published package and what it needs, as `dependencies` of a context."""
    _install(root, context / "dependencies", requirement)


def _install(root: Path, target: Path, *what: str) -> None:
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    libraries = partial / LIBRARIES
    run(
        *(_uv(), "pip", "install", "--quiet", f"--python={sys.executable}", f"--python-version={VERSION}"),
        *(f"--python-platform={_machine()}-{PLATFORM}", "--link-mode=copy", f"--target={libraries}"),
        *("--constraints", str(root / "constraints.txt"), *what),
    )
    _move_scripts(libraries / "bin", partial / "bin")
    # By content, not by time: files keep their contents through a build, and may lose their times.
    run(
        *(sys.executable, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash"),
        *("-s", str(partial), "-p", ENVIRONMENT, str(libraries)),
    )
    partial.rename(target)


def _move_scripts(source: Path, target: Path) -> None:
    """Let scripts start with the image's Python in place of this machine's."""
    if not source.exists():
        return
    shutil.move(source, target)
    for script in target.iterdir():
        content = script.read_bytes()
        if content.startswith(b"#!"):
            script.write_bytes(f"#!{ENVIRONMENT}/bin/python3\n".encode() + content.split(b"\n", 1)[1])


def _machine() -> str:
    return {"arm64": "aarch64"}.get(platform.machine(), platform.machine())


def _uv() -> str:
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if found is None:
        raise ImageError("no uv: make .venv/.dev installs it")
    return found
