"""Seeding in a pod: one scenario's dataset is built and served, and the pod's last words say where."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.house import HouseClient, SeedOrderTexts
from proctor.adapters.clickhouse.restricted import AgentLimits, build_user
from proctor.adapters.clickhouse.session import HttpSession
from proctor.api.suite import ScenarioRef
from proctor.bootstrap.children_file import DatasetPlace
from proctor.bootstrap.mounted import Mount
from proctor.clock import utc_now
from proctor.core.digests import canonical_json
from proctor.core.seeding.identity import ANSWER_FILE, RECIPE_FILE, read_variants
from proctor.core.seeding.record import DatasetRecord
from proctor.core.seeding.share import Share
from proctor.errors import InvalidInput, ProctorError, Retryable
from proctor.jobs.seed import ClickHousePlace, SeedConfig, seed_dataset

TERMINATION_LOG = Path("/dev/termination-log")
_MAX_MESSAGE = 3000
"""A kubelet keeps four kilobytes."""

_PATIENCE_SECONDS = 300.0
"""A ClickHouse that restarts is back by then; a new pod would only be later. The Job tries it four times."""

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Set by Kubernetes in the pods of an Indexed Job."""

_SLACK = timedelta(hours=1)
"""For which a dataset is served beyond the run's own deadline, so that grading never meets its end."""


class ClickHouseKind(StrEnum):
    """Whose ClickHouse it is."""

    EMBEDDED = "Embedded"
    SERVER = "Server"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedTask:
    """What one pod seeds, and where.

    Attributes:
        mounted: the mounted folder.
        scenario: the scenario's name in the suite.
        kind: whose ClickHouse it is.
        host: its host.
        port: of HTTP.
        control_port: of an embedded one's house.
        user_name: who servers under test will be.
        secure: whether to speak TLS.
        share: which part of the dataset this pod loads; the pod of the first also makes it.
        termination_log: takes the last words.
        patience: seconds for which a ClickHouse that is away is waited for.
    """

    mounted: Path
    scenario: str
    kind: ClickHouseKind
    host: str
    port: int
    control_port: int
    user_name: str
    secure: bool
    share: Share
    termination_log: Path
    patience: float

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> SeedTask:
        """Read a command line."""
        parser = argparse.ArgumentParser(prog="python -m proctor.jobs.seed", allow_abbrev=False)
        parser.add_argument("--mounted", type=Path, metavar="DIR", required=True)
        parser.add_argument("--scenario", required=True)
        parser.add_argument("--clickhouse-kind", type=ClickHouseKind, required=True, dest="kind")
        parser.add_argument("--host", required=True)
        parser.add_argument("--port", type=int, required=True)
        parser.add_argument("--control-port", type=int, default=8124)
        parser.add_argument("--user-name", required=True)
        parser.add_argument("--secure", action="store_true")
        parser.add_argument(
            "--parts", type=int, default=1, help=f"pods of an Indexed Job; {_INDEX_VARIABLE} says which"
        )
        parser.add_argument("--termination-log", type=Path, default=TERMINATION_LOG)
        parser.add_argument("--patience", type=float, metavar="SECONDS", default=_PATIENCE_SECONDS)
        given = vars(parser.parse_args(arguments))
        return cls(share=Share(int(os.environ.get(_INDEX_VARIABLE, "0")), given.pop("parts")), **given)


def seed_mounted(task: SeedTask, say: Callable[[object], None]) -> int:
    """Seed and serve; return the exit code, and leave last words.

    Args:
        task: what to do.
        say: takes progress and the last words, for the pod's log.
    """
    try:
        place = asyncio.run(_seed_patiently(task, say))
        words: dict[str, Any] = place.model_dump(mode="json", by_alias=True) if place else {"loaded": str(task.share)}
        code = 0
    except ProctorError as error:
        is_retryable = isinstance(error, Retryable)
        words = {"error": str(error)[:_MAX_MESSAGE], "retryable": is_retryable}
        code = 75 if is_retryable else 1
    say(words)
    with contextlib.suppress(OSError):
        task.termination_log.write_bytes(canonical_json(words))
    return code


async def _seed_patiently(task: SeedTask, say: Callable[[object], None]) -> DatasetPlace | None:
    until, said = time.monotonic() + task.patience, ""
    while True:
        try:
            return await _seed(task, say)
        except Retryable as error:
            if time.monotonic() + error.delay > until:
                raise
            if str(error) != said:
                said = str(error)
                say({"waiting": said})
            await asyncio.sleep(error.delay)


async def _seed(task: SeedTask, say: Callable[[object], None]) -> DatasetPlace | None:
    mount = Mount(task.mounted)
    ref = _find_ref(mount, task.scenario)
    until = utc_now() + timedelta(seconds=mount.suite.limits.active_deadline_seconds) + _SLACK
    match task.kind:
        case ClickHouseKind.EMBEDDED:
            return await _seed_in_house(task, mount, ref, until=until, say=say)
        case ClickHouseKind.SERVER:
            return await _seed_in_server(task, mount, ref, until=until)
    assert_never(task.kind)


def _find_ref(mount: Mount, scenario: str) -> ScenarioRef:
    for ref in mount.suite.scenarios:
        if ref.name == scenario:
            return ref
    raise InvalidInput(f"--scenario {scenario}: the suite has no such scenario")


async def _seed_in_house(
    task: SeedTask, mount: Mount, ref: ScenarioRef, *, until: datetime, say: Callable[[object], None]
) -> DatasetPlace:
    folder = mount.scenario_dir(ref)
    admin = mount.clickhouse(task.host, task.port)
    house = HouseClient(task.host, task.control_port, admin.password)
    order = SeedOrderTexts(
        scenario=ref.name,
        recipe=_read_text(folder / RECIPE_FILE),
        answer=_read_text(folder / ANSWER_FILE),
        variants=read_variants(folder),
        seed=ref.seed,
        anchor=mount.children.anchor,
        volume=ref.volume,
    )
    try:
        record = await house.seed(order, say)
        served = await house.serve(record.hash, user=task.user_name, password=mount.key("datasetPassword"), until=until)
    finally:
        house.close()
    return _place(task, record, port=served.port)


async def _seed_in_server(task: SeedTask, mount: Mount, ref: ScenarioRef, *, until: datetime) -> DatasetPlace | None:
    admin = mount.clickhouse(task.host, task.port, secure=task.secure)
    record = await seed_dataset(
        SeedConfig(
            endpoint=ClickHousePlace(
                host=admin.host,
                port=admin.port,
                user=admin.user,
                password=admin.password,
                secure=admin.secure,
            ),
            scenario=mount.scenario_dir(ref),
            volume=ref.volume,
            seed=ref.seed,
            anchor=mount.children.anchor,
            part=task.share.part,
            parts=task.share.parts,
        )
    )
    if record is None:
        return None
    await _make_user(admin, task.user_name, mount.key("datasetPassword"), database=record.database, until=until)
    return _place(task, record, port=task.port)


async def _make_user(admin: Endpoint, name: str, password: str, *, database: str, until: datetime) -> None:
    session = HttpSession(admin)
    agent = replace(admin, user=name, password=password)
    # Anew each time: a try before this one may have been cut between the user and its grant.
    for statement in build_user(agent, database, AgentLimits(), until=until):
        await session.run(statement)


def _place(task: SeedTask, record: DatasetRecord, *, port: int) -> DatasetPlace:
    return DatasetPlace(
        hash=record.hash,
        digest=record.digest,
        database=record.database,
        host=task.host,
        port=port,
        user=task.user_name,
        secure=task.secure,
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: can't be read: {error}") from error
