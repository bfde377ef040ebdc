"""`provision` in a manifest: where it may stand, and what one machine makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from proctor.api.locality import ignored_locally, unsupported_locally
from proctor.api.server import Server
from support.gateway import make_suite

HOOK = {"command": ["make-sources"]}
URL = {"url": "https://mcp.example.com/mcp"}


def make_server(**fields: Any) -> Server:
    return Server.model_validate({"name": "s", "deniedTools": [], **fields})


def test_it_belongs_to_a_server_over_http() -> None:
    """Manifest, provision: what it prints is a url and headers, which a command has not."""
    with pytest.raises(ValidationError, match="provision needs http"):
        make_server(stdio={"command": ["s"]}, provision=HOOK)


def test_the_environment_of_a_server_at_a_url_is_its_hooks() -> None:
    """Manifest, provision: without a hook there is nobody to have it."""
    env = [{"name": "ADMIN", "value": "x"}]
    assert make_server(http=URL, provision=HOOK, env=env).env
    with pytest.raises(ValidationError, match="is not started here"):
        make_server(http=URL, env=env)


def test_one_machine_runs_it_without_its_image() -> None:
    """Manifest, provision: nothing of it is refused locally; an image is ignored, and said to be."""
    image = "example.com/make@sha256:" + "0" * 64
    suite = make_suite().model_copy(update={"servers": (make_server(http=URL, provision={**HOOK, "image": image}),)})
    assert unsupported_locally(suite) == []
    assert "spec.servers[0].provision.image: the command runs from this machine instead" in ignored_locally(suite)
