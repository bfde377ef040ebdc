"""More drills: a namespace with a run in it is deleted, whatever the run is at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.running import RunningCluster
from support.courses import SMALL_STORE, check_measured
from support.drills import Drill, build_spec
from support.installed import Installed, await_it, install
from support.namespaces import open_namespaces

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

PHASES = ("Seeding", "Enforcing", "Controls", "Running")


@pytest.fixture(scope="module")
def namespaces(cluster: RunningCluster) -> Iterator[dict[str, str]]:
    """One for each phase."""
    with open_namespaces(cluster.kubectl) as make:
        yield {phase: make(f"drills-{phase.lower()}") for phase in PHASES}


@pytest.fixture(scope="module")
def installed(cluster: RunningCluster, namespaces: dict[str, str]) -> Iterator[Installed]:
    """One operator for all of them."""
    with install(cluster, "drills", *namespaces.values(), clickhouse=SMALL_STORE) as found:
        yield found


@pytest.mark.parametrize("phase", PHASES)
def test_namespace_deleted(
    phase: str, cluster: RunningCluster, installed: Installed, namespaces: dict[str, str]
) -> None:
    """P34, S31: it goes with everything in it; the operator serves the others as before."""
    doomed, spec = namespaces[phase], build_spec(cluster.images)
    drill = Drill.start(Installed(installed.kubectl, installed.release, doomed), "doomed", spec)
    await_it(f"the run is {phase}", lambda: drill.status().get("phase") == phase)
    installed.kubectl.run("delete", "namespace", doomed, "--timeout=120s")
    other = Drill.start(installed, f"after-{phase.lower()}", spec)
    other.let_go(other.await_agent())
    check_measured(other, (1, "completed"))
    other.remove()
