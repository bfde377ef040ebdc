"""One engine for all tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.session import HttpSession
from proctor.local.engine import ADMIN_ONLY, Engine


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def endpoint(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoint]:
    root = tmp_path_factory.mktemp("seeding")
    async with Engine.start(root / "data", access=ADMIN_ONLY, log=root / "engine.log") as engine:
        yield engine.endpoint


@pytest.fixture
def session(endpoint: Endpoint) -> HttpSession:
    return HttpSession(endpoint)
