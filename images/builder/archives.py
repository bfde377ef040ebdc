"""Image archives: what digest a cluster will know the image by."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from builder.faults import ImageError


def read_digest(archive: Path) -> str:
    """Return the digest of the one image in an archive.

    Raises:
        ImageError: the archive has no OCI index, or several images.
    """
    with tarfile.open(archive) as tar:
        try:
            index = json.load(tar.extractfile("index.json") or b"")  # type: ignore[arg-type]
        except KeyError as fault:
            raise ImageError(f"{archive} has no OCI index: docker must be 25 or later") from fault
    manifests = index["manifests"]
    if len(manifests) != 1:
        raise ImageError(f"{archive} holds {len(manifests)} images")
    return str(manifests[0]["digest"])
