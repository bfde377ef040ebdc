"""Whether a scenario is fair, by its files alone."""

from __future__ import annotations

from proctor.core.agents.prompt import told_text
from proctor.core.fairness.brief import check_leaks, check_words
from proctor.core.fairness.folder import Draft
from proctor.core.fairness.policies import check_knowledge, check_policies, check_tables
from proctor.core.fairness.recipe import check_recipe
from proctor.core.fairness.rubric import check_form, check_kinds, check_rubric, compile_key
from proctor.core.fairness.variants import check_variants
from proctor.core.scenarios.document import Fault


def check_files(draft: Draft) -> tuple[Fault, ...]:
    """Return all that is wrong with a scenario's files, in the files' order."""
    faults = list(draft.faults)
    if draft.variants and draft.redraw is None:
        faults += check_variants(draft, draft.variants)
    if draft.recipe:
        faults += check_recipe(draft, draft.recipe)
    if draft.brief:
        faults += check_words(draft, draft.brief, draft.recipe)
    if draft.answer and draft.policies:
        faults += check_policies(draft, draft.policies, draft.answer)
        faults += check_tables(draft, draft.policies, draft.answer)
    if draft.answer and draft.brief:
        faults += check_form(draft, draft.answer, draft.brief)
        faults += check_kinds(draft, draft.answer, draft.brief.answer)
    if draft.answer and draft.brief and draft.reference:
        faults += _check_key(draft)
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line)))


def _check_key(draft: Draft) -> list[Fault]:
    if draft.answer is None or draft.brief is None or draft.reference is None:
        raise AssertionError("asked for all three before")
    rubric = compile_key(draft, draft.answer, draft.reference, told_text(draft.brief))
    if isinstance(rubric, list):
        return rubric
    faults = [*check_rubric(draft, draft.answer, rubric), *check_leaks(draft, draft.brief, draft.answer, rubric)]
    if draft.policies:
        faults += check_knowledge(draft, draft.policies, draft.answer, draft.reference)
    return faults
