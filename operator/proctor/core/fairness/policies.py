"""Whether a scenario's scripted models show what they are for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.core.agents.scripted import GeneralPolicy
from proctor.core.fairness.folder import Draft
from proctor.core.scenarios.answer import AnswerKey, FactType
from proctor.core.scenarios.document import Fault
from proctor.core.scenarios.policies import POLICIES_FILE, Policies, ScriptedPolicy
from proctor.core.scenarios.reference import Reference
from proctor.core.seeding.identity import ANSWER_FILE

IMPOSTORS = ("strongest-decoy", "names-everything", "wrong-evidence")
"""Who must be found out: falls for the loudest, commits to nothing, is right for no reason."""

_GENERAL = (GeneralPolicy.LOUDEST, GeneralPolicy.NEWEST)
_DATABASE = re.compile(r"\b(?:FROM|JOIN)\s+`?\w+`?\.`?\w", re.IGNORECASE)


def check_policies(draft: Draft, policies: Policies, key: AnswerKey) -> Iterator[Fault]:
    """Yield impostors that are missing, and bands that are or have nobody to land in them."""
    for name in IMPOSTORS:
        if name not in policies.impostors:
            yield draft.fault(POLICIES_FILE, ("impostors",), f"there is no impostor `{name}`", "add it")
    for name in policies.impostors:
        if name not in key.impostors:
            fix = f"add `{name}: {{low: '0', high: '0.1'}}`, or what it should score"
            yield draft.fault(ANSWER_FILE, ("impostors",), f"the impostor `{name}` has no band", fix)
    for name in key.impostors:
        if name not in policies.impostors and name not in _GENERAL:
            yield draft.fault(ANSWER_FILE, ("impostors", name), f"there is no policy `{name}`", "remove it")


def check_tables(draft: Draft, policies: Policies, key: AnswerKey) -> Iterator[Fault]:
    """Yield queries that name a database: each dataset has one of its own."""
    fix = "name tables alone"
    for policy, location in _located(policies):
        for place, step in enumerate(policy.steps):
            if _DATABASE.search(step.query):
                yield draft.fault(POLICIES_FILE, (*location, "steps", place, "query"), "names a database", fix)
    for name, fact in key.facts.items():
        if _DATABASE.search(fact.sql):
            yield draft.fault(ANSWER_FILE, ("facts", name, "sql"), "names a database", fix)
    for check in key.artifact.checks if key.artifact else ():
        if _DATABASE.search(getattr(check, "reference", "")):
            yield draft.fault(ANSWER_FILE, ("artifact", "checks", check.id, "reference"), "names a database", fix)


def check_knowledge(draft: Draft, policies: Policies, key: AnswerKey, reference: Reference) -> Iterator[Fault]:
    """Yield the facts that the oracle knows before it has asked."""
    for name, value in reference.facts.items():
        literal = str(value)
        written = f" {literal} " if key.facts[name].type is not FactType.TEXT else literal
        if literal and written in policies.oracle.answer:
            yield draft.fault(
                POLICIES_FILE,
                ("oracle", "answer"),
                f"holds the fact `{name}`, {literal!r}",
                "let a step return it as a marker",
            )


def _located(policies: Policies) -> Iterator[tuple[ScriptedPolicy, tuple[str, ...]]]:
    yield policies.oracle, ("oracle",)
    for name, policy in policies.impostors.items():
        yield policy, ("impostors", name)
