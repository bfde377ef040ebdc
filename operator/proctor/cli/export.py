"""`proctor export`: a run in other programs' formats."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from proctor.cli.exits import explained
from proctor.cli.options import DataDir
from proctor.core.export.formats import Format, Subject


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    run: Annotated[str, typer.Argument(help="Name of the run, the beginning of it, or `last`.")],
    form: Annotated[
        Format, typer.Option("--format", help="jsonl: lines of JSON; csv: a table of cells; otlp: spans.")
    ] = Format.JSONL,
    subject: Annotated[Subject, typer.Option("--of", help="What a line of JSON is.")] = Subject.CELLS,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    data_dir: DataDir = None,
    clickhouse_url: Annotated[str | None, typer.Option(help="Where the run's results are, if not embedded.")] = None,
) -> None:
    """Write a run's cells or events as lines of JSON, its cells as a table, or its attempts as OpenTelemetry spans."""
    with explained():
        import asyncio

        from proctor.local.exporting import ExportSource, export_run
        from proctor.local.rundir import find_run
        from proctor.settings import resolve_data_dir

        root = resolve_data_dir(data_dir)
        source = ExportSource(directory=find_run(root / "runs", run), data_dir=root, clickhouse_url=clickhouse_url)
        with _open_output(output) as file:
            asyncio.run(export_run(source, form, subject, lambda line: file.write(line.encode() + b"\n")))


@contextmanager
def _open_output(output: Path | None) -> Iterator[BinaryIO]:
    if output is not None:
        from proctor.local.durable import open_atomic

        with open_atomic(output.expanduser()) as file:
            yield file
        return
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough: `proctor export … | head`. What is buffered goes nowhere at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
