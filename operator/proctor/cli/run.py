"""`proctor run`: one suite, end to end, on this machine."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.exits import ExitCode, exit_code_of, explained
from proctor.cli.options import DataDir, Scenarios

if TYPE_CHECKING:
    from proctor.api.suite import EvalSuite
    from proctor.local.request import RunRequest
    from proctor.local.session import RunOutcome


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    suite: Annotated[Path, typer.Argument(help="The EvalSuite's file.", show_default=False)],
    data_dir: DataDir = None,
    scenarios: Scenarios = None,
    secrets: Annotated[Path | None, typer.Option(help="Folder with secrets as NAME/KEY files.")] = None,
    sandbox: Annotated[str, typer.Option(help="bwrap, or none: agents and servers are then not isolated.")] = "bwrap",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further host that model requests may go to; may be repeated.")
    ] = None,
    clickhouse_url: Annotated[
        str | None, typer.Option(help="A ClickHouse of your own instead of the embedded engine.")
    ] = None,
    agent_url: Annotated[
        str | None, typer.Option(help="With it: the user as whom servers under test query; else one is made.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="An Anthropic model instead of the suite's models; key from ANTHROPIC_API_KEY.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Where --model is, if not at the provider's own host.")] = None,
    replicates: Annotated[int | None, typer.Option(min=1, help="Instead of the suite's replicates.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run even if one of this suite is Pending.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and what they may cost.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json's content instead of the table.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Seconds after which to stop, leaving the run Pending (exit 4).")
    ] = None,
) -> None:
    """Run a suite and end with its verdict.

    Exit codes: 0 Pass, 1 Fail, 2 Inconclusive, 3 Error or Cancelled, 4 timeout, 64 bad usage or manifest,
    130 interrupted. A run that was interrupted is resumed by the same command.
    """
    with explained():
        from proctor.local.request import RunRequest, SandboxChoice
        from proctor.settings import resolve_data_dir, shipped_scenarios_dir

        if sandbox not in set(SandboxChoice):
            raise typer.BadParameter(f"{sandbox!r} is neither bwrap nor none", param_hint="--sandbox")
        if agent_url is not None and clickhouse_url is None:
            raise typer.BadParameter("it needs --clickhouse-url", param_hint="--agent-url")
        own = (scenarios.expanduser().absolute(),) if scenarios is not None else ()
        folders = (*own, shipped_scenarios_dir())
        wanted = _load(suite, folders, model=model, base_url=base_url, replicates=replicates)
        request = RunRequest(
            suite=wanted,
            data_dir=resolve_data_dir(data_dir),
            suite_dir=suite.expanduser().absolute().parent,
            suite_file=suite.expanduser().absolute(),
            scenarios_dirs=folders,
            secrets_dir=secrets,
            sandbox=SandboxChoice(sandbox),
            allowed_hosts=tuple(allow_host or ()),
            clickhouse_url=clickhouse_url,
            agent_url=agent_url,
            new=new,
            timeout=timeout,
        )
        if dry_run:
            _describe(request, as_json=as_json)
            return
        outcome = _execute(request, as_json=as_json)
        if outcome is None:
            raise KeyboardInterrupt
        where = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
        raise typer.Exit(_finish(outcome, suite, as_json=as_json, where=where))


def _load(
    path: Path, scenario_dirs: tuple[Path, ...], *, model: str | None, base_url: str | None, replicates: int | None
) -> EvalSuite:
    from proctor.api.loading import load_suite
    from proctor.local.overrides import change_spec, replace_models

    suite = load_suite(path, scenario_dirs=scenario_dirs)
    if model is not None:
        suite = replace_models(suite, model, base_url=base_url)
    elif base_url is not None:
        raise typer.BadParameter("it needs --model", param_hint="--base-url")
    if replicates is not None:
        suite = change_spec(suite, f"--replicates {replicates}", replicates=replicates)
    return suite


def _describe(request: RunRequest, *, as_json: bool) -> None:
    from proctor.cli.plan import describe_plan
    from proctor.local.preflight import check_request

    check_request(request)
    typer.echo(describe_plan(request.suite, as_json=as_json))


def _execute(request: RunRequest, *, as_json: bool) -> RunOutcome | None:
    import asyncio

    from proctor.api.locality import ignored_locally
    from proctor.cli.progress import open_view
    from proctor.local.session import execute_run

    view = open_view(quiet=as_json)
    for note in ignored_locally(request.suite.spec):
        view.say(f"ignored on one machine: {note}")
    try:
        return asyncio.run(execute_run(request, view))
    finally:
        view.close()


def _finish(outcome: RunOutcome, suite: Path, *, as_json: bool, where: str) -> ExitCode:
    status = outcome.run.status
    if as_json:
        typer.echo(json.dumps(outcome.document, ensure_ascii=False))
    elif status.terminal:
        from proctor.cli.outcome import render_outcome

        typer.echo(render_outcome(outcome, suite_file=shlex.quote(str(suite))))
        typer.echo(f"look closer: proctor report {outcome.run.metadata.name}{where}")
    if status.terminal:
        return exit_code_of(status.verdict)
    typer.echo(f"run {outcome.run.metadata.name} is Pending; the same command resumes it", err=True)
    return ExitCode.TIMEOUT if outcome.timed_out else ExitCode.INTERRUPTED
