"""What a finished run prints."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from proctor.core.reports.table import render_result
from proctor.reconcile.result import report_result

if TYPE_CHECKING:
    from proctor.local.session import RunOutcome


def render_outcome(outcome: RunOutcome) -> str:
    """Return the table, the verdict, and one sentence why; coloured where standard output is a terminal."""
    report = report_result(outcome.run, outcome.suite, outcome.cells, directory=str(outcome.directory.run_file))
    return render_result(report, colour=is_colour_wanted())


def is_colour_wanted() -> bool:
    """Say whether standard output takes colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
