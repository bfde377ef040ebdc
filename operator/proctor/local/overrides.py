"""What a person may change about a suite on the command line, without touching its file."""

from __future__ import annotations

import re

from pydantic import ValidationError

from proctor.api.suite import EvalSuite, EvalSuiteSpec
from proctor.errors import InvalidInput

SECRET_NAME = "anthropic"  # noqa: S105 - the name of a secret
SECRET_KEY = "api-key"  # noqa: S105 - as above
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 50


def replace_models(suite: EvalSuite, model: str, *, base_url: str | None = None) -> EvalSuite:
    """Run the suite's servers with one Anthropic model instead of its own models.

    Args:
        suite: the suite.
        model: the provider's name of the model.
        base_url: another host that speaks the same API.

    Raises:
        InvalidInput: the suite can't be run with it.
    """
    name = _NOT_IN_NAMES.sub("-", model.lower())[:_MAX_NAME].strip("-")
    anthropic: dict[str, object] = {"model": model, "secretKeyRef": {"name": SECRET_NAME, "key": SECRET_KEY}}
    if base_url is not None:
        anthropic["baseUrl"] = base_url
    return change_spec(suite, f"--model {model}", models=[{"name": name, "anthropic": anthropic}])


def change_spec(suite: EvalSuite, option: str, **changes: object) -> EvalSuite:
    """Return the suite with some fields of its spec replaced, all rules checked again.

    Raises:
        InvalidInput: the changed suite breaks a rule; the message names the option.
    """
    try:
        spec = EvalSuiteSpec.model_validate(suite.spec.to_file() | changes)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{option}: {where + ': ' if where else ''}{first['msg']}") from e
    return suite.model_copy(update={"spec": spec})
