"""Which ClickHouse keeps a run's results: chosen when the run begins, and the same whenever it goes on."""

from __future__ import annotations

from proctor.adapters.clickhouse.session import HttpSession
from proctor.api.run import EvalRun
from proctor.errors import InvalidInput, ProctorError
from proctor.local.remote import parse_admin_url
from proctor.local.rundir import STORE_ANNOTATION, RunDir

_EMBEDDED = "embedded"


def name_store(url: str | None) -> str:
    """Return what a store is known by, without user and password.

    Args:
        url: of a ClickHouse; None for the embedded engine.

    Raises:
        InvalidInput: the URL can't be read.
    """
    if url is None:
        return _EMBEDDED
    endpoint = parse_admin_url(url)
    return f"{endpoint.host}:{endpoint.port}/{endpoint.database}"


async def check_store(url: str | None) -> None:
    """Ask a ClickHouse for one row before any run depends on it.

    Raises:
        InvalidInput: it can't be reached, or refuses the user.
    """
    if url is None:
        return
    try:
        await HttpSession(parse_admin_url(url)).run("SELECT 1")
    except InvalidInput:
        raise
    except ProctorError as error:
        raise InvalidInput(f"--clickhouse-url: {error}; nothing was started") from error


def check_same_store(directory: RunDir, run: EvalRun, store: str) -> None:
    """Refuse to go on with a run whose finished cells are recorded elsewhere.

    Raises:
        InvalidInput: they are.
    """
    kept = run.metadata.annotations.get(STORE_ANNOTATION, store)
    if kept == store:
        return
    how = "without --clickhouse-url" if kept == _EMBEDDED else f"with --clickhouse-url of {kept}"
    raise InvalidInput(
        f"run {directory.name} is Pending and keeps its results in {kept}, not in {store}:"
        f" go on with it {how}, or begin another with --new"
    )
