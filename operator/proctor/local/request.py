"""What a person asked for on one machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from proctor.api.suite import EvalSuite
from proctor.errors import InvalidInput


class SandboxChoice(StrEnum):
    """How strangers' code is run."""

    BWRAP = "bwrap"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One `proctor run`.

    Attributes:
        suite: as asked for, overrides applied, anchor not yet resolved.
        data_dir: engines, datasets, runs.
        suite_dir: where the suite's file is: from there lead paths in an agent's command.
        suite_file: the suite's file; None for a suite that is none.
        scenarios_dirs: folders that hold scenario folders, looked through in order.
        secrets_dir: ``DIR/name/key`` files; None for the environment alone.
        sandbox: how agents and servers are run.
        allowed_hosts: hosts that requests of models may go to, beside the provider's own.
        clickhouse_url: None for the embedded engine.
        agent_url: with it, the user as whom servers under test query; None to make one per dataset.
        new: never resume.
        timeout: seconds until the command gives up and leaves the run Pending; None for never.
    """

    suite: EvalSuite
    data_dir: Path
    scenarios_dirs: tuple[Path, ...]
    suite_dir: Path = field(default_factory=Path.cwd)
    suite_file: Path | None = None
    secrets_dir: Path | None = None
    sandbox: SandboxChoice = SandboxChoice.BWRAP
    allowed_hosts: tuple[str, ...] = ()
    clickhouse_url: str | None = None
    agent_url: str | None = None
    new: bool = False
    timeout: float | None = None

    @property
    def runs_dir(self) -> Path:
        """Where runs are."""
        return self.data_dir / "runs"

    @property
    def private_dirs(self) -> tuple[Path, ...]:
        """What no sandbox may show, wherever it is: data, scenarios, secrets, the suite, which names scenarios."""
        others = (path for path in (self.secrets_dir, self.suite_file) if path is not None)
        return (self.data_dir, *self.scenarios_dirs, *others)

    def scenario_dir(self, name: str) -> Path:
        """Return the folder of a scenario.

        Raises:
            InvalidInput: there is none of that name.
        """
        for folder in self.scenarios_dirs:
            if (folder / name).is_dir():
                return folder / name
        known = sorted(
            {
                path.name
                for folder in self.scenarios_dirs
                if folder.is_dir()
                for path in folder.iterdir()
                if path.is_dir()
            }
        )
        raise InvalidInput(
            f"scenario {name!r}: there is none in {', '.join(map(str, self.scenarios_dirs))}; "
            f"known: {', '.join(known) or 'none'}; your own go to --scenarios DIR"
        )
