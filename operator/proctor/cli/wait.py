"""`proctor wait`: a pipeline stops here until a run on a cluster has its verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.exits import ExitCode, exit_code_of, explained

if TYPE_CHECKING:
    from proctor.cluster.waiting import Target
    from proctor.reconcile.answers import Answer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("wait")(wait)


def wait(
    name: Annotated[str, typer.Argument(help="The EvalRun's name; with --suite, the EvalSuite's.", show_default=False)],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Where it is; else the kubeconfig's or the pod's own.")
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="Wait for the gate of a suite's newest generation (runOnChange).")
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=1, help="Seconds after which to give up (exit 4).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    kubeconfig: Annotated[
        str | None, typer.Option(help="Else KUBECONFIG, the pod's service account, or ~/.kube/config.")
    ] = None,
) -> None:
    """Wait for the verdict of a run on a cluster.

    Exit codes: 0 Pass, 1 Fail, 2 Inconclusive, 3 Error or Cancelled, 4 timeout, 64 bad usage or no such object,
    130 interrupted. A lost connection is no answer: it is tried again until the time is up.
    """
    with explained():
        answer = _wait(name, namespace, suite=suite, timeout=timeout, kubeconfig=kubeconfig)
        if answer is None:
            typer.echo(f"proctor: no verdict after {timeout:g} s", err=True)
            raise typer.Exit(ExitCode.TIMEOUT)
        typer.echo(_render(answer, as_json=as_json))
        raise typer.Exit(exit_code_of(answer.verdict))


def _wait(
    name: str, namespace: str | None, *, suite: bool, timeout: float | None, kubeconfig: str | None
) -> Answer | None:
    import asyncio

    from proctor.errors import InvalidInput

    try:
        from proctor.adapters.kube.connecting import find_namespace
        from proctor.cluster.waiting import Target
    except ImportError as error:
        raise InvalidInput("waiting needs the client of Kubernetes: pip install 'proctor[operator]'") from error
    target = Target(namespace=namespace or find_namespace(kubeconfig), name=name, suite=suite)
    return asyncio.run(_look(target, seconds=timeout, kubeconfig=kubeconfig))


async def _look(target: Target, *, seconds: float | None, kubeconfig: str | None) -> Answer | None:
    import asyncio

    from proctor.adapters.kube.connecting import open_kube
    from proctor.cluster.waiting import await_verdict

    try:
        async with asyncio.timeout(seconds), open_kube(kubeconfig) as kube:
            return await await_verdict(kube, target, _say)
    except TimeoutError:
        return None


def _say(line: str) -> None:
    from proctor.core.reports.inert import make_inert

    typer.echo(make_inert(line), err=True)


def _render(answer: Answer, *, as_json: bool) -> str:
    from proctor.core.reports.inert import make_inert

    if as_json:
        return json.dumps(answer.to_json(), ensure_ascii=False)
    return make_inert(f"{answer.verdict} ({answer.reason}): {answer.summary}")
