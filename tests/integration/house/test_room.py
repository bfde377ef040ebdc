"""A house with room for one dataset, and two runs that want theirs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.house import SeedOrderTexts
from proctor.errors import Retryable
from proctor.local.engine import Known
from proctor.local.house.house import House
from proctor.local.house.settings import HouseSettings
from support.engines import ask
from support.houses import find_ports
from support.mounted import ADMIN, ADMIN_PASSWORD, DATASET_PASSWORD
from support.seeding import EVERYTHING

pytestmark = pytest.mark.engine

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
UNTIL = START + timedelta(hours=3)
ORDER = SeedOrderTexts(
    scenario="everything",
    recipe=(EVERYTHING / "recipe.yaml").read_text(),
    answer=None,
    variants=None,
    seed=42,
    anchor=START,
    volume=Decimal("0.1"),
)


async def test_whoever_asked_nothing_for_long_makes_room(tmp_path: Path) -> None:
    """S31: a run that was deleted, or failed early, is never heard of again; its place goes to one that wants it."""
    now = START
    results, control, first = find_ports()
    settings = HouseSettings(
        admin=Known.with_password(ADMIN, ADMIN_PASSWORD),
        directory=tmp_path / "house",
        listen="127.0.0.1",
        results_port=results,
        control_port=control,
        first_port=first,
        count=1,
    )
    one, other = (Known.with_password(f"pr_{name}_0", DATASET_PASSWORD) for name in ("one", "other"))
    house = House(settings, clock=lambda: now)
    async with house.living():
        record = await house.seed(ORDER, lambda _: None)
        served = await house.serve(record.hash, one, until=UNTIL)
        reader = Endpoint("127.0.0.1", served.port, one.name, DATASET_PASSWORD, served.database)
        for minutes in (0, 10, 20):
            now = START + timedelta(minutes=minutes)
            assert ask(reader, "SHOW TABLES").ok
            assert ask(reader, "SELECT 1").ok
            await house.sweep()
            with pytest.raises(Retryable, match="all places"):
                await house.serve(record.hash, other, until=UNTIL)
        now = START + timedelta(minutes=36)
        await house.sweep()
        assert (await house.serve(record.hash, other, until=UNTIL)).port == served.port
        assert ask(reader, "SELECT 1").code == 516
