"""What a finished run prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from proctor.core.reports.inert import make_inert
from proctor.core.reports.table import ResultReport, render_result
from proctor.reconcile.result import report_result

if TYPE_CHECKING:
    from proctor.api.run import EvalRun
    from proctor.api.suite import EvalSuiteSpec
    from proctor.local.session import RunOutcome


def render_outcome(outcome: RunOutcome, *, suite_file: str) -> str:
    """Return the table, the verdict, and one sentence why; coloured where standard output is a terminal.

    Args:
        outcome: of the run.
        suite_file: as the command was given it.
    """
    where = str(outcome.directory.run_file)
    return render_run(outcome.run, outcome.suite, outcome.cells, directory=where, suite_file=suite_file)


def render_run(
    run: EvalRun,
    suite: EvalSuiteSpec,
    cells: Sequence[Mapping[str, Any]],
    *,
    directory: str,
    suite_file: str = "suite.yaml",
) -> str:
    """Return the same of a run whose parts were read back; nobody knows then from which file its suite came."""
    result = report_result(run, suite, cells, directory=directory)
    table = render_result(result, colour=is_colour_wanted())
    # Whoever reads the scores has to know under which conditions they came about.
    waived = [condition.message for condition in run.status.conditions if condition.reason == "Waived"]
    return "\n".join(
        [table, *(f"note: {make_inert(message)}" for message in waived), *_render_advice(result, cells, suite_file)]
    )


def _render_advice(result: ResultReport, cells: Sequence[Mapping[str, Any]], suite_file: str) -> list[str]:
    """Return what to do next, in the words of the report; nothing where nothing has to be done."""
    if result.verdict in {"Pass", "Pending"}:
        return []
    from proctor.core.reports.page.advice import advise
    from proctor.reconcile.run_page import read_cell

    advice = advise(result, [read_cell(cell) for cell in cells], suite_file=suite_file)
    hints = [f"next: {' '.join(filter(None, (hint.text, hint.cell, hint.command)))}" for hint in advice.hints]
    return [make_inert(line) for line in (advice.meaning, *hints) if line]


def is_colour_wanted() -> bool:
    """Say whether standard output takes colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
