"""What a person sees while a run goes on: a few lines that change in place, or plain lines without a terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from proctor.api.run import EvalRunStatus, Phase
from proctor.core.reports.inert import make_inert
from proctor.local.executor import PassReport

_BAR_CELLS = 30
_PLAIN_SECONDS = 5.0
_MAX_ARMS_SHOWN = 6


class ProgressView(Protocol):
    """Shows how a run goes on."""

    def say(self, line: str) -> None:
        """Show one line that stays."""
        ...

    def show(self, report: PassReport) -> None:
        """Show what a pass saw."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


def open_view(*, quiet: bool) -> ProgressView:
    """Return the view that fits where standard error goes."""
    if quiet:
        return _QuietView()
    return _LiveView() if sys.stderr.isatty() else _PlainView()


def render_counts(status: EvalRunStatus) -> str:
    """Say in one line how many cells are where."""
    cells = status.cells
    done = cells.graded + cells.ungraded + cells.infra_errored + cells.cancelled
    parts = [f"{done}/{cells.total} cells done", f"{cells.running} running"]
    lost = cells.infra_errored
    if cells.ungraded:
        parts.append(f"{cells.ungraded} ungraded")
    if lost:
        parts.append(f"{lost} lost to infrastructure")
    return ", ".join(parts)


def render_open_arms(report: PassReport) -> str:
    """Say which arms have open cells, and how many."""
    arms = Counter(str(attempt.key.cell.arm) for attempt in report.observed.attempts)
    shown = [f"{arm} ({count})" if count > 1 else arm for arm, count in sorted(arms.items())[:_MAX_ARMS_SHOWN]]
    more = len(arms) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def render_bar(share: float, width: int = _BAR_CELLS) -> str:
    """Draw a share between 0 and 1."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return "█" * filled + "░" * (width - filled)


def share_done(report: PassReport) -> float:
    """Return how much of the present phase is done."""
    if report.run.status.phase is Phase.SEEDING:
        return sum(report.seeding.values()) / len(report.seeding) if report.seeding else 0.0
    cells = report.run.status.cells
    return (cells.total - cells.running - cells.pending) / cells.total if cells.total else 0.0


class _QuietView:
    def say(self, line: str) -> None:
        """Show nothing."""

    def show(self, report: PassReport) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Nothing is to be left."""


class _PlainView:
    def __init__(self, write: Callable[[str], object] = lambda line: print(line, file=sys.stderr, flush=True)) -> None:
        self._write = write
        self._last: tuple[Phase, str] | None = None
        self._last_at = 0.0

    def say(self, line: str) -> None:
        self._write(make_inert(line))

    def show(self, report: PassReport) -> None:
        status = report.run.status
        line = render_counts(status)
        if status.phase is Phase.SEEDING:
            line = f"{share_done(report):.0%}"
        now = time.monotonic()
        moved = self._last is None or self._last[0] is not status.phase
        if moved or (self._last != (status.phase, line) and now - self._last_at >= _PLAIN_SECONDS):
            self._write(f"{status.phase}: {line}")
            self._last = (status.phase, line)
            self._last_at = now

    def close(self) -> None:
        """Nothing is to be left."""


class _LiveView:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, transient=True, auto_refresh=False)
        self._live.start()
        self._shown_at = 0.0

    def say(self, line: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(make_inert(line)))

    def show(self, report: PassReport) -> None:
        from rich.text import Text

        now = time.monotonic()
        if now - self._shown_at < 0.1:  # noqa: PLR2004 - ten pictures a second are enough for an eye
            return
        self._shown_at = now
        status = report.run.status
        text = Text()
        text.append(f"{status.phase:<10} ", style="bold")
        text.append(render_bar(share_done(report)), style="cyan")
        if status.phase is not Phase.SEEDING:
            text.append(f"  {render_counts(status)}")
        arms = render_open_arms(report)
        if arms:
            text.append(f"\n           {arms}", style="dim")
        self._live.update(text, refresh=True)

    def close(self) -> None:
        self._live.stop()
