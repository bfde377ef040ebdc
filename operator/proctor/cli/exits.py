"""Exit codes of commands: what a pipeline reads."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import typer

from proctor.core.reports.inert import make_inert
from proctor.errors import InvalidInput, ProctorError

if TYPE_CHECKING:
    from proctor.api.run import Verdict


class ExitCode(IntEnum):
    """What each number means."""

    PASS = 0  # also: the command did what it was asked
    FAIL = 1
    INCONCLUSIVE = 2
    ERROR = 3  # also Cancelled
    TIMEOUT = 4
    USAGE = 64
    INTERRUPTED = 130


def exit_code_of(verdict: Verdict) -> ExitCode:
    """Return the exit code of a run that is terminal."""
    # Commands that judge nothing needn't load the types of a run: finding a dataset takes half a second in all.
    from proctor.api.run import Verdict

    match verdict:
        case Verdict.PASS:
            return ExitCode.PASS
        case Verdict.FAIL:
            return ExitCode.FAIL
        case Verdict.INCONCLUSIVE:
            return ExitCode.INCONCLUSIVE
        case Verdict.ERROR | Verdict.CANCELLED | Verdict.PENDING:
            return ExitCode.ERROR


@contextmanager
def explained() -> Iterator[None]:
    """Turn a failure that was meant for people into one line on standard error and its exit code."""
    try:
        yield
    except InvalidInput as error:
        _tell(f"proctor: {error}")
        raise typer.Exit(ExitCode.USAGE) from error
    except ProctorError as error:
        _tell(f"proctor: {error}")
        raise typer.Exit(ExitCode.ERROR) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        # Python's own exit code for this is 1, which says Fail; a mistake of ours says nothing about a server.
        _tell(traceback.format_exc())
        _tell("proctor: this is a mistake in Proctor; the run is as run.json has it, and can be resumed")
        raise typer.Exit(ExitCode.ERROR) from error


def _tell(text: str) -> None:
    # What a server, an engine or a manifest said may be quoted in it.
    typer.echo(make_inert(text, keep_lines=True), err=True)
