"""Builds Proctor's images and loads them into the node's own container runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

from cluster import packages
from cluster.faults import ClusterError
from cluster.namespace import supervisor
from cluster.places import ROOT, Places

NEEDED_BY_PODS = ("pause",)


def load_images(places: Places, names: Iterable[str] = ()) -> None:
    """Build images, all if none are named, and load them if the node is there.

    Raises:
        ClusterError: one could not be built; why was printed.
    """
    packages.install(packages.IMAGES)
    words = [f"--folder={places.cache / 'images'}", *names]
    if supervisor(places) is not None:
        words.append(f"--containerd={places.containerd_socket}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "images")}
    if subprocess.run([sys.executable, "-m", "builder", *words], check=False, env=environment).returncode:
        raise ClusterError("the images are not all built and loaded")
