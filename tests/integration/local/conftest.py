from __future__ import annotations

from pathlib import Path

import pytest

from support.local_runs import Machine, adopt_orphans, make_suite, scores_of


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """One data dir: its dataset is seeded once."""
    adopt_orphans()
    return Machine(tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="session")
def reference(machine: Machine) -> dict[str, str | None]:
    """The scores of a run that nothing disturbed."""
    finished = machine.call("run", str(machine.write_suite(make_suite())), "--new")
    assert finished.returncode == 0, finished.stderr
    return scores_of(machine.last_run())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("engine")
            item.add_marker("sandbox")
