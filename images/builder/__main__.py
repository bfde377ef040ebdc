"""`python -m builder`: what `make images` calls."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from builder.building import VALUES, Workshop
from builder.catalogue import catalogue
from builder.engines import choose_engine
from builder.faults import ImageError
from builder.loading import load_into_containerd, load_into_kind


def default_folder() -> Path:
    """Return where images are kept, beside the test cluster's programs."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PROCTOR_CLUSTER_CACHE") or Path(caches) / "proctor-cluster") / "images"


def main() -> int:
    """Build, load, and print the images' names by digest; return the exit code."""
    parser = argparse.ArgumentParser(prog="builder", description="Build the images of images/ and load them.")
    parser.add_argument("names", nargs="*", metavar="IMAGE", help="which, by folder; all if none")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where archives are kept")
    parser.add_argument("--base", help="start from this image; default: made of Debian packages where buildah builds")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--containerd", type=Path, metavar="SOCKET", help="load into the containerd that listens there")
    target.add_argument("--kind", metavar="CLUSTER", help="load into the nodes of this kind cluster")
    arguments = parser.parse_args()
    try:
        _build_and_load(arguments)
    except ImageError as fault:
        print(f"images: {fault}", file=sys.stderr)
        return 1
    return 0


def _build_and_load(arguments: argparse.Namespace) -> None:
    say = _timed()
    engine = choose_engine(arguments.folder.parent / "buildah")
    workshop = Workshop(catalogue(), arguments.folder, engine, arguments.base, say)
    # The base is built for those that start from it, and is nothing by itself.
    names = arguments.names or [name for name in workshop.entries if name != "base"]
    images = [image for image in workshop.build(names) if image.name != "base"]
    if arguments.containerd:
        load_into_containerd(arguments.containerd, images, say)
    elif arguments.kind:
        load_into_kind(arguments.kind, images, say)
    say("done")
    for image in images:
        print(f"{image.name} {image.pinned}")
    print(f"values for the chart: {arguments.folder / VALUES}")


def _timed() -> Callable[[str], None]:
    started = time.monotonic()

    def say(what: str) -> None:
        print(f"  {time.monotonic() - started:6.1f} s  {what}", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
