"""From an attempt's door to its agent's sandbox."""

from __future__ import annotations

from pathlib import Path

from proctor.adapters.sandbox.agents import agent_spec
from proctor.adapters.sandbox.sandboxed import Sandboxed, launch
from proctor.adapters.sandbox.spec import Isolation
from proctor.api.suite import AgentRuntime, EvalSuiteSpec
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.outcome import ProcessExit
from proctor.errors import Terminal
from proctor.local.agents import AgentLauncher, RunningAgent
from proctor.local.control import Door
from proctor.local.request import SandboxChoice


class _Agent:
    """A sandboxed agent whose end has one cause: the executor's."""

    def __init__(self, sandboxed: Sandboxed) -> None:
        self._sandboxed = sandboxed

    async def wait(self) -> ProcessExit:
        return await self._sandboxed.wait()

    async def terminate(self) -> None:
        await self._sandboxed.terminate()


def build_launcher(suite: EvalSuiteSpec, choice: SandboxChoice, *, private: tuple[Path, ...]) -> AgentLauncher:
    """Return what starts the suite's agent.

    Args:
        suite: the frozen suite.
        choice: how agents are run.
        private: folders that no sandbox may show.

    Raises:
        Terminal: the suite's runtime can't be run here.
    """
    if suite.agent.runtime is not AgentRuntime.BUILTIN:
        raise Terminal(f"agent.runtime {suite.agent.runtime}: only Builtin runs on one machine yet")
    isolation = Isolation.BWRAP if choice is SandboxChoice.BWRAP else Isolation.NONE

    async def start(_: AttemptKey, door: Door) -> RunningAgent:
        spec = agent_spec(door.socket, door.token, private=private, isolation=isolation)
        return _Agent(await launch(spec))

    return start
