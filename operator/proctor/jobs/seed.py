"""The seeding process: builds one dataset in a ClickHouse, from a configuration on its standard input.

Standard output carries JSON lines: progress, and at the end ``{"record": …}`` or ``{"error": …, "retryable": …}``.

In a pod it is `python -m proctor.jobs.seed --mounted DIR …`: configuration from mounted files, and the dataset is
served to a user of its own too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from proctor.adapters.clickhouse.datasets import Progress
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.registry import DatasetRegistry, SeedOrder
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.scenarios.answer import read_sheet
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.seeding.identity import dataset_hash
from proctor.core.seeding.plan import compile_plan
from proctor.core.seeding.record import DatasetRecord
from proctor.core.seeding.share import MAX_PARTS, Share
from proctor.errors import ProctorError, Retryable

_RETRY_EXIT = 75
"""sysexits' EX_TEMPFAIL: whoever started this may start it again."""


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClickHousePlace(_Closed):
    """A ClickHouse and the user to be there; it must be allowed to create databases."""

    host: str = Field(description="Name or address.")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(description="Of the HTTP interface.")
    user: str = Field(description="The database user.")
    password: SecretStr = Field(default=SecretStr(""), description="The user's password.")
    database: str = Field(default="default", description="Where the registry of datasets is.")
    secure: bool = Field(default=False, description="Whether to speak TLS.")


class SeedConfig(_Closed):
    """What to seed, and where."""

    endpoint: ClickHousePlace = Field(description="The ClickHouse.")
    scenario: Path = Field(description="The scenario's folder: recipe.yaml, answer.yaml for the facts, variants.yaml.")
    volume: Decimal = Field(default=Decimal(1), description="Share of the background's rows.")
    seed: Annotated[int, Field(ge=0)] = Field(default=42, description="An integer that fixes all chance.")
    anchor: AwareDatetime = Field(description="The instant that the data lead up to.")
    threads: Annotated[int, Field(ge=1, le=64)] = Field(default=2, description="How many statements run at a time.")
    part: Annotated[int, Field(ge=0, lt=MAX_PARTS)] = Field(default=0, description="Which part this process loads.")
    parts: Annotated[int, Field(ge=1, le=MAX_PARTS)] = Field(
        default=1, description="How many processes share the work."
    )


async def seed_dataset(config: SeedConfig) -> DatasetRecord | None:
    """Build a dataset unless it is committed already, or load this process's part of it.

    Returns:
        The dataset's record; None if the process of the first part makes it.

    Raises:
        InvalidInput: the recipe or a fact query is at fault.
        Retryable: the ClickHouse went away.
        Terminal: it refused a statement, or holds other rows than the plan says.
    """
    place = config.endpoint
    endpoint = Endpoint(
        place.host, place.port, place.user, place.password.get_secret_value(), place.database, place.secure
    )
    anchor: datetime = config.anchor
    recipe = load_recipe(config.scenario, config.seed)
    order = SeedOrder(
        dataset_hash(recipe, config.seed, anchor, config.volume),
        config.scenario.name,
        compile_plan(recipe, seed=config.seed, anchor=anchor, volume=config.volume),
        read_sheet(config.scenario, config.seed),
        config.threads,
    )
    registry = DatasetRegistry(Shards([HttpSession(endpoint)]), endpoint.database)
    if config.parts == 1:
        return await registry.ensure(order, _report_progress)
    return await registry.ensure_part(order, Share(config.part, config.parts), _report_progress)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the configuration, seed, and return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given:
        from proctor.jobs.mounted_seed import SeedTask, seed_mounted

        return seed_mounted(SeedTask.parse(given), _write)
    try:
        config = SeedConfig.model_validate_json(sys.stdin.read())
        record = asyncio.run(seed_dataset(config))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        _write({"error": f"configuration: {'.'.join(map(str, first['loc']))}: {first['msg']}", "retryable": False})
        return 1
    except ProctorError as error:
        is_retryable = isinstance(error, Retryable)
        _write({"error": str(error), "retryable": is_retryable})
        return _RETRY_EXIT if is_retryable else 1
    _write({"record": record.model_dump(mode="json") if record else None})
    return 0


def _report_progress(progress: Progress) -> None:
    _write({"stage": progress.stage, "rows": progress.rows, "total": progress.total})


def _write(message: object) -> None:
    print(json.dumps(message), flush=True)  # noqa: T201 - standard output is this process's only voice


if __name__ == "__main__":
    sys.exit(main())
