"""From an attempt's door to its agent's sandbox."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from proctor.adapters.control import Door, OpenProgress
from proctor.adapters.sandbox.agents import AgentPlace, agent_spec
from proctor.adapters.sandbox.claude_code import claude_code_spec, find_claude_code
from proctor.adapters.sandbox.own_agents import OwnAgent, own_agent_spec
from proctor.adapters.sandbox.sandboxed import Sandboxed, launch
from proctor.adapters.sandbox.spec import Isolation, SandboxSpec
from proctor.api.suite import AgentCommand, AgentRuntime, EvalSuiteSpec
from proctor.core.gatewaypolicy.tokens import mask_token
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import ProcessExit
from proctor.errors import InvalidInput, Terminal
from proctor.local.agents import AgentLauncher, RunningAgent
from proctor.local.request import RunRequest, SandboxChoice

BuildSpec = Callable[[Door], SandboxSpec]
"""From an attempt's door to its agent's sandbox."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may be seen of an agent: no request, no answer that it waits for, no output (P25).

    Attributes:
        seconds: before it counts as hanging.
        answered_seconds: the same once it has sent its answer.
    """

    seconds: float = 120.0
    answered_seconds: float = 10.0

    def find_hang(self, progress: OpenProgress, silent: float) -> str:
        """Return why an agent counts as hanging; empty if it doesn't.

        Args:
            progress: what the gateway saw of it.
            silent: seconds since its last output.
        """
        limit = self.answered_seconds if progress.answered else self.seconds
        quiet = min(silent, progress.quiet_us / 1_000_000)
        return f"nothing was seen of it for {limit:g} s" if quiet >= limit else ""


class _Agent:
    """A sandboxed agent whose end has one cause: the executor's. What it wrote is kept where there is a log."""

    def __init__(self, sandboxed: Sandboxed, token: str, log: Path | None) -> None:
        self._sandboxed = sandboxed
        self._token = token
        self._log = log

    async def wait(self) -> ProcessExit:
        ended = await self._sandboxed.wait()
        output = mask_token(self._sandboxed.output, self._token)
        if self._log is not None and output:
            # For people only. That a disk is full is told by what has to be written.
            with contextlib.suppress(OSError):
                self._log.write_text(output, "utf-8")
        return ended

    async def terminate(self) -> None:
        await self._sandboxed.terminate()


def build_launcher(
    suite: EvalSuiteSpec,
    request: RunRequest,
    progress_of: Callable[[AttemptKey], OpenProgress],
    *,
    log_of: Callable[[str], Path],
    patience: Patience = Patience(),
) -> AgentLauncher:
    """Return what starts the suite's agent, and for control cells the builtin one.

    Controls show that the scenario, the server and the grader work; what they show must not depend on an agent that
    Proctor does not know.

    Args:
        suite: the frozen suite.
        request: what was asked for.
        progress_of: returns what the gateway saw of an attempt.
        log_of: returns the file for the log of that name.
        patience: how long nothing may be seen of an agent.

    Raises:
        Terminal: the suite's agent can't be run here.
    """
    try:
        builtin, chosen = _build_builtin(request), build_agent(suite, request)
    except InvalidInput as error:
        raise Terminal(f"agent: {error}") from error

    async def start(key: AttemptKey, door: Door) -> RunningAgent:
        build = chosen if key.cell.control is None else builtin
        own = key.cell.control is None and suite.agent.runtime is not AgentRuntime.BUILTIN
        try:
            spec = build(door)
        except InvalidInput as error:
            raise Terminal(f"agent: {error}") from error
        running = await launch(spec, find_hang=lambda silent: patience.find_hang(progress_of(key), silent))
        # The builtin agent says in one line what the record says better.
        return _Agent(running, door.token, log_of(_log_name(key)) if own else None)

    return start


def _log_name(key: AttemptKey) -> str:
    return f"agent-{str(key.cell).replace('/', '.')}-{key.attempt}"


def build_agent(suite: EvalSuiteSpec, request: RunRequest) -> BuildSpec:
    """Return how the sandbox of the suite's agent is made.

    Raises:
        InvalidInput: the agent's program is missing, or of another version.
    """
    match suite.agent.runtime:
        case AgentRuntime.BUILTIN:
            return _build_builtin(request)
        case AgentRuntime.CLAUDE_CODE:
            found = find_claude_code(request.data_dir)
            if found.program is None:
                raise InvalidInput(found.problem)
            program = found.program
            return lambda door: claude_code_spec(program, _place(request, door))
        case AgentRuntime.COMMAND:
            if suite.agent.command is None:
                raise InvalidInput("runtime Command needs agent.command")
            own = _own_agent(suite.agent.command, request)
            return lambda door: own_agent_spec(own, _place(request, door))
    assert_never(suite.agent.runtime)


def search_path() -> str:
    """Return where the commands of servers and agents are looked for."""
    return os.environ.get("PATH", os.defpath)


def _build_builtin(request: RunRequest) -> BuildSpec:
    return lambda door: agent_spec(
        door.socket, door.token, private=request.private_dirs, isolation=_isolation(request.sandbox)
    )


def _own_agent(command: AgentCommand, request: RunRequest) -> OwnAgent:
    return OwnAgent(
        command=command.command,
        environment={variable.name: variable.value for variable in command.env},
        folder=request.suite_dir,
        search_path=search_path(),
    )


def _place(request: RunRequest, door: Door) -> AgentPlace:
    return AgentPlace(
        socket=door.socket,
        token=door.token,
        private=request.private_dirs,
        isolation=_isolation(request.sandbox),
    )


def _isolation(choice: SandboxChoice) -> Isolation:
    return Isolation.BWRAP if choice is SandboxChoice.BWRAP else Isolation.NONE
