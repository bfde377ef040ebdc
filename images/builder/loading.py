"""Loads images into clusters that fetch nothing from a registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from builder.building import Built
from builder.commands import run


def load_into_containerd(socket: Path, images: Iterable[Built], say: Callable[[str], None]) -> None:
    """Import images that are not there yet, under their tag and their digest.

    A runtime looks an image up by the name that a pod gives, so the name with the digest must be one of its names.
    """
    there = set(_ctr(socket, "images", "list", "--quiet").split())
    for image in images:
        if image.pinned not in there:
            say(f"load {image.name}")
            _ctr(socket, "images", "import", str(image.archive))
            _ctr(socket, "images", "tag", "--force", image.tag, image.pinned)
        else:
            _ctr(socket, "images", "tag", "--force", image.pinned, image.tag)


def load_into_kind(cluster: str, images: Iterable[Built], say: Callable[[str], None]) -> None:
    """Load images into every node of a kind cluster, under their tag and their digest."""
    nodes = run("kind", "get", "nodes", f"--name={cluster}").split()
    for image in images:
        say(f"load {image.name}")
        run("kind", "load", "image-archive", f"--name={cluster}", str(image.archive))
        for node in nodes:
            run("docker", "exec", node, "ctr", "-n", "k8s.io", "images", "tag", "--force", image.tag, image.pinned)


def _ctr(socket: Path, *words: str) -> str:
    return run("ctr", f"--address={socket}", "--namespace=k8s.io", *words)
