"""Whether a rubric grades as careful people would: its sentences, its whole answers, its bands."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.core.fairness.folder import Draft
from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.facts import check_facts, expand_terms, fill_text
from proctor.core.grading.rubric import PatternFault, Rubric, check_pattern, compile_rubric
from proctor.core.scenarios.answer import AnswerKey, WholeAnswer
from proctor.core.scenarios.brief import BRIEF_FILE, AnswerFormat, Brief
from proctor.core.scenarios.document import Fault
from proctor.core.scenarios.reference import REFERENCE_FILE, Reference
from proctor.core.seeding.identity import ANSWER_FILE
from proctor.errors import InvalidInput

_RIGHT = ("terse", "other-words", "rule-outs", "table")
_WRONG = ("wrong", "hedged", "symptom", "pasted")
KINDS = {AnswerFormat.TEXT: (*_RIGHT, *_WRONG), AnswerFormat.JSON: ("right", "wrong", "pasted")}
"""The kinds of whole answers that a key must have; an answer's `id` holds the word of its kind."""


def compile_key(draft: Draft, key: AnswerKey, reference: Reference, told: str) -> Rubric | list[Fault]:
    """Return the rubric with the reference record's facts, or what keeps it from being compiled."""
    faults = [
        draft.fault(REFERENCE_FILE, ("facts", name), f"`{name}` is no fact of answer.yaml", "remove it")
        for name in reference.facts
        if name not in key.facts
    ]
    faults += [
        draft.fault(REFERENCE_FILE, ("facts",), f"the fact `{name}` is missing", "`proctor dataset seed` prints it")
        for name in key.facts
        if name not in reference.facts
    ]
    if faults:
        return faults
    try:
        known = expand_terms(key, check_facts(key, reference.facts))
    except InvalidInput as error:
        return [draft.fault(ANSWER_FILE, ("terms",), str(error), "correct it")]
    for name in key.terms:
        try:
            check_pattern(name, known[name])
        except PatternFault as error:
            faults.append(draft.fault(ANSWER_FILE, ("terms", name), error.reason, error.fix))
    if faults:
        return faults
    try:
        return compile_rubric(key, reference.facts, told=told)
    except PatternFault as error:
        owner = next((line.id for line in key.criteria if line.id in error.label.split(":")), None)
        place = ("criteria", owner) if owner else ("effect",)
        return [draft.fault(ANSWER_FILE, place, error.reason, error.fix)]
    except InvalidInput as error:
        return [draft.fault(ANSWER_FILE, ("criteria",), str(error), "correct it")]


def check_rubric(draft: Draft, key: AnswerKey, rubric: Rubric) -> Iterator[Fault]:
    """Yield the sentences and whole answers that are graded otherwise than they should be."""
    for line in key.criteria:
        for side, wanted in (("fires", True), ("silent", False)):
            for place, sentence in enumerate(getattr(line, side)):
                text = fill_text(sentence, rubric.facts)
                if (find_statement(rubric, line.id, text) is not None) is not wanted:
                    says = "is not matched" if wanted else "is matched"
                    yield draft.fault(
                        ANSWER_FILE,
                        ("criteria", line.id, side, place),
                        f"{text!r} {says}",
                        "correct the patterns, or the sentence",
                    )
    if key.artifact is not None:
        return  # whole answers are run over the rows
    for answer in key.answers:
        graded = check_answer(rubric, fill_text(answer.text, rubric.facts))
        if not answer.holds(graded.score):
            why = f" ({graded.remark})" if graded.remark else ""
            yield draft.fault(
                ANSWER_FILE,
                ("answers", answer.id),
                f"scores {graded.score}{why}, outside {answer.low} to {answer.high}",
                "`proctor grade` shows every check's reason",
            )


def check_form(draft: Draft, key: AnswerKey, brief: Brief) -> Iterator[Fault]:
    """Yield a brief that asks for prose where an artifact is run."""
    if key.artifact is not None and brief.answer is not AnswerFormat.JSON:
        message = "asks for prose, but the answer key runs an artifact"
        yield draft.fault(BRIEF_FILE, ("answer",), message, "write `answer: json`, and describe the form in the prompt")


def check_kinds(draft: Draft, key: AnswerKey, form: AnswerFormat) -> Iterator[Fault]:
    """Yield the kinds of whole answers that are missing, and wrong ones whose band lets them pass for right."""
    for kind in KINDS[form]:
        found = [answer for answer in key.answers if _is_of(answer, kind)]
        if not found:
            yield draft.fault(
                ANSWER_FILE, ("answers",), f"no answer is of the kind {kind!r}", f"add one whose `id` holds {kind!r}"
            )
        for answer in found:
            most = 0 if kind == "pasted" else 3
            if kind in _WRONG and answer.high * 10 > most:
                yield draft.fault(
                    ANSWER_FILE,
                    ("answers", answer.id, "high"),
                    f"an answer of the kind {kind!r} may score {answer.high}",
                    f"lower it to {most / 10:g} at most",
                )


def _is_of(answer: WholeAnswer, kind: str) -> bool:
    return kind in answer.id and not (kind in _WRONG and answer.id.startswith("right"))
