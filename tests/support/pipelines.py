"""Flux and Argo Rollouts themselves, as processes beside the cluster that serve one namespace."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cluster.kubectl import Kubectl
from cluster.places import Places
from cluster.programs import build, published_files, required_version

FLUX = "kustomize-controller"
ROLLOUTS = "argo-rollouts"
TEKTON_VERSION = "v1.9.0"
STOP_SECONDS = 30


def define_flux(kubectl: Kubectl) -> None:
    """Apply the definitions of Flux' kinds: its own, and those of the controller that it gets sources from."""
    sources = required_version(FLUX, "github.com/fluxcd/source-controller/api")
    own = required_version(FLUX, "github.com/fluxcd/kustomize-controller")
    for module, version in (("source-controller", sources), (FLUX, own)):
        apply_definitions(kubectl, published_files(f"github.com/fluxcd/{module}", version) / "config" / "crd" / "bases")


def define_rollouts(kubectl: Kubectl) -> None:
    """Apply the definitions of Argo Rollouts' kinds."""
    path = "github.com/argoproj/argo-rollouts"
    crds = published_files(path, required_version(ROLLOUTS, path)) / "manifests" / "crds"
    apply_definitions(kubectl, *sorted(crds.glob("*-crd.yaml")))


def define_tekton(kubectl: Kubectl) -> None:
    """Apply the definition of a Task."""
    crds = published_files("github.com/tektoncd/pipeline", TEKTON_VERSION) / "config" / "300-crds"
    apply_definitions(kubectl, crds / "300-task.yaml")


def apply_definitions(kubectl: Kubectl, *files: Path) -> None:
    """Apply definitions, and wait until they are served."""
    where = [f"--filename={file}" for file in files]
    kubectl.run("apply", "--server-side", "--force-conflicts", *where)
    kubectl.run("wait", "--for=condition=Established", "--timeout=60s", *where)


@contextlib.contextmanager
def run_flux(kubectl: Kubectl, namespace: str, log: Path) -> Iterator[None]:
    """Run kustomize-controller for one namespace; its Kustomizations go while it can still let them."""
    program = build(FLUX, Places.from_environment()) / FLUX
    options = ("--watch-all-namespaces=false", "--requeue-dependency=2s", "--metrics-addr=0", "--health-addr=0")
    environment = {"KUBECONFIG": str(kubectl.kubeconfig), "RUNTIME_NAMESPACE": namespace, "TMPDIR": str(log.parent)}
    with _running([str(program), *options], environment, log):
        try:
            yield
        finally:
            kubectl.run("delete", "kustomizations", "--all", f"--namespace={namespace}", "--timeout=120s")


@contextlib.contextmanager
def run_rollouts(kubectl: Kubectl, namespace: str, log: Path) -> Iterator[None]:
    """Run Argo Rollouts' controller for one namespace."""
    program = build(ROLLOUTS, Places.from_environment()) / "rollouts-controller"
    where = ("--namespaced", f"--namespace={namespace}", f"--kubeconfig={kubectl.kubeconfig}")
    options = (*where, "--leader-elect=false", "--metricsPort=0", "--healthzPort=0")
    with _running([str(program), *options], {"POD_NAMESPACE": namespace}, log):
        yield


@contextlib.contextmanager
def _running(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=file, stderr=subprocess.STDOUT)
        try:
            yield
            assert process.poll() is None, f"{command[0]} has ended:\n{log.read_text()[-4000:]}"
        finally:
            process.terminate()
            process.wait(timeout=STOP_SECONDS)


@dataclass(frozen=True)
class Fleet:
    """A Git repository as Flux has it after source-controller has fetched it: an archive, and a status that says where.

    Attributes:
        folder: what is served.
        url: of the folder.
    """

    kubectl: Kubectl
    namespace: str
    folder: Path
    url: str

    def push(self, files: Mapping[str, Mapping[str, Any]]) -> str:
        """Commit manifests by path, in place of all that was there; return the revision."""
        archive = _pack(files)
        digest = hashlib.sha256(archive).hexdigest()
        revision = f"main@sha1:{digest[:40]}"
        (self.folder / f"{digest}.tar.gz").write_bytes(archive)
        metadata = {"name": "fleet", "namespace": self.namespace}
        api_version = "source.toolkit.fluxcd.io/v1"
        spec = {"interval": "1h", "url": "https://git.example.com/fleet"}
        body = {"apiVersion": api_version, "kind": "GitRepository", "metadata": metadata, "spec": spec}
        self.kubectl.apply(body)
        now = "2026-11-30T12:00:00Z"
        artifact = {
            "path": f"fleet/{digest}.tar.gz",
            "url": f"{self.url}/{digest}.tar.gz",
            "revision": revision,
            "digest": f"sha256:{digest}",
            "lastUpdateTime": now,
            "size": len(archive),
        }
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": now}
        patch = {"status": {"observedGeneration": 1, "artifact": artifact, "conditions": [ready]}}
        where = ("gitrepository", "fleet", f"--namespace={self.namespace}", "--subresource=status", "--type=merge")
        self.kubectl.run("patch", *where, f"--patch={json.dumps(patch)}")
        return revision


@contextlib.contextmanager
def serve_fleet(kubectl: Kubectl, namespace: str, folder: Path) -> Iterator[Fleet]:
    """Serve a folder of archives on the loopback."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Fleet(kubectl, namespace, folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _pack(files: Mapping[str, Mapping[str, Any]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, manifest in files.items():
            content = json.dumps(manifest).encode()  # which is YAML too
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
