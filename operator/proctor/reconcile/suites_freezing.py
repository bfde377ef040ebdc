"""A suite and what a run changes about it → the resolved suite that the run is fixed to, and never reads again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from proctor.api.run import EvalRunSpec
from proctor.api.server import Server
from proctor.api.suite import EvalSuiteSpec
from proctor.errors import InvalidInput
from proctor.reconcile.rules import LAST_PASSED_SUFFIX, repeated_servers

MAX_NAME = 50
"""Of a server, as everywhere in a manifest."""


class SuiteRefused(InvalidInput):
    """A run can't be made of a suite as it is.

    Args:
        reason: machine word.
        message: what is wrong, and how to mend it.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeSources:
    """What a suite leaves open.

    Attributes:
        now: when the run starts; its day is the anchor of `anchorPolicy: LatestDay`.
        followed: images by server with `imageFrom`.
        shipped: images of servers that name none, by their program.
        last_passed: images by server of the last run that passed; empty without one.
    """

    now: datetime
    followed: Mapping[str, str] = field(default_factory=dict)
    shipped: Mapping[str, str] = field(default_factory=dict)
    last_passed: Mapping[str, str] = field(default_factory=dict)


def freeze_suite(suite: EvalSuiteSpec, run: EvalRunSpec, sources: FreezeSources) -> EvalSuiteSpec:
    """Return the suite with the run's overrides, an image on every server that is started, and a fixed anchor.

    Raises:
        SuiteRefused: something is missing, or the whole breaks a rule.
    """
    _refuse_strangers(suite, run)
    document = suite.to_file()
    document["servers"] = [_resolve_server(server, run, sources) for server in suite.servers]
    if run.models is not None:
        models = {model.name: model for model in suite.models} | {model.name: model for model in run.models}
        document["models"] = [model.to_file() for model in models.values()]
    if run.replicates is not None:
        document["replicates"] = run.replicates
    document["anchor"] = suite.anchor_at(sources.now).isoformat()
    document.pop("anchorPolicy", None)
    if suite.gate.baseline is not None and suite.gate.baseline.last_passed:
        document["servers"] += [*_repeat_last_passed(document["servers"], sources.last_passed)]
    try:
        return EvalSuiteSpec.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SuiteRefused("InvalidSuite", f"{where + ': ' if where else ''}{first['msg']}") from error


def images_of(frozen: EvalSuiteSpec) -> dict[str, str]:
    """Return the images that a frozen suite's own servers run, by server; baselines that are run again are left out."""
    again = repeated_servers(frozen).values()
    return {server.name: server.image for server in frozen.servers if server.image and server.name not in again}


def _refuse_strangers(suite: EvalSuiteSpec, run: EvalRunSpec) -> None:
    known = {server.name for server in suite.servers}
    strangers = [override.name for override in run.servers or () if override.name not in known]
    if strangers:
        message = f"spec.servers of the run: no server of the suite is named {strangers[0]!r}"
        raise SuiteRefused("UnknownServer", f"{message}; one of: {', '.join(sorted(known))}")


def _resolve_server(server: Server, run: EvalRunSpec, sources: FreezeSources) -> dict[str, Any]:
    document = server.to_file()
    if server.http is not None and server.http.url is not None:
        return document
    document.pop("imageFrom", None)
    kind = "stdio" if server.stdio is not None else "http"
    document[kind] = document[kind] | {"image": _find_image(server, run, sources)}
    return document


def _find_image(server: Server, run: EvalRunSpec, sources: FreezeSources) -> str:
    """Return the image that a server runs: the run's own, the suite's, the one it follows, or the one that ships."""
    overrides = {override.name: override.image for override in run.servers or ()}
    if server.name in overrides:
        return overrides[server.name]
    if server.image is not None:
        return server.image
    if server.image_from is not None:
        image = sources.followed.get(server.name)
        if image is None:
            follows = f"container {server.image_from.container} of Deployment {server.image_from.deployment}"
            raise SuiteRefused("AwaitingImage", f"server {server.name}: {follows} runs no one image now")
        return image
    program = PurePosixPath((server.transport.command or ("",))[0]).name
    if program not in sources.shipped:
        fix = "name its image, or give imageFrom; only servers that the chart knows need none"
        raise SuiteRefused("ImageMissing", f"server {server.name}: no image for {program or 'it'}; {fix}")
    return sources.shipped[program]


def _repeat_last_passed(
    servers: Sequence[Mapping[str, Any]], last_passed: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the servers again, as they are but with the images that passed: pairs then share everything else."""
    names = {server["name"] for server in servers}
    for server in servers:
        image = last_passed.get(server["name"])
        kind = "stdio" if "stdio" in server else "http"
        if image is None or "image" not in server[kind]:
            continue
        name = f"{server['name']}{LAST_PASSED_SUFFIX}"
        if name in names or len(name) > MAX_NAME:
            room = MAX_NAME - len(LAST_PASSED_SUFFIX)
            fix = f"give it another name of at most {room} characters"
            raise SuiteRefused("InvalidSuite", f"server {server['name']}: {name} would be its baseline; {fix}")
        yield {**server, "name": name, kind: server[kind] | {"image": image}}
