"""Secrets on one machine: a folder, the environment, and the provider's usual variable. Never printed, never kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from proctor.api.fields import SecretKeyRef
from proctor.api.suite import EvalSuiteSpec
from proctor.errors import InvalidInput

MAX_SECRET_BYTES = 64 * 1024
ANTHROPIC_VARIABLE = "ANTHROPIC_API_KEY"


def read_secrets(
    spec: EvalSuiteSpec, secrets_dir: Path | None, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the value of every Secret key that a suite names, under ``name/key``.

    Looked up in ``DIR/name/key``, then ``PROCTOR_SECRET_NAME_KEY``, then, for an anthropic model or judge only,
    ``ANTHROPIC_API_KEY``.

    Raises:
        InvalidInput: one can't be found or read; all that are missing are named at once, and no value ever is.
    """
    found: dict[str, str] = {}
    missing: list[str] = []
    for field, ref, is_model_key in list_references(spec):
        name = f"{ref.name}/{ref.key}"
        if name in found:
            continue
        value = _look_up(ref, secrets_dir, environ, is_model_key=is_model_key)
        if value is None:
            missing.append(
                f"{field}: secret {name} is not given: {_where(ref, secrets_dir, is_model_key=is_model_key)}"
            )
        else:
            found[name] = value
    if missing:
        raise InvalidInput("\n".join(dict.fromkeys(missing)))
    return found


def read_model_key(
    ref: SecretKeyRef, secrets_dir: Path | None, environ: Mapping[str, str] = os.environ, *, field: str
) -> str:
    """Return the key of one model, outside of any suite.

    Raises:
        InvalidInput: it can't be found or read; `field` names what wants it.
    """
    value = _look_up(ref, secrets_dir, environ, is_model_key=True)
    if value is None:
        raise InvalidInput(
            f"{field}: secret {ref.name}/{ref.key} is not given: {_where(ref, secrets_dir, is_model_key=True)}"
        )
    return value


def list_references(spec: EvalSuiteSpec) -> Iterator[tuple[str, SecretKeyRef, bool]]:
    """Yield every reference of a suite: its field, itself, and whether it is an anthropic key."""
    for index, model in enumerate(spec.models):
        if model.anthropic is not None:
            yield f"spec.models[{index}].anthropic.secretKeyRef", model.anthropic.secret_key_ref, True
    if spec.judge.anthropic is not None:
        yield "spec.judge.anthropic.secretKeyRef", spec.judge.anthropic.secret_key_ref, True
    for index, server in enumerate(spec.servers):
        refs = [(f"env[{place}]", variable.secret_key_ref) for place, variable in enumerate(server.env)]
        refs += [(f"headers[{place}]", header.secret_key_ref) for place, header in enumerate(server.headers)]
        for field, ref in refs:
            if ref is not None:
                yield f"spec.servers[{index}].{field}.secretKeyRef", ref, False


def variable_of(ref: SecretKeyRef) -> str:
    """Return the environment variable of a reference, as in ``PROCTOR_SECRET_ANTHROPIC_API_KEY``."""
    return "PROCTOR_SECRET_" + re.sub(r"[^A-Z0-9]", "_", f"{ref.name}_{ref.key}".upper())


def _look_up(
    ref: SecretKeyRef, secrets_dir: Path | None, environ: Mapping[str, str], *, is_model_key: bool
) -> str | None:
    if secrets_dir is not None:
        value = _read(secrets_dir / ref.name / ref.key, ref)
        if value:
            return value
    variables = [variable_of(ref), *([ANTHROPIC_VARIABLE] if is_model_key else [])]
    return next((environ[variable] for variable in variables if environ.get(variable)), None)


def _read(path: Path, ref: SecretKeyRef) -> str | None:
    what = f"secret {ref.name}/{ref.key}: reading {path}"
    try:
        with path.open("rb") as file:
            body = file.read(MAX_SECRET_BYTES + 1)
        if len(body) > MAX_SECRET_BYTES:
            raise InvalidInput(f"{what}: larger than {MAX_SECRET_BYTES // 1024} KiB: name the right file")
        # Editors and `echo` end a file with a line break that no key has.
        return body.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        # Without `from`: the decoder's exception carries the bytes.
        raise InvalidInput(f"{what}: not UTF-8 text") from None
    except OSError as error:
        raise InvalidInput(f"{what}: {error.strerror}") from error


def _where(ref: SecretKeyRef, secrets_dir: Path | None, *, is_model_key: bool) -> str:
    folder = f"put it into {secrets_dir / ref.name / ref.key}" if secrets_dir else "give --secrets DIR"
    usual = f" or {ANTHROPIC_VARIABLE}" if is_model_key else ""
    return f"{folder}, or set {variable_of(ref)}{usual}"
