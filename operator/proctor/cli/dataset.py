"""`proctor dataset`: seed, list, verify, explain and remove datasets."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from proctor.cli.exits import ExitCode, explained
from proctor.cli.options import DataDir, Scenarios

if TYPE_CHECKING:
    from proctor.adapters.clickhouse.datasets import OnProgress, Progress
    from proctor.core.seeding.plan import SeedPlan
    from proctor.core.seeding.record import DatasetRecord
    from proctor.core.seeding.share import Share
    from proctor.local.dataset_files import SeedRequest
    from proctor.local.datasets import DatasetStore
    from proctor.local.remote_datasets import RemoteDatasets

ResultT = TypeVar("ResultT")

app = typer.Typer(name="dataset", help="Seed, list, verify and remove datasets.", no_args_is_help=True)

DEFAULT_ANCHOR = "2026-11-30T12:00:00Z"
"""The quickstart's anchor, so that a dataset seeded by hand is the one that its run finds."""

Scenario = Annotated[str, typer.Argument(help="The scenario's name.", show_default=False)]
Digest = Annotated[str, typer.Argument(help="The dataset's hash, or how it begins.", show_default=False)]
Volume = Annotated[str, typer.Option(help="Share of the background's rows: 1 is full scale.")]
Seed = Annotated[int, typer.Option(help="An integer that fixes all chance.", min=0, max=2**63 - 1)]
Anchor = Annotated[str, typer.Option(help="The instant that the data lead up to, with a zone.")]
Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        help="A ClickHouse of your own (password: PROCTOR_CLICKHOUSE_PASSWORD), not the embedded engine;"
        " once per shard of a cluster, always in the same order.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str,
    typer.Option(help="With several --url: what the servers call themselves in remote_servers.", show_default=False),
]
Part = Annotated[
    str | None,
    typer.Option(
        help="Load one part of several, like 2/4, into --url; the worker of the first waits for all and makes the"
        " dataset.",
        show_default=False,
    ),
]
Threads = Annotated[int, typer.Option(help="How many statements run at a time.", min=1, max=64)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(root: typer.Typer) -> None:
    """Add the group of commands."""
    root.add_typer(app)


@app.command()
def seed(
    scenario: Scenario,
    volume: Volume = "1",
    seed: Seed = 42,
    anchor: Anchor = DEFAULT_ANCHOR,
    data_dir: DataDir = None,
    scenarios: Scenarios = None,
    url: Urls = None,
    cluster: Cluster = "",
    part: Part = None,
    threads: Threads = 2,
    as_json: Json = False,
) -> None:
    """Build a dataset unless it is there; the same inputs always give the same rows."""
    with explained():
        request = _request(scenario, volume, seed, anchor, scenarios, threads)
        share = _share(part, url)
        record = None if url else _find(request, data_dir)
        found = record is not None
        if record is None:
            place = _Place(url, cluster)
            found, record = _run(
                _seed_part(request, data_dir, place, share) if share else _seed(request, data_dir, place)
            )
    if record is None:
        _tell_part(request.hash, part, as_json=as_json)
        return
    if as_json:
        _print_json({**_summary(record), "reused": found, "facts": record.facts})
        return
    print(f"{'found' if found else 'built'} {record.hash} ({record.label}, volume {record.volume}, seed {record.seed})")
    for name, table in record.tables.items():
        print(f"  {name:<28} {table.rows:>12,} rows  {table.digest}")
    if not found:
        print(f"{record.rows:,} rows in {record.seconds:.1f} s: {record.rows / max(record.seconds, 0.001):,.0f} rows/s")


@app.command("ls")
def list_all(data_dir: DataDir = None, url: Urls = None, cluster: Cluster = "", as_json: Json = False) -> None:
    """List committed datasets."""
    with explained():
        records = _run(_list(data_dir, _Place(url, cluster)))
    if as_json:
        _print_json([_summary(record) for record in records])
        return
    if not records:
        print("no datasets; `proctor dataset seed SCENARIO` makes one, and so does a run")
    for record in records:
        print(
            f"{record.hash}  {record.label:<24} volume {record.volume:<8} seed {record.seed:<8} "
            f"{record.anchor:%Y-%m-%dT%H:%M:%SZ}  {record.rows:>12,} rows"
        )


@app.command()
def verify(
    digest: Digest, data_dir: DataDir = None, url: Urls = None, cluster: Cluster = "", threads: Threads = 2
) -> None:
    """Compute a dataset's digests anew and compare them with its record."""
    with explained():
        differences = _run(_verify(digest, data_dir, _Place(url, cluster), threads))
    for line in differences:
        print(line, file=sys.stderr)
    if differences:
        raise typer.Exit(ExitCode.ERROR)
    print("every table is as recorded")


@app.command("rm")
def remove(digest: Digest, data_dir: DataDir = None, url: Urls = None, cluster: Cluster = "") -> None:
    """Remove a dataset."""
    with explained():
        print(f"removed {_run(_remove(digest, data_dir, _Place(url, cluster)))}")


@app.command()
def explain(
    scenario: Scenario,
    volume: Volume = "1",
    seed: Seed = 42,
    anchor: Anchor = DEFAULT_ANCHOR,
    scenarios: Scenarios = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print every statement.")] = False,
) -> None:
    """Print what a recipe makes: tables, streams, groups, counts, and the SQL if asked. Nothing is built."""
    with explained():
        from proctor.core.scenarios.recipe import load_recipe
        from proctor.core.seeding.plan import compile_plan

        request = _request(scenario, volume, seed, anchor, scenarios, 1)
        recipe = load_recipe(request.scenario, seed)
        plan = compile_plan(recipe, seed=seed, anchor=request.anchor, volume=request.volume)
        _print_plan(plan, request.hash, with_sql=sql)


def _request(scenario: str, volume: str, seed: int, anchor: str, scenarios: Path | None, threads: int) -> SeedRequest:
    from proctor.clock import parse_instant
    from proctor.errors import InvalidInput
    from proctor.local.dataset_files import SeedRequest
    from proctor.settings import shipped_scenarios_dir

    folders = [folder / scenario for folder in (scenarios, shipped_scenarios_dir()) if folder]
    found = next((folder for folder in folders if folder.is_dir()), None)
    if found is None or "/" in scenario:
        where = ", ".join(str(one.parent) for one in folders)
        raise InvalidInput(f"scenario {scenario!r}: there is none in {where}; `proctor scenario ls` lists them")
    try:
        instant, share = parse_instant(anchor), Decimal(volume)
    except InvalidOperation as error:
        raise InvalidInput(f"--volume {volume!r}: no number") from error
    except ValueError as error:
        raise InvalidInput(f"--anchor: {error}; write it like {DEFAULT_ANCHOR}") from error
    return SeedRequest(scenario=found, seed=seed, anchor=instant, volume=share, threads=threads)


def _run(work: Coroutine[None, None, ResultT]) -> ResultT:
    # What is there is found without it: it would be a fifth of that command's time.
    import asyncio

    return asyncio.run(work)


def _find(request: SeedRequest, data_dir: Path | None) -> DatasetRecord | None:
    from proctor.local.dataset_files import find_dataset
    from proctor.settings import resolve_data_dir

    return find_dataset(request, data_dir=resolve_data_dir(data_dir))


def _share(part: str | None, urls: list[str] | None) -> Share | None:
    from proctor.core.seeding.share import Share
    from proctor.errors import InvalidInput

    if part is None:
        return None
    if not urls:
        raise InvalidInput("--part: the embedded engine has one process; several workers share a ClickHouse by --url")
    return Share.parse(part)


def _tell_part(digest: str, part: str | None, *, as_json: bool) -> None:
    if as_json:
        _print_json({"hash": digest, "part": part})
    else:
        print(f"loaded part {part} of {digest}; the worker of the first part makes the dataset once all are there")


async def _seed_part(
    request: SeedRequest, data_dir: Path | None, place: _Place, share: Share
) -> tuple[bool, DatasetRecord | None]:
    async with place.open_servers(data_dir) as servers:
        return await _find_or_make(servers, request, lambda show: servers.ensure_part(request, share, show))


async def _seed(request: SeedRequest, data_dir: Path | None, place: _Place) -> tuple[bool, DatasetRecord | None]:
    async with place.open(data_dir) as store:
        return await _find_or_make(store, request, lambda show: store.ensure(request, show))


async def _find_or_make(
    store: DatasetStore, request: SeedRequest, make: Callable[[OnProgress], Awaitable[DatasetRecord | None]]
) -> tuple[bool, DatasetRecord | None]:
    found = await store.find(request)
    if found is not None:
        return True, found
    with progress_bar() as show:
        return False, await make(show)


async def _list(data_dir: Path | None, place: _Place) -> tuple[DatasetRecord, ...]:
    async with place.open(data_dir) as store:
        return await store.records()


async def _verify(digest: str, data_dir: Path | None, place: _Place, threads: int) -> list[str]:
    async with place.open(data_dir) as store:
        return await store.verify(await _select(store, digest), threads=threads)


async def _remove(digest: str, data_dir: Path | None, place: _Place) -> str:
    async with place.open(data_dir) as store:
        record = await _select(store, digest)
        await store.remove(record.hash)
        return record.hash


async def _select(store: DatasetStore, prefix: str) -> DatasetRecord:
    from proctor.errors import InvalidInput

    found = [record for record in await store.records() if record.hash.startswith(prefix)]
    if len(found) != 1 or not prefix:
        raise InvalidInput(f"dataset {prefix!r}: {len(found) or 'none'} found; `proctor dataset ls` shows their hashes")
    return found[0]


@dataclass(frozen=True)
class _Place:
    """Where datasets are: the embedded engine, or servers by URL."""

    urls: list[str] | None
    cluster: str

    @asynccontextmanager
    async def open(self, data_dir: Path | None) -> AsyncIterator[DatasetStore]:
        if self.urls:
            async with self.open_servers(data_dir) as servers:
                yield servers
            return
        from proctor.local.datasets import EmbeddedDatasets
        from proctor.settings import resolve_data_dir

        yield EmbeddedDatasets(resolve_data_dir(data_dir))

    @asynccontextmanager
    async def open_servers(self, data_dir: Path | None) -> AsyncIterator[RemoteDatasets]:
        from proctor.local.remote_datasets import open_remote_datasets
        from proctor.settings import resolve_data_dir

        folder = resolve_data_dir(data_dir)
        async with open_remote_datasets(self.urls or (), folder, cluster=self.cluster) as servers:
            yield servers


@contextmanager
def progress_bar() -> Iterator[OnProgress]:
    """Show how far seeding is, on a terminal only; a pipeline's log wants no thousand lines."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), "rows", TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: Progress) -> None:
            bar.update(task, description=str(progress.stage), completed=progress.rows, total=progress.total)

        yield show


def _summary(record: DatasetRecord) -> dict[str, object]:
    return {
        "hash": record.hash,
        "scenario": record.label,
        "database": record.database,
        "seed": record.seed,
        "anchor": record.anchor.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "volume": str(record.volume),
        "rows": record.rows,
        "seconds": record.seconds,
        "digest": record.digest,
        "tables": {name: {"rows": one.rows, "digest": one.digest} for name, one in record.tables.items()},
    }


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def _print_plan(plan: SeedPlan, digest: str, *, with_sql: bool) -> None:
    print(f"dataset {digest}: up to {plan.rows():,} rows in {', '.join(plan.tables)} and their rollups")
    print(f"\n{'stream or group':<24} {'emits':<20} {'table':<28} {'role':<9} {'rows':>12}  some rows only")
    for source in plan.sources:
        some = "yes" if source.condition else ""
        print(
            f"{source.owner:<24} {source.emission:<20} {source.table:<28} {source.role:<9} {source.rows:>12,}  {some}"
        )
    if with_sql:
        from proctor.core.seeding.statements import all_statements

        for statement in all_statements(plan, f"ds_{digest}_1"):
            print(f"\n{statement};")
