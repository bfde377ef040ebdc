"""Programs that build images: buildah where this is root, docker or podman elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from builder.commands import run
from builder.faults import ImageError


@dataclass(frozen=True)
class Recipe:
    """What an image is made of.

    Args:
        name: its full name, with a tag.
        containerfile: how.
        context: the files that it copies.
        base: the image that it starts from; the Containerfile's own if none.
    """

    name: str
    containerfile: Path
    context: Path
    base: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that all engines have in common."""
        base = () if self.base is None else (f"--build-arg=BASE={self.base}",)
        return (*base, f"--tag={self.name}", f"--file={self.containerfile}", str(self.context))


class Engine(Protocol):
    """Builds an image into an archive with an OCI index."""

    @property
    def has_registry(self) -> bool:
        """Whether base images are fetched; if not, the base is made of packages."""
        ...

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build, and write the archive."""
        ...


@dataclass(frozen=True)
class Buildah:
    """Needs neither a daemon nor namespaces, only root. Its storage is its own, so that `clean` is a removed folder.

    Args:
        storage: where layers are kept.
    """

    storage: Path
    has_registry: bool = False

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build; layers are compressed fast rather than well: they go no further than this machine."""
        self._run("build", "--isolation=chroot", "--layers", "--timestamp=0", "--pull=false", *recipe.words)
        compression = ("--compression-format=zstd", "--compression-level=1")
        self._run("push", *compression, recipe.name, f"oci-archive:{archive}:{recipe.name}")

    def _run(self, *words: str) -> None:
        places = (f"--root={self.storage}/root", f"--runroot={self.storage}/run")
        # Or a mount of the storage upon itself is left behind.
        run("buildah", *places, "--storage-driver=overlay", "--storage-opt=overlay.skip_mount_home=true", *words)


@dataclass(frozen=True)
class Podman:
    """Podman, with the storage of whoever calls it."""

    has_registry: bool = True

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build and save."""
        run("podman", "build", "--timestamp=0", *recipe.words)
        run("podman", "save", "--format=oci-archive", f"--output={archive}", recipe.name)


@dataclass(frozen=True)
class Docker:
    """Docker 25 or later, whose archives have an OCI index."""

    has_registry: bool = True

    def build(self, recipe: Recipe, archive: Path) -> None:
        """Build and save."""
        run("docker", "build", *recipe.words)
        run("docker", "save", f"--output={archive}", recipe.name)


def choose_engine(storage: Path) -> Engine:
    """Return the first engine that works here.

    Raises:
        ImageError: there is none.
    """
    if shutil.which("buildah") and os.geteuid() == 0:
        return Buildah(storage)
    if shutil.which("podman"):
        return Podman()
    if shutil.which("docker") and subprocess.run(["docker", "info"], check=False, capture_output=True).returncode == 0:
        return Docker()
    raise ImageError(
        "nothing builds images here: as root apt-get install buildah mmdebstrap, or install podman or docker"
    )
