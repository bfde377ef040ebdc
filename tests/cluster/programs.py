"""Programs that are built from Go modules, once per version."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from cluster.faults import ClusterError
from cluster.places import HERE, Places

MODULES = HERE / "go"
VERSION = re.compile(r"^require (\S+) v(\d+)\.(\d+)\.(\d+)\S*$", re.MULTILINE)
COMPONENT = "k8s.io/component-base/version"
HEARTBEAT_SECONDS = 30


def build(module: str, places: Places) -> Path:
    """Return the folder with every `tool` of `go/MODULE/go.mod`, built now if it was not before.

    Raises:
        ClusterError: there is no Go, or the build failed.
    """
    source = MODULES / module
    definition = (source / "go.mod").read_text()
    found = VERSION.search(definition)
    if found is None:
        raise ClusterError(f"{source / 'go.mod'}: its first line `require MODULE VERSION` is missing")
    content = hashlib.sha256((definition + (source / "go.sum").read_text()).encode()).hexdigest()[:12]
    name, *version = found.groups()
    target = places.cache / "programs" / f"{module}-{'.'.join(version)}-{content}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{module}.lock").open("w") as lock:
        # Tests that run side by side ask for the same program: one builds it, the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = target.with_name(f"{target.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _go_build(source, partial, flags=_linker_flags(name, version))
            partial.rename(target)
    return target


def required_version(module: str, dependency: str) -> str:
    """Return the version of a dependency that `go/MODULE/go.mod` requires.

    Raises:
        ClusterError: it requires none.
    """
    definition = MODULES / module / "go.mod"
    found = re.search(rf"^(?:require|\t) ?{re.escape(dependency)} (v\S+)", definition.read_text(), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{definition}: requires no {dependency}")
    return found[1]


def published_files(module: str, version: str) -> Path:
    """Return the folder with a Go module's own files; it is downloaded once, and Go's checksum database vouches for it.

    Raises:
        ClusterError: there is no Go, or no such module.
    """
    _demand_go(module)
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True, env=_environment())
    if done.returncode:
        raise ClusterError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def _linker_flags(module: str, version: list[str]) -> str:
    flags = ["-s", "-w"]
    if module == "k8s.io/kubernetes":  # elsewhere its Makefile says which version this is
        major, minor, _ = version
        flags += ["-X", f"{COMPONENT}.gitVersion=v{'.'.join(version)}"]
        flags += ["-X", f"{COMPONENT}.gitMajor={major}", "-X", f"{COMPONENT}.gitMinor={minor}"]
    return " ".join(flags)


def _go_build(source: Path, target: Path, *, flags: str) -> None:
    _demand_go(source.name)
    command = ["go", "build", "-v", "-trimpath", f"-ldflags={flags}", "-o", f"{target}/", "tool"]
    with subprocess.Popen(command, cwd=source, env=_environment(), stderr=subprocess.PIPE, text=True) as build:
        output = _follow(build, source.name)
    if build.returncode:
        raise ClusterError(f"go build of {source.name} failed:\n{''.join(output[-20:])}")


def _demand_go(name: str) -> None:
    if shutil.which("go") is None:
        raise ClusterError(f"no Go to get {name} with: install Go 1.21 or later (it fetches the version it needs)")


def _environment() -> dict[str, str]:
    return {"GOTOOLCHAIN": "auto", **os.environ, "CGO_ENABLED": "0"}


def _follow(build: subprocess.Popen[str], name: str) -> list[str]:
    """Say now and then how many packages are compiled; return what the compiler wrote."""
    output: list[str] = []
    done = threading.Event()

    def report() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            print(f"    {name}: {len(output)} packages", file=sys.stderr, flush=True)

    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        output.extend(build.stderr or ())
    finally:
        done.set()
        reporter.join()
    return output
