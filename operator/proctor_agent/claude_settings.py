"""How Claude Code is started: with the tools of one server, one model, and nothing else of its own.

What each setting does was tried with the version that is pinned (`proctor.adapters.sandbox.claude_code`); a later one
may send what the gateway refuses, or bring tools that these options don't know.
"""

from __future__ import annotations

from collections.abc import Mapping

Json = dict[str, object]

SERVER = "tools"
"""What the MCP server is called for the model, which reads it in the name of each tool: the same whichever it is."""

_NEVER_MS = str(24 * 60 * 60 * 1000)
"""The gateway waits for an overloaded provider, and the cell has a deadline: no clock of Claude Code's comes first."""

_SERVER_START_MS = "120000"

_SETTINGS: Mapping[str, str] = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # One model, no telemetry, no updates, no look at anything that isn't the brief.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # Without it: betas that change from version to version, some with tools that the provider runs.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    # The model that the attempt may call, also if it is an old one.
    "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP": "1",
    # All tools in each request: a search for tools is one more tool, and the provider's.
    "ENABLE_TOOL_SEARCH": "false",
    # Its version and how it was started, as the first lines of the system prompt.
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    # A result that is too long is cut, not put into a file that no tool here can read.
    "ENABLE_MCP_LARGE_OUTPUT_FILES": "0",
    "MCP_TIMEOUT": _SERVER_START_MS,
    "MCP_CONNECT_TIMEOUT_MS": _SERVER_START_MS,
    "MCP_CONNECTION_NONBLOCKING": "0",
    "MCP_TOOL_TIMEOUT": _NEVER_MS,
    "API_TIMEOUT_MS": _NEVER_MS,
    "CLAUDE_STREAM_IDLE_TIMEOUT_MS": _NEVER_MS,
    "CLAUDE_STREAM_FIRST_BYTE_TIMEOUT_MS": _NEVER_MS,
}

_MODEL_VARIABLES = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)
"""Whatever it asks a model for, also in the background, it asks the one that the attempt may call."""


def build_environment(address: str, token: str, *, model: str, home: str) -> dict[str, str]:
    """Return the whole environment.

    Args:
        address: where the gateway is, ``http://host:port``.
        token: the attempt's token.
        model: the attempt's model.
        home: a folder that can be written.
    """
    return {
        **_SETTINGS,
        **dict.fromkeys(_MODEL_VARIABLES, model),
        "HOME": home,
        "TMPDIR": home,
        "CLAUDE_CONFIG_DIR": home,
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": token,
    }


def build_servers(address: str, token: str) -> Json:
    """Return the file for ``--mcp-config``: the gateway's door, which is the server under test."""
    headers = {"Authorization": f"Bearer {token}"}
    return {"mcpServers": {SERVER: {"type": "http", "url": f"{address}/mcp", "headers": headers}}}


def build_command(program: str, *, model: str, max_turns: int, system_file: str, servers_file: str) -> list[str]:
    """Return the command line; the prompt goes to its standard input.

    ``--bare`` leaves out what depends on the machine and the day (folder, platform, today's date), ``--system-prompt``
    puts the neutral prompt in the place of Claude Code's own: every arm, and every runtime, is told the same.
    """
    return [
        program,
        "--print",
        "--bare",
        *("--model", model),
        *("--system-prompt-file", system_file),
        *("--mcp-config", servers_file, "--strict-mcp-config"),
        *("--setting-sources", ""),
        *("--tools", ""),
        *("--allowedTools", f"mcp__{SERVER}"),
        *("--permission-mode", "dontAsk"),
        "--disable-slash-commands",
        "--no-session-persistence",
        *("--max-turns", str(max_turns)),
        *("--output-format", "stream-json", "--verbose"),
    ]
