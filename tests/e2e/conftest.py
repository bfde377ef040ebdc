"""The cluster that these tests share; each has namespaces of its own and runs beside the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.kubectl import Kubectl
from cluster.places import Places
from cluster.running import RunningCluster, find_cluster
from proctor.manifests.scope import Images
from support.courses import SMALL_STORE, Course
from support.drills import Drill
from support.installed import install
from support.namespaces import MakeNamespace, open_namespaces


@pytest.fixture(scope="session")
def cluster() -> RunningCluster:
    """The cluster that is there; `make cluster` brings it up."""
    return find_cluster(Places.from_environment())


@pytest.fixture(scope="session")
def kubectl(cluster: RunningCluster) -> Kubectl:
    """Its command line."""
    return cluster.kubectl


@pytest.fixture(scope="session")
def images(cluster: RunningCluster) -> Images:
    """Proctor's images as a run's children name them."""
    names = cluster.images
    return Images(
        operator=names["operator"],
        sandbox=names["sandbox"],
        claude_code=names.get("sandbox-claude-code", ""),
        servers=frozenset({names["mcp-clickhouse"], names["clickscope"]}),
    )


@pytest.fixture
def make_namespace(kubectl: Kubectl) -> Iterator[MakeNamespace]:
    """Make namespaces under Pod Security `restricted`; they are deleted after the test, unwaited."""
    with open_namespaces(kubectl) as make:
        yield make


@pytest.fixture(scope="module")
def course(request: pytest.FixtureRequest, cluster: RunningCluster) -> Iterator[Course]:
    """The chart's operator, and what a file of drills says of itself: `build_specs`, and `ALONE` if it has such."""
    with install(cluster, "drills", clickhouse=SMALL_STORE) as installed:
        alone = getattr(request.module, "ALONE", frozenset())
        yield Course(installed, request.module.build_specs(cluster.images), alone)


@pytest.fixture
def drill(request: pytest.FixtureRequest, course: Course) -> Iterator[Drill]:
    """The run of this drill; it is gone afterwards."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    names = [item.name for item in items if item.path == request.path and "drill" in item.fixturenames]
    run = course.begin(request.node.name, names)
    yield run
    run.remove()
