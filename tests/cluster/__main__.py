"""`python -m cluster`: what `make cluster` and its kin call."""

from __future__ import annotations

import argparse
import sys

from cluster import namespace, node
from cluster.faults import ClusterError
from cluster.images import load_images
from cluster.places import Places
from cluster.programs import build
from cluster.remains import remains


def main() -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="bring the node up")
    commands.add_parser("down", help="take it down")
    commands.add_parser("check", help="fail if a node that is down left anything behind")
    images = commands.add_parser("images", help="build Proctor's images and load them into the node")
    images.add_argument("names", nargs="*", metavar="IMAGE", help="which, by folder of images/; all if none")
    program = commands.add_parser("program", help="build the programs of a folder of go/, and print where they are")
    program.add_argument("module", metavar="MODULE")
    for action in ("start", "stop", "restart"):
        commands.add_parser(action, help=f"{action} one of its programs").add_argument("service")
    arguments = parser.parse_args()
    places = Places.from_environment()
    try:
        return _run(arguments, places)
    except ClusterError as fault:
        print(f"cluster: {fault}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace, places: Places) -> int:
    match arguments.command:
        case "up":
            node.up(places)
            print(f"export KUBECONFIG={places.kubeconfig}")
        case "down":
            node.down(places)
        case "check":
            found = remains(places)
            print("\n".join(found) or "nothing is left")
            return 1 if found else 0
        case "images":
            load_images(places, arguments.names)
        case "program":
            print(build(arguments.module, places))
        case action:
            namespace.control(places, {"start": "up", "stop": "down"}.get(action, action), arguments.service)
    return 0


if __name__ == "__main__":
    sys.exit(main())
