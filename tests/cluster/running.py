"""The cluster that tests run on: the one that `KUBECONFIG` names, or this machine's own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster.faults import ClusterError
from cluster.kubectl import Kubectl
from cluster.places import Places


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that answers.

    Args:
        kubectl: its command line, as an administrator.
        images: name by digest of each of Proctor's images, by folder of `images/`.
        is_own: whether `make cluster` made it, so that its programs may be stopped and its node broken.
    """

    kubectl: Kubectl
    images: Mapping[str, str]
    is_own: bool


def find_cluster(places: Places) -> RunningCluster:
    """Return the cluster to test on.

    Raises:
        ClusterError: there is none; the message says how to get one.
    """
    named = os.environ.get("PROCTOR_KUBECONFIG") or os.environ.get("KUBECONFIG")
    kubeconfig = Path(named) if named else places.kubeconfig
    if not kubeconfig.exists() or not Kubectl(kubeconfig).is_ready():
        raise ClusterError(f"no cluster answers by {kubeconfig}: make cluster, or KUBECONFIG=… for another")
    listing = Path(os.environ.get("PROCTOR_IMAGES") or places.cache / "images" / "images.json")
    if not listing.exists():
        raise ClusterError(f"no images are known to {listing}: make images")
    return RunningCluster(Kubectl(kubeconfig), json.loads(listing.read_text()), is_own=kubeconfig == places.kubeconfig)
