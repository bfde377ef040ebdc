"""The servers that docs/mcp.md shows are servers that a suite takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from proctor.api.server import Server

_DOCS = Path(__file__).parents[3] / "docs/mcp.md"
_BLOCKS = re.findall(r"```yaml\n(servers:\n.*?)```", _DOCS.read_text(), re.DOTALL)
SERVERS = [server for block in _BLOCKS for server in yaml.safe_load(block)["servers"]]


@pytest.mark.parametrize("server", SERVERS, ids=[server["name"] for server in SERVERS])
def test_a_shown_server_is_valid(server: dict[str, object]) -> None:
    """Docs: what is shown is tested."""
    assert Server.model_validate(server).name == server["name"]


def test_every_way_to_reach_a_server_is_shown() -> None:
    """Docs: stdio, a command with a port, a url, headers of both kinds, and provision."""
    shown = {key for server in SERVERS for key in (*server, *server.get("http", {}))}
    assert shown >= {"stdio", "command", "port", "url", "headers", "provision", "env", "sqlTool", "allowedTools"}
