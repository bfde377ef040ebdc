"""Manifest file → EvalSuite; every problem names the file, the line, the field, and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proctor.api.documents import MAX_BYTES, Document, DocumentError, FieldPath, parse_document
from proctor.api.fields import Breach
from proctor.api.suite import EvalSuite, EvalSuiteSpec
from proctor.core.agents.scripted import list_policies
from proctor.core.digests import digest_json
from proctor.core.scenarios.brief import BRIEF_FILE
from proctor.core.scenarios.policies import find_policies
from proctor.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a manifest.

    Attributes:
        file: the file's name as the caller gave it.
        line: counted from 1; 0 where the file itself is at fault.
        field: dotted path, as in ``spec.servers[0].env[1].name``; empty for the file itself.
        message: what is wrong.
        fix: what to do about it.
    """

    file: str
    line: int
    field: str
    message: str
    fix: str

    def __str__(self) -> str:
        subject = f"{self.field}: " if self.field else ""
        fix = f" — {self.fix}" if self.fix else ""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {subject}{self.message}{fix}"


class InvalidManifest(InvalidInput):
    """A manifest with problems; its text has one line for each.

    Args:
        problems: all of them, in the file's order.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.field)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def load_suite(path: Path, *, scenario_dirs: Sequence[Path] | None = None) -> EvalSuite:
    """Read, check and return a suite.

    Args:
        path: the manifest.
        scenario_dirs: folders that scenarios' names are looked up in, first hit wins; None leaves names unchecked.

    Raises:
        InvalidManifest: with every problem found.
    """
    return parse_suite(_read(path), file=str(path), scenario_dirs=scenario_dirs)


def parse_suite(text: str, *, file: str, scenario_dirs: Sequence[Path] | None = None) -> EvalSuite:
    """Check the text of a manifest and return the suite; see `load_suite`.

    Raises:
        InvalidManifest: with every problem found.
    """
    try:
        document = parse_document(text)
    except DocumentError as error:
        message, _, fix = error.message.partition(": ")
        raise InvalidManifest([Problem(file, error.line, "", message, fix)]) from error
    if not isinstance(document.value, dict):
        raise InvalidManifest([Problem(file, 1, "", "not a mapping of fields", "start with apiVersion and kind")])
    try:
        # Files use the API's own names only, as a cluster would; Python names are for callers.
        suite = EvalSuite.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        told = _without_echoes(error.errors())
        problems = [problem for details in told for problem in _explain(details, document, file)]
        raise InvalidManifest(problems) from error
    unknown = [
        Problem(file, document.line_of(path), render_path(path), message, fix)
        for path, message, fix in _unknown_names(suite.spec, scenario_dirs or ())
    ]
    if unknown:
        raise InvalidManifest(unknown)
    return suite


def digest_suite(spec: EvalSuiteSpec) -> str:
    """Return the digest of a resolved suite: equal for equal meaning, however the file is written.

    What starts runs, but doesn't change them, is left out: a suite whose schedule changed is resumed all the same.
    """
    meaning = spec.to_file()
    for starter in ("schedule", "runOnChange", "runRequestId", "history"):
        meaning.pop(starter, None)
    return digest_json(meaning)


def render_path(path: FieldPath) -> str:
    """Render a field's path the way people write it: ``spec.servers[0].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def _read(path: Path) -> str:
    file = str(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            message = f"{size:,} bytes are more than a manifest's {MAX_BYTES // 1024} KiB"
            raise InvalidManifest([Problem(file, 0, "", message, "split it, or name the right file")])
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidManifest([Problem(file, 0, "", "not UTF-8 text", "save it as UTF-8")]) from error
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        raise InvalidManifest([Problem(file, 0, "", message, "name a manifest; `proctor init` writes one")]) from error


def _without_echoes(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Drop "too few items" of a list whose items are themselves wrong: it goes when they are mended."""

    def is_echo(details: ErrorDetails) -> bool:
        location = details["loc"]
        deeper = (other["loc"] for other in errors if len(other["loc"]) > len(location))
        return details["type"] == "too_short" and any(other[: len(location)] == location for other in deeper)

    return [details for details in errors if not is_echo(details)]


def _explain(details: ErrorDetails, document: Document, file: str) -> Iterator[Problem]:
    location = _in_file(tuple(details["loc"]))
    breaches: Sequence[Breach] | None = details.get("ctx", {}).get("breaches")
    if breaches is not None:
        for breach in breaches:
            path = (*location, *breach.path)
            yield Problem(file, document.line_of(path), render_path(path), breach.message, breach.fix)
        return
    message, fix = _describe(details, location)
    yield Problem(file, document.line_of(location), render_path(location), message, fix)


def _in_file(location: FieldPath) -> FieldPath:
    # pydantic names a mapping's offending key with this suffix; the file has no such field.
    return tuple(part for part in location if part != "[key]")


def _describe(details: ErrorDetails, location: FieldPath) -> tuple[str, str]:
    match details["type"]:
        case "extra_forbidden":
            return _unknown_field(location)
        case "missing":
            purpose = field_schema(location).get("description", "")
            return "required field is missing", f"add it{': ' + purpose if purpose else ''}"
        case _:
            value = details["input"]
            # Whoever writes a key where only a reference may stand must not find it in a CI log.
            is_secret = not _SENSITIVE.isdisjoint(location)
            return _describe_value(details, "the value" if is_secret else _shown(value))


_SENSITIVE = frozenset({"secretKeyRef", "env", "headers"})


def _describe_value(details: ErrorDetails, shown: str) -> tuple[str, str]:  # noqa: PLR0911 - one per kind of error
    context: Mapping[str, Any] = details.get("ctx", {})
    quoted = f"write {shown.strip(chr(39))!r} in quotes".replace("'", '"') if shown != "the value" else "quote it"
    is_number = isinstance(details["input"], int | float)
    match details["type"]:
        case "string_pattern_mismatch":
            return f"{shown} is not of the form {context['pattern']}", "use only what the form admits"
        case "enum" | "literal_error":
            expected = str(context["expected"]).replace("'", "")
            return f"{shown} is not one of the known values", f"one of: {expected}{_guess(details, expected)}"
        case "string_type" if is_number:
            return f"{shown} is a number or a flag, not text", quoted
        case "model_type" | "dict_type":
            return f"{shown} is not a mapping of fields", "write its fields on lines below"
        case "tuple_type":
            return f"{shown} is not a list", "write [a, b], or one `- item` per line"
        case "decimal_text":
            return (details["msg"], quoted) if is_number else (f"{shown} is {details['msg']}", 'like "0.05"')
        case _:
            return f"{shown}: {details['msg'][:1].lower()}{details['msg'][1:]}", "see docs/reference"


def _unknown_field(location: FieldPath) -> tuple[str, str]:
    names = sorted(field_schema(location[:-1]).get("properties", {}))
    close = difflib.get_close_matches(str(location[-1]), names, n=1, cutoff=0.6)
    folded = [name for name in names if name.lower() == str(location[-1]).replace("_", "").lower()]
    fix = f"did you mean {(folded or close)[0]}?" if folded or close else f"known here: {', '.join(names) or 'nothing'}"
    return "unknown field", fix


def _guess(details: ErrorDetails, expected: str) -> str:
    choices = expected.replace(" or ", ", ").split(", ")
    close = difflib.get_close_matches(str(details["input"]), choices, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004 - keeps the line readable


@cache
def _schema() -> dict[str, Any]:
    return EvalSuite.model_json_schema(by_alias=True)


def field_schema(path: FieldPath) -> dict[str, Any]:
    """Return the JSON schema of a suite's field; empty where there is no such field."""
    node = _schema()
    for part in path:
        node = _resolve(node)
        child = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
        node = {**_resolve(child), **{key: child[key] for key in ("description",) if key in child}}
    return _resolve(node)


def _resolve(node: dict[str, Any]) -> dict[str, Any]:
    while True:
        if "$ref" in node:
            target = _schema()["$defs"][node["$ref"].rsplit("/", 1)[1]]
            node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        elif "anyOf" in node:
            present = next(choice for choice in node["anyOf"] if choice.get("type") != "null")
            node = {**present, **{key: value for key, value in node.items() if key != "anyOf"}}
        else:
            return node


def known_scenarios(scenario_dirs: Sequence[Path]) -> list[str]:
    """Return the names of all scenarios in some folders."""
    return sorted(
        {
            folder.name
            for directory in scenario_dirs
            if directory.is_dir()
            for folder in directory.iterdir()
            if (folder / BRIEF_FILE).is_file()
        }
    )


def _unknown_names(spec: EvalSuiteSpec, scenario_dirs: Sequence[Path]) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield scenarios that are in none of the folders, and policies that a scenario doesn't have."""
    if not scenario_dirs:
        return
    known = known_scenarios(scenario_dirs)
    for index, scenario in enumerate(spec.scenarios):
        if scenario.name not in known:
            close = difflib.get_close_matches(scenario.name, known, n=1)
            names = ", ".join(known) or "none"
            fix = f"did you mean {close[0]}?" if close else f"known: {names}; --scenarios DIR adds more"
            yield ("spec", "scenarios", index, "name"), f"no scenario is named {scenario.name!r}", fix
            continue
        folder = next(one / scenario.name for one in scenario_dirs if (one / scenario.name / BRIEF_FILE).is_file())
        yield from _unknown_policies(spec, scenario.name, folder)


def _unknown_policies(spec: EvalSuiteSpec, scenario: str, folder: Path) -> Iterator[tuple[FieldPath, str, str]]:
    own = [
        (("spec", "models", index, "scripted", "policy"), model.scripted.policy)
        for index, model in enumerate(spec.models)
        if model.scripted is not None and model.scripted.policy not in list_policies(None)
    ]
    if not own:
        return  # and its file need not be read
    try:
        known = list_policies(find_policies(folder))
    except InvalidInput as error:
        yield own[0][0], str(error), f"mend it: proctor scenario check {folder}"
        return
    for path, policy in own:
        if policy not in known:
            yield path, f"scenario {scenario} has no policy {policy!r}", f"one of {', '.join(known)}"
