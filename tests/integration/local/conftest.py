from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.local_runs import Machine, adopt_orphans, make_suite, scores_of


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """One data dir: its dataset is seeded once."""
    adopt_orphans()
    return Machine(tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="session")
def undisturbed(machine: Machine) -> dict[str, Any]:
    """The run.json of a run that nothing disturbed."""
    finished = machine.call("run", str(machine.write_suite(make_suite())), "--new")
    assert finished.returncode == 0, finished.stderr
    return machine.last_run()


@pytest.fixture(scope="session")
def reference(undisturbed: dict[str, Any]) -> dict[str, str | None]:
    """Its scores."""
    return scores_of(undisturbed)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("engine")
            item.add_marker("sandbox")
