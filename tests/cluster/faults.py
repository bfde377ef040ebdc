"""What stops the cluster from coming up, said in one line."""

from __future__ import annotations


class ClusterError(Exception):
    """The cluster can't be brought up or down; the message says what to do."""
