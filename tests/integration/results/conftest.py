"""One engine for all tests of a module; each test gets a database of its own.

It ends with the module: tests of whole runs, in the same process, look whether anything is left running.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse.results import ResultsStore
from proctor.local.engine import Engine, EngineLimits

SMALL = EngineLimits(memory_bytes=2 << 30, threads=2)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    root: Path = tmp_path_factory.mktemp("results-engine")
    async with Engine.start(root / "data", log=root / "engine.log", limits=SMALL) as engine:
        yield engine


@pytest_asyncio.fixture(loop_scope="module")
async def store(engine: Engine) -> AsyncIterator[ResultsStore]:
    store = ResultsStore(engine.endpoint, f"proctor_{secrets.token_hex(4)}")
    await store.migrate()
    yield store
    await store.close()
