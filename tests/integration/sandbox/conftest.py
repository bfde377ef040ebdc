"""What all attackers meet: one socket, which is their only way out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.sandbox import open_socket, short_folder


@pytest.fixture
async def socket() -> AsyncIterator[Path]:
    with short_folder() as folder:
        async with open_socket(folder) as path:
            yield path
