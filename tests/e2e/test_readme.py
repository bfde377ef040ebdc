"""The README's commands on a cluster, as they are printed there, by somebody who has just arrived."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cluster.kubectl import Kubectl
from cluster.places import Places
from cluster.running import RunningCluster
from support.chart import Helm, find_helm
from support.installed import await_it

pytestmark = [pytest.mark.cluster, pytest.mark.own_node]

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "proctor-system"
DEFINITIONS = ("evalsuites.proctor.dev", "evalruns.proctor.dev")
VERDICT = re.compile(r"\b(Pass|Fail|Inconclusive|Error)\b")
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


@pytest.fixture
def bare(cluster: RunningCluster) -> Iterator[Kubectl]:
    """The cluster without anything of Proctor: what other tests left of it goes, and what this one leaves too."""
    kubectl = cluster.kubectl

    def clear() -> None:
        kubectl.run("delete", "evalsuites,evalruns", "--all", "--namespace=default", check=False)
        kubectl.run("delete", "crd", "--ignore-not-found", *DEFINITIONS)

    clear()
    yield kubectl
    Helm(kubectl.kubeconfig).run("uninstall", "proctor", f"--namespace={NAMESPACE}")
    clear()
    kubectl.run("delete", "namespace", NAMESPACE)


def shown_commands() -> list[str]:
    """Return the commands of the README's part on Kubernetes, without the one that builds the images."""
    return [command for command in COMMAND.findall(shown()) if not command.startswith("make ")]


def shown() -> str:
    """Return the README's part on Kubernetes."""
    return (ROOT / "README.md").read_text().partition("## On Kubernetes\n")[2].partition("\n## ")[0]


def test_the_readme_installs_runs_and_waits(bare: Kubectl, tmp_path: Path) -> None:
    """M-A1: each command shown works as it is printed and says what is shown; the watch ends with the verdict."""
    install, apply, watch, wait = shown_commands()
    environment = make_environment(bare, tmp_path)

    def start(command: str) -> subprocess.Popen[str]:
        words = [word.replace("~", str(tmp_path)) if word.startswith("~/") else word for word in shlex.split(command)]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)

    def run(command: str) -> str:
        with start(command) as done:
            out, errors = done.communicate()
        assert done.returncode == 0, f"{command}: {errors}"
        return out

    assert "STATUS: deployed" in run(install)
    assert run(apply) in shown()
    await_it("the suite's run", lambda: bare.get("evalruns", "--namespace=default")["items"])
    with start(watch) as watching:
        assert watching.stdout is not None
        lines = list(take_until(VERDICT, watching.stdout))
        watching.kill()
    assert lines[0].split() in [line.split() for line in shown().splitlines()], "".join(lines)
    assert VERDICT.findall(lines[-1]) == ["Pass"], "".join(lines)
    assert run(wait) in shown()


def take_until(last: re.Pattern[str], lines: Iterable[str]) -> Iterator[str]:
    """Yield lines up to the first that matches, and that one."""
    for line in lines:
        yield line
        if last.search(line):
            return


def make_environment(kubectl: Kubectl, home: Path) -> dict[str, str]:
    """Return what a shell has in which kubectl and helm are there, and images were made."""
    (home / ".cache").mkdir()
    (home / ".cache" / "proctor-cluster").symlink_to(Places.from_environment().cache)
    folders = [str(Path(sys.executable).parent), str(Path(kubectl.program).parent), str(find_helm().parent)]
    return {
        **os.environ,
        "PATH": ":".join([*folders, os.environ["PATH"]]),
        "KUBECONFIG": str(kubectl.kubeconfig),
        "HOME": str(home),
    }
