"""The engines of a house, and the datasets that it builds and serves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proctor.adapters.clickhouse.house import SeedOrderTexts
from proctor.adapters.clickhouse.session import HttpSession
from proctor.clock import Clock, utc_now
from proctor.core.seeding.identity import ANSWER_FILE, RECIPE_FILE, VARIANTS_FILE
from proctor.core.seeding.record import DatasetRecord
from proctor.errors import InvalidInput, ProctorError, Retryable, Terminal
from proctor.local.dataset_files import SeedRequest, datasets_dir, engine_dir, read_record
from proctor.local.datasets import ensure_dataset
from proctor.local.durable import translate_os_error
from proctor.local.engine import Access, Known, clone_dataset
from proctor.local.house.headroom import has_room
from proctor.local.house.ledger import Ledger, ServedEntry
from proctor.local.house.settings import HouseSettings
from proctor.local.kept_engine import KeptEngine
from proctor.reconcile.observed import Readiness

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress

_SEEDINGS_AT_ONCE = 2
_SWEEP_SECONDS = 30.0
_IDLE = timedelta(minutes=15)
"""A run that asked nothing for so long makes room for one that needs it: it may have been deleted, or be of no use."""

_QUERIES = "SELECT value FROM system.events WHERE event = 'SelectQuery'"
_MAX_THREADS = 4


class _Heard(NamedTuple):
    """How many queries an engine had answered, and since when nobody has asked one."""

    queries: int
    since: datetime


class House:
    """Keeps one engine for results, and one for each dataset that is served.

    Args:
        settings: where.
        clock: tells the time of day.
    """

    def __init__(self, settings: HouseSettings, *, clock: Clock = utc_now) -> None:
        self._settings = settings
        self._clock = clock
        self._changed = asyncio.Event()
        self._ledger = Ledger(settings.directory / "served.json")
        self._entries: dict[str, ServedEntry] = {}
        self._engines: dict[str, KeptEngine] = {}
        self._heard: dict[str, _Heard] = {}
        self._lock = asyncio.Lock()
        self._seedings = asyncio.Semaphore(_SEEDINGS_AT_ONCE)
        self._results = KeptEngine(
            settings.directory / "engines" / "results",
            log=self._log("results"),
            notify=self._changed.set,
            access=Access(admin=settings.admin, host=settings.listen, port=settings.results_port),
            limits=settings.limits,
        )

    @property
    def ready(self) -> bool:
        """Whether results can be kept."""
        return self._results.state is Readiness.READY

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Start what is to be served, again what was served before; end it all on leaving.

        Raises:
            Terminal: the results engine can't start.
        """
        await asyncio.to_thread(self._tidy)
        self._results.start()
        for entry in self._entries.values():
            self._start(entry)
        sweeping = asyncio.create_task(self._keep_sweeping())
        try:
            await self._results.ready()
            yield
        finally:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)
            await asyncio.gather(self._results.close(), *(engine.close() for engine in self._engines.values()))

    async def failed(self) -> str:
        """Return why no results can be kept any more, once that is so."""
        while self._results.state is not Readiness.FAILED:
            self._changed.clear()
            await self._changed.wait()
        return self._results.message

    async def seed(self, wanted: SeedOrderTexts, on_progress: OnProgress) -> DatasetRecord:
        """Return a dataset's record, building what is missing.

        Raises:
            InvalidInput: the recipe or a fact query is at fault.
            Retryable: the engine went away.
            Terminal: it can't be built here.
        """
        folder = self._settings.directory / "incoming" / secrets.token_hex(8) / wanted.scenario
        try:
            await asyncio.to_thread(_write_documents, folder, wanted)
            request = SeedRequest(
                folder,
                seed=wanted.seed,
                anchor=wanted.anchor,
                volume=wanted.volume,
                threads=min(os.cpu_count() or 1, _MAX_THREADS),
            )
            async with self._seedings:
                return await ensure_dataset(request, data_dir=self._settings.directory, on_progress=on_progress)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)

    async def serve(self, dataset: str, user: Known, *, until: datetime) -> ServedEntry:
        """Let a user query one dataset, and nothing else, until an instant; asking again changes nothing.

        Raises:
            InvalidInput: there is no such dataset, or the user is another dataset's.
            Retryable: all places are taken, by those who use them.
            Terminal: it can't be served.
        """
        async with self._lock:
            known = self._entries.get(user.name)
            if known is not None and known.hash != dataset:
                raise InvalidInput(f"user {user.name}: reads dataset {known.hash} already, and never two")
            record = await asyncio.to_thread(read_record, datasets_dir(self._settings.directory) / dataset)
            if record is None:
                raise InvalidInput(f"dataset {dataset}: it is not here; seed it first")
            entry = ServedEntry(
                user=user.name,
                hash=dataset,
                database=record.database,
                password_digest=user.password_digest,
                port=await self._find_place() if known is None else known.port,
                until=until if known is None else max(until, known.until),
            )
            if known is None:
                await asyncio.to_thread(self._clone, entry)
            # Before the engine starts: whatever kills us from here on, the next house serves it.
            self._keep(self._entries | {entry.user: entry})
            engine = self._engines.get(entry.user)
            is_same = known is not None and known.password_digest == entry.password_digest
            if engine is not None and (not is_same or engine.state is Readiness.FAILED):
                await engine.close()
                engine = None
            await (engine or self._start(entry)).ready()
            return entry

    async def drop(self, user: str) -> None:
        """Stop serving a user; nothing happens if it is not served."""
        async with self._lock:
            await self._drop(user)

    async def sweep(self) -> int:
        """Stop serving those whose time has come; return how many there were."""
        async with self._lock:
            for user, engine in self._engines.items():
                await self._listen(user, engine)
            over = [entry.user for entry in self._entries.values() if entry.is_over(self._clock())]
            for user in over:
                await self._drop(user)
            return len(over)

    async def _drop(self, user: str) -> None:
        if user not in self._entries:
            return
        self._keep({name: entry for name, entry in self._entries.items() if name != user})
        self._heard.pop(user, None)
        engine = self._engines.pop(user, None)
        if engine is not None:
            await engine.close()
        await asyncio.to_thread(shutil.rmtree, self._place(user), ignore_errors=True)

    def _start(self, entry: ServedEntry) -> KeptEngine:
        access = Access(
            agent_database=entry.database,
            agent=Known(name=entry.user, password_digest=entry.password_digest),
            host=self._settings.listen,
            port=entry.port,
        )
        engine = KeptEngine(
            self._place(entry.user) / "engine",
            log=self._log(entry.user),
            notify=self._changed.set,
            access=access,
            limits=self._settings.limits,
        )
        engine.start()
        self._engines[entry.user] = engine
        return engine

    async def _find_place(self) -> int:
        taken = {entry.port for entry in self._entries.values()}
        free = next((port for port in self._settings.places if port not in taken), None)
        if free is not None and await asyncio.to_thread(has_room):
            return free
        for user, heard in sorted(self._heard.items(), key=lambda item: item[1].since):
            if self._clock() - heard.since >= _IDLE:
                port = self._entries[user].port
                await self._drop(user)
                return port
        raise Retryable("serving a dataset: all places of the house are taken; they end with their runs", delay=30)

    async def _listen(self, user: str, engine: KeptEngine) -> None:
        """Take note of whether anything was asked of an engine since the last time."""
        if engine.state is not Readiness.READY:
            return
        try:
            count = int(str((await HttpSession(engine.endpoint).fetch(_QUERIES))[0][0]))
        except (ProctorError, IndexError):
            return  # it is starting again, and counts anew
        before = self._heard.get(user)
        # The question itself is one.
        since = before.since if before is not None and count == before.queries + 1 else self._clock()
        self._heard[user] = _Heard(count, since)

    def _clone(self, entry: ServedEntry) -> None:
        place = self._place(entry.user)
        shutil.rmtree(place, ignore_errors=True)
        try:
            place.mkdir(parents=True)
        except OSError as error:
            raise translate_os_error(error, f"making {place}") from error
        clone_dataset(engine_dir(self._settings.directory, entry.hash), place / "engine")

    def _keep(self, entries: dict[str, ServedEntry]) -> None:
        self._ledger.write(entries.values())
        self._entries = entries

    def _tidy(self) -> None:
        """Read what was served, and remove what a house left that was killed in the middle of something."""
        root = self._settings.directory
        try:
            for folder in (root / "served", root / "logs"):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise translate_os_error(error, f"making {root}") from error
        shutil.rmtree(root / "incoming", ignore_errors=True)
        found = {entry.user: entry for entry in self._ledger.read()}
        self._keep(
            {
                user: entry
                for user, entry in found.items()
                if not entry.is_over(self._clock()) and (self._place(user) / "engine").is_dir()
            }
        )
        for folder in (root / "served").iterdir():
            if folder.name not in self._entries:
                shutil.rmtree(folder, ignore_errors=True)

    def _place(self, user: str) -> Path:
        return self._settings.directory / "served" / user

    def _log(self, name: str) -> Path:
        return self._settings.directory / "logs" / f"{name}.log"

    async def _keep_sweeping(self) -> None:
        while True:
            with contextlib.suppress(ProctorError):  # a full disk: the next sweep tries again
                await self.sweep()
            await asyncio.sleep(_SWEEP_SECONDS)


def _write_documents(folder: Path, wanted: SeedOrderTexts) -> None:
    try:
        folder.mkdir(parents=True)
        (folder / RECIPE_FILE).write_text(wanted.recipe, "utf-8")
        for name, text in ((ANSWER_FILE, wanted.answer), (VARIANTS_FILE, wanted.variants)):
            if text is not None:
                (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise translate_os_error(error, f"writing {folder}") from error
    except UnicodeError as error:
        raise Terminal(f"writing {folder}: the text has signs that can't be written") from error
