"""Secrets on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.api.fields import SecretKeyRef
from proctor.api.suite import EvalSuiteSpec
from proctor.errors import InvalidInput
from proctor.local.secrets import read_secrets, variable_of
from support.manifests import real_model, server, suite

SPEC = suite(models=[real_model()]).spec
NAME = "anthropic/api-key"


def _put(folder: Path, value: bytes) -> Path:
    (folder / "anthropic").mkdir()
    (folder / NAME).write_bytes(value)
    return folder


def test_the_folder_comes_first_then_the_variable_then_the_providers_own(tmp_path: Path) -> None:
    """Manifest, secrets on one machine."""
    environ = {"PROCTOR_SECRET_ANTHROPIC_API_KEY": "own", "ANTHROPIC_API_KEY": "usual"}
    assert read_secrets(SPEC, None, {"ANTHROPIC_API_KEY": "usual"}) == {NAME: "usual"}
    assert read_secrets(SPEC, tmp_path, environ) == {NAME: "own"}
    assert read_secrets(SPEC, _put(tmp_path, b"filed\n"), environ) == {NAME: "filed"}


def _with_server_secret() -> EvalSuiteSpec:
    env = [{"name": "TOKEN", "secretKeyRef": {"name": "t.o", "key": "k"}}]
    return suite(servers=[server("current", env=env), server("candidate")]).spec


def test_the_providers_key_is_for_models_alone() -> None:
    """Manifest: ANTHROPIC_API_KEY for an anthropic model; a server never gets it by accident."""
    with pytest.raises(InvalidInput, match="PROCTOR_SECRET_T_O_K") as caught:
        read_secrets(_with_server_secret(), None, {"ANTHROPIC_API_KEY": "usual"})
    assert "usual" not in str(caught.value)
    assert "spec.servers[0].env[0].secretKeyRef" in str(caught.value)


def test_a_missing_secret_is_told_with_every_place_it_may_be(tmp_path: Path) -> None:
    """Bad input: file, field and fix."""
    with pytest.raises(InvalidInput) as caught:
        read_secrets(SPEC, tmp_path, {"ANTHROPIC_API_KEY": ""})
    for place in (str(tmp_path / NAME), "PROCTOR_SECRET_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"):
        assert place in str(caught.value)


@pytest.mark.parametrize("value", [b"\xffsecret-bytes", b"s" * 70_000])
def test_an_odd_file_is_refused_without_its_content(tmp_path: Path, value: bytes) -> None:
    """Manifest: never printed."""
    with pytest.raises(InvalidInput) as caught:
        read_secrets(SPEC, _put(tmp_path, value), {})
    assert "secret-bytes" not in repr(caught.value)
    assert "sss" not in repr(caught.value)


@pytest.mark.parametrize("key", ["..", ".", "a/b", "../x", ""])
def test_a_key_is_never_a_way_out_of_the_folder(key: str) -> None:
    """Bad input: names that would leave the folder are refused by the type."""
    with pytest.raises(ValueError, match="key"):
        SecretKeyRef(name="a", key=key)


def test_variable_names() -> None:
    """Manifest: upper case, `_` for other signs."""
    assert variable_of(SecretKeyRef(name="my.app-1", key="..data")) == "PROCTOR_SECRET_MY_APP_1___DATA"
