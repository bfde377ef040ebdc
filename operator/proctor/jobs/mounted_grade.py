"""Grading in a pod: told by a ConfigMap that no more cells end, and telling through it what was graded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from proctor.adapters.clickhouse.house import HouseClient
from proctor.adapters.kube.configmap import ApiServer, ConfigMapClient
from proctor.bootstrap.grade import build_grader
from proctor.bootstrap.mounted import Mount
from proctor.bootstrap.mounted_grader import prepare_store, read_grader_config
from proctor.core.grading.summary import shorten_summary
from proctor.errors import ProctorError, Retryable
from proctor.jobs.grade import GradingJob
from proctor.manifests.documents import FINISH_KEY, SUMMARY_KEY
from proctor.manifests.names import RunNames

logger = logging.getLogger("proctor.jobs.grade")

_LOOK_SECONDS = 2.0
_START_TRIES = 60
"""Two minutes: engines may be coming back."""

_Outcome = TypeVar("_Outcome")


async def grade_mounted(root: Path) -> None:
    """Grade the run whose pod this is, until it is told that no more cells end, and all are graded.

    Raises:
        InvalidInput: what is mounted is wrong.
        Retryable: a dataset does not answer.
        Terminal: the ConfigMap is gone, or the store refuses.
    """
    config = await _patiently(lambda: read_grader_config(root))
    # No gateway may have been there before, and a table that is missing would look like a refusal.
    await _patiently(lambda: prepare_store(root))
    config.summary.parent.mkdir(parents=True, exist_ok=True)
    config.summary.unlink(missing_ok=True)
    parts = build_grader(config)
    mirror = SummaryMirror(config.summary, ConfigMapClient(ApiServer.of_pod(), RunNames.of(config.run).grades))
    ended = asyncio.Event()
    job = GradingJob(parts)
    grading = asyncio.create_task(job.run(ended))
    mirroring = asyncio.create_task(mirror.keep(ended))
    try:
        await asyncio.wait({grading, mirroring}, return_when=asyncio.FIRST_COMPLETED)
        if mirroring.done():
            mirroring.result()  # it ends only by failing: nobody would see what is graded from here on
        await grading
        await mirror.finish()
        await _let_go(Mount(root))
    finally:
        for task in (grading, mirroring):
            task.cancel()
        await asyncio.gather(grading, mirroring, return_exceptions=True)
        await job.close()


async def _let_go(mount: Mount) -> None:
    """Tell a house that nobody needs the run's datasets any more; it would find out by itself, hours later."""
    store = mount.children.store
    if store.control_port is None:
        return
    house = HouseClient(store.host, store.control_port, mount.store().password)
    try:
        for place in mount.children.datasets.values():
            await house.drop(place.user)
    except ProctorError as error:
        logger.warning("datasets are served on until their time is over", extra={"problem": str(error)})
    finally:
        house.close()


class SummaryMirror:
    """Keeps a ConfigMap like the grader's summary, and looks whether more cells are to come.

    Args:
        summary: the file that the grader replaces whenever it has graded something.
        client: the ConfigMap.
    """

    def __init__(self, summary: Path, client: ConfigMapClient) -> None:
        self._summary = summary
        self._client = client
        self._told = ""

    async def keep(self, ended: asyncio.Event) -> None:
        """Go on until cancelled.

        Args:
            ended: set once no more cells end.

        Raises:
            Terminal: the ConfigMap is gone.
        """
        while True:
            try:
                if await self.look():
                    ended.set()
            except Retryable as error:
                logger.warning("the API server is away", extra={"problem": str(error)})
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> bool:
        """Tell what is new; say whether no more cells end.

        Raises:
            Retryable: the API server is away.
            Terminal: the ConfigMap is gone.
        """
        data = await self._tell() or await self._client.read()
        return bool(data.get(FINISH_KEY))

    async def finish(self) -> None:
        """Tell the last; returns once that is done.

        Raises:
            Terminal: the ConfigMap is gone.
        """
        while True:
            try:
                await self._tell()
            except Retryable as error:
                logger.warning("the API server is away", extra={"problem": str(error)})
                await asyncio.sleep(error.delay)
            else:
                return

    async def _tell(self) -> dict[str, str]:
        """Write the summary if it has changed; return the ConfigMap's data if it was written."""
        try:
            body = await asyncio.to_thread(self._summary.read_bytes)
        except FileNotFoundError:
            return {}
        short = shorten_summary(body).decode()
        if short == self._told:
            return {}
        data = await self._client.patch({SUMMARY_KEY: short})
        self._told = short
        return data


async def _patiently(work: Callable[[], Awaitable[_Outcome]]) -> _Outcome:
    for _ in range(_START_TRIES):
        try:
            return await work()
        except Retryable as error:
            logger.warning("a ClickHouse is away", extra={"problem": str(error)})
            await asyncio.sleep(_LOOK_SECONDS)
    return await work()
