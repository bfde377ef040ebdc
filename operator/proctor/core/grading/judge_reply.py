"""What a judge replied: marks, or why they can't be used. Nothing here guesses, repairs or clamps (grading rule 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core.gatewaypolicy.pricing import Usage
from proctor.core.gatewaypolicy.refusal import Refused
from proctor.core.gatewaypolicy.strict_json import parse_object
from proctor.core.grading.answer_text import normalise_text
from proctor.core.grading.judge_prompt import MOST, TOOL
from proctor.core.scenarios.answer import JudgeCriterion

_KEPT_REASON = 500


@dataclass(frozen=True, slots=True)
class VotedMark:
    """One criterion's score in one vote.

    Attributes:
        score: from 0 to 5.
        reason: the judge's own sentence, cut and without control characters.
    """

    score: int
    reason: str


Vote = Mapping[str, VotedMark]
"""One mark for every criterion, by its id."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply.

    Attributes:
        vote: None where the reply can't be used.
        defect: why it can't be; fixed words, for they are told to the judge and to people.
        usage: the tokens that it took all the same.
    """

    vote: Vote | None
    defect: str
    usage: Usage


class _DefectError(ValueError):
    """Says in fixed words what is wrong."""


def parse_judge_reply(body: bytes, criteria: Sequence[JudgeCriterion], *, nonce: str) -> JudgeReply:
    """Read the body of a reply.

    Args:
        body: as it came.
        criteria: every one of which must have a mark, and no other.
        nonce: the number that the request carried. Marks without it were not given for this answer; they may be ones
            that the answer itself brought along.
    """
    try:
        message = parse_object(body)
    except Refused:
        return JudgeReply(None, "it is not plain JSON", Usage())
    usage = Usage.parse(message.get("usage"))
    try:
        return JudgeReply(_parse_marks(_find_arguments(message), criteria, nonce), "", usage)
    except _DefectError as defect:
        return JudgeReply(None, str(defect), usage)


def _find_arguments(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if message.get("type") != "message" or not isinstance(content, list):
        raise _DefectError("it is no message")
    if message.get("stop_reason") == "refusal":
        raise _DefectError("it is a refusal")
    calls = [block for block in content if isinstance(block, dict) and block.get("type") == "tool_use"]
    if not calls:
        raise _DefectError("it is prose, without a call of the tool")
    if len(calls) > 1:
        raise _DefectError("it gives marks more than once")
    if message.get("stop_reason") == "max_tokens":
        raise _DefectError("it is cut")
    arguments = calls[0].get("input")
    if calls[0].get("name") != TOOL or not isinstance(arguments, dict):
        raise _DefectError("it calls another tool, or one without arguments")
    return arguments


def _parse_marks(arguments: Mapping[str, Any], criteria: Sequence[JudgeCriterion], nonce: str) -> Vote:
    if arguments.get("nonce") != nonce:
        raise _DefectError("it does not carry the number of this answer")
    marks = arguments.get("marks")
    if set(arguments) != {"nonce", "marks"} or not isinstance(marks, dict):
        raise _DefectError("it does not hold marks and nothing else")
    if set(marks) != {line.id for line in criteria}:
        raise _DefectError("it does not mark every criterion, and no other")
    return {line.id: _parse_mark(marks[line.id]) for line in criteria}


def _parse_mark(mark: object) -> VotedMark:
    if not isinstance(mark, dict) or set(mark) != {"score", "reason"} or not isinstance(mark["reason"], str):
        raise _DefectError("a mark is not a score with its reason")
    score = mark["score"]
    if isinstance(score, bool) or not isinstance(score, int):
        raise _DefectError("a score is not a whole number")
    if not 0 <= score <= MOST:
        raise _DefectError(f"a score is not between 0 and {MOST}")
    return VotedMark(score, normalise_text(mark["reason"][:_KEPT_REASON]))
