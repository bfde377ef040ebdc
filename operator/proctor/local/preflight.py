"""What can be refused before anything is started: every mistake here would cost minutes or money later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from proctor.adapters.control import Door
from proctor.adapters.sandbox.availability import sandbox_available
from proctor.adapters.sandbox.commands import find_program
from proctor.api.locality import unsupported_locally
from proctor.api.suite import EvalSuiteSpec, ScenarioRef
from proctor.bootstrap.gateway_config import DEFAULT_ALLOWED_HOSTS
from proctor.core.agents.scripted import find_policy
from proctor.core.grading.planted import choose_planted
from proctor.core.scenarios.answer import AnswerKey, load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.policies import find_policies
from proctor.errors import InvalidInput
from proctor.local.launching import build_agent, search_path
from proctor.local.request import RunRequest, SandboxChoice

SCENARIO_PARTS = ("brief.yaml", "recipe.yaml", "answer.yaml")


def check_request(request: RunRequest) -> None:
    """Check all that can be checked without starting anything.

    Raises:
        InvalidInput: with every problem found, one per line.
    """
    problems = [
        *_check_scenarios(request),
        *_check_commands(request.suite.spec),
        *_check_agent(request),
        *_check_hosts(request),
        *unsupported_locally(request.suite.spec),
        *_check_sandbox(request),
    ]
    if problems:
        raise InvalidInput("\n".join(problems))


def _check_scenarios(request: RunRequest) -> Iterator[str]:
    for scenario in request.suite.spec.scenarios:
        try:
            folder = request.scenario_dir(scenario.name)
        except InvalidInput as error:
            yield str(error)
            continue
        missing = [part for part in SCENARIO_PARTS if not (folder / part).is_file()]
        for part in missing:
            yield f"scenario {scenario.name!r}: {folder / part} is missing"
        if not missing:
            yield from _check_contents(scenario, folder, request.suite.spec)


def _check_contents(ref: ScenarioRef, folder: Path, suite: EvalSuiteSpec) -> Iterator[str]:
    """What a run would only meet after minutes: a file that is none, a policy that isn't there."""
    try:
        load_brief(folder, ref.seed)
        answer = load_answer(folder, ref.seed)
        policies = find_policies(folder, ref.seed)
    except InvalidInput as error:
        yield f"scenario {ref.name!r}: {error}"
        return
    for model in suite.models:
        try:
            if model.scripted is not None:
                find_policy(model.scripted.policy, policies)
        except InvalidInput as error:
            yield f"model {model.name!r}, scenario {ref.name!r}: {error}"
    if suite.judge.anthropic is not None:
        yield from _check_planted(ref.name, answer)


def _check_planted(scenario: str, answer: AnswerKey) -> Iterator[str]:
    """A judge is tried on answers of the scenario; which they are does not depend on the dataset."""
    try:
        choose_planted(answer, {})
    except InvalidInput as error:
        yield f"scenario {scenario!r}: {error}"


def _check_commands(suite: EvalSuiteSpec) -> Iterator[str]:
    for server in suite.servers:
        command = server.stdio.command if server.stdio is not None else server.http.command if server.http else None
        hook = server.provision.command if server.provision is not None else None
        for what, words in (("server", command), ("provision of server", hook)):
            try:
                if words is not None:
                    find_program(words[0], search_path())
            except InvalidInput as error:
                yield f"{what} {server.name!r}: {error}"


def _check_agent(request: RunRequest) -> Iterator[str]:
    try:
        build_agent(request.suite.spec, request)(Door(request.data_dir / "none.sock", "none"))
    except InvalidInput as error:
        yield f"agent: {error}"


def _check_hosts(request: RunRequest) -> Iterator[str]:
    allowed = {*DEFAULT_ALLOWED_HOSTS, *request.allowed_hosts}
    suite = request.suite.spec
    urls = [(f"model {model.name!r}", model.anthropic.url) for model in suite.models if model.anthropic is not None]
    if suite.judge.anthropic is not None:
        urls.append(("judge", suite.judge.anthropic.url))
    for what, url in urls:
        parts = urlsplit(url)
        if parts.netloc not in allowed and parts.hostname not in allowed:
            yield f"{what}: host {parts.netloc} is not allowed; if it may see the key, add --allow-host {parts.netloc}"


def _check_sandbox(request: RunRequest) -> Iterator[str]:
    if request.sandbox is SandboxChoice.BWRAP:
        reason = sandbox_available()
        if reason is not None:
            yield reason
