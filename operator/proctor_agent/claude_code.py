"""Claude Code as the agent: ``python -m proctor_agent.claude_code PROGRAM``.

PROGRAM is Claude Code's binary. PROCTOR_GATEWAY and PROCTOR_TOKEN are as for the builtin agent; PROCTOR_ADDRESS is
where Claude Code, which speaks TCP only, finds the gateway: ``http://host:port``. TMPDIR is a folder for its files.

Claude Code's own loop talks to the model and calls the tools. What this adds: the brief goes in, the answer comes out,
and Claude Code is ended once it has given its result, since it may hang after that (P25).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from proctor_agent.claude_settings import SERVER, build_command, build_environment, build_servers
from proctor_agent.ending import report_end, send_answer
from proctor_agent.failures import EXIT_USAGE, Malformed, NoResult, Refused
from proctor_agent.parsing import Json, count_turns, parse_object, text_field
from proctor_agent.wire import Gateway, check_address, find_gateway

_MAX_LINE_BYTES = 64 * 1024 * 1024
"""A tool's result comes back in one line: 8 MiB at most at the gateway, twice, and as JSON."""

_LIMIT_TEXT = "is used up: give your answer now"
"""What the gateway says when a budget is used up; Claude Code quotes it."""

_SYNTHETIC = "<synthetic>"
"""The model of what Claude Code writes itself where the model's words would be."""


class Session:
    """One investigation by Claude Code.

    Args:
        gateway: for the brief, the tool list and the answer.
        program: Claude Code's binary.
        address: where Claude Code finds the gateway.
        home: a folder that does not exist yet, for all that it writes.
    """

    def __init__(self, gateway: Gateway, program: str, *, address: str, home: Path) -> None:
        self._gateway = gateway
        self._program = program
        self._address = address
        self._home = home
        self._last_text = ""

    def run(self) -> str:
        """Investigate, and send the answer.

        Returns:
            Why it ended.

        Raises:
            AgentFailure: it can't go on.
        """
        brief = parse_object(self._gateway.fetch("GET", "/brief"), "the brief")
        # The server under test starts with the first question; Claude Code waits for no slow one.
        self._gateway.fetch("GET", "/tools")
        with self._start(brief) as process:
            try:
                ended = self._follow(process)
            finally:
                _kill_group(process)
        return send_answer(self._gateway, self._last_text, ended)

    def _start(self, brief: Json) -> subprocess.Popen[bytes]:
        self._home.mkdir(mode=0o700)
        token, model = self._gateway.token, text_field(brief, "model")
        system, prompt, servers = (self._home / name for name in ("system.txt", "prompt.txt", "servers.json"))
        system.write_text(text_field(brief, "system"), "utf-8")
        prompt.write_text(text_field(brief, "prompt"), "utf-8")
        servers.write_text(json.dumps(build_servers(self._address, token)), "utf-8")
        command = build_command(
            self._program,
            model=model,
            max_turns=count_turns(brief),
            system_file=str(system),
            servers_file=str(servers),
        )
        environment = build_environment(self._address, token, model=model, home=str(self._home))
        with prompt.open("rb") as stdin:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                env=environment,
                cwd=self._home,
                start_new_session=True,
            )

    def _follow(self, process: subprocess.Popen[bytes]) -> str:
        """Read its output up to its result."""
        for message in _read_messages(process.stdout):
            match message:
                case {"type": "system", "subtype": "init"}:
                    _check_tools(message)
                case {"type": "assistant", "message": {"model": str(model), "content": list(content)}}:
                    if model != _SYNTHETIC:
                        self._keep_text(content)
                case {"type": "result"}:
                    return self._take_result(message)
        raise NoResult(f"Claude Code ended without a result, with code {process.wait()}")

    def _keep_text(self, content: list[object]) -> None:
        texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
        said = "\n".join(text for text in texts if isinstance(text, str))
        if said.strip():
            self._last_text = said

    def _take_result(self, result: Json) -> str:
        text, kind = str(result.get("result") or ""), str(result.get("subtype"))
        if kind == "success" and result.get("is_error") is False:
            self._last_text = text if text.strip() else self._last_text
            return "Claude Code gave its result"
        if _LIMIT_TEXT in text or kind == "error_max_turns":
            return f"stopped: {text or kind}"
        status = result.get("api_error_status")
        raise Refused(status if isinstance(status, int) else 0, kind, text)


def main(words: list[str]) -> int:
    """Run one investigation and return the exit code."""
    gateway, address = find_gateway(os.environ), os.environ.get("PROCTOR_ADDRESS", "")
    if gateway is None or not check_address(address) or len(words) != 1:
        print("set PROCTOR_GATEWAY, PROCTOR_ADDRESS and PROCTOR_TOKEN, and give Claude Code's program")
        return EXIT_USAGE
    home = Path(os.environ.get("TMPDIR", "/tmp"), f"home-{os.getpid()}")  # noqa: S108 - a sandbox's own
    return report_end(Session(gateway, words[0], address=address, home=home).run)


def _read_messages(stream: IO[bytes] | None) -> Iterator[Json]:
    """Give the messages of the output, one per line; what is none is passed over."""
    while stream is not None and (line := stream.readline(_MAX_LINE_BYTES)):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            yield message


def _check_tools(opening: Json) -> None:
    """Go on with the tools of the one server only: neither without them (P26), nor with any of Claude Code's own."""
    servers, tools = opening.get("mcp_servers"), opening.get("tools")
    if not isinstance(servers, list) or not isinstance(tools, list):
        raise Malformed("Claude Code does not say which tools it has")
    states = [server.get("status") for server in servers if isinstance(server, dict)]
    if states != ["connected"]:
        raise Malformed(f"Claude Code did not reach the tools: {states}")
    others = [tool for tool in tools if not str(tool).startswith(f"mcp__{SERVER}__")]
    if others:
        raise Malformed(f"Claude Code has tools that it must not have: {others}")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it started: it leads a group of its own, and may hang or leave children behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
