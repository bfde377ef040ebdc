"""Fields that only a cluster can honour."""

from __future__ import annotations

from proctor.api.loading import parse_suite
from proctor.api.locality import ignored_locally, unsupported_locally
from proctor.api.starter import STARTER
from support.manifests import server, suite


def test_fields_without_effect_are_said_to_be_ignored() -> None:
    """Manifest: accepted, and said to be ignored locally."""
    image = {"stdio": {"command": ["mcp"], "image": "registry/x@sha256:ab"}}
    spec = suite(
        servers=[server(**image), server("b")],
        schedule="0 3 * * *",
        runOnChange=True,
        sandbox={"runtimeClassName": "gvisor"},
    ).spec
    told = "\n".join(ignored_locally(spec))
    for field in ("servers[0].stdio.image", "schedule", "runOnChange", "sandbox.runtimeClassName"):
        assert field in told


def test_a_plain_suite_ignores_nothing() -> None:
    """Manifest: no noise where nothing is lost."""
    assert ignored_locally(suite().spec) == []
    assert unsupported_locally(suite().spec) == []
    starter = parse_suite(STARTER, file="starter")
    assert ignored_locally(starter.spec) == []


def test_what_cannot_run_here_is_told_with_the_fix() -> None:
    """Manifest: an HTTP image without a command needs a cluster."""
    remote = server("remote", stdio=None, http={"image": "registry/x", "port": 8080})
    told = unsupported_locally(suite(servers=[remote, server("current")]).spec)
    assert len(told) == 1
    assert "add command" in told[0]
