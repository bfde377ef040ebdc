"""The neutral prompt: the same words for every arm (M-A7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from proctor.core.scenarios.brief import AnswerFormat, Brief

_ROLE = """\
You are a site reliability engineer. You investigate a report about a running system with the tools that you are \
given, and nothing else. The tools reach the telemetry of that system. How it is stored is for you to find out.

The current time is fixed: it is {words}, which is {instant}. Read every relative time as ending at that instant: \
"the past 10 minutes" means the ten minutes before it. Data later than that do not exist, and your own clock does \
not matter.

You have {budget}; a good investigation needs about 15 to 25 tool calls. Look before you conclude: what is loud is \
not always what matters.

When you are done, write your final answer as {form}, without further tool calls. State the finding first, then the \
evidence for it with names, numbers and times from the telemetry, then what you looked at and ruled out, and why. \
Be brief. Nobody can answer questions."""

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_FORMS = {
    AnswerFormat.TEXT: "plain text",
    AnswerFormat.JSON: "one JSON value and nothing around it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLimits:
    """What the prompt says about limits.

    Attributes:
        max_turns: exchanges with the model.
        max_tool_calls: calls of tools.
    """

    max_turns: int
    max_tool_calls: int


class NeutralPrompt(NamedTuple):
    """What a model is told."""

    system: str
    prompt: str


def neutral_prompt(brief: Brief, anchor: datetime, limits: PromptLimits, *, instructions: str = "") -> NeutralPrompt:
    """Build what an agent is told.

    Args:
        brief: the scenario's brief.
        anchor: the instant that relative times end at.
        limits: what the agent may use.
        instructions: the suite's own text, appended as it is: it may be the very thing under test.
    """
    system = (
        _ROLE.replace("{words}", _in_words(anchor))
        .replace("{instant}", _in_rfc3339(anchor))
        .replace("{budget}", f"at most {limits.max_tool_calls} tool calls in {limits.max_turns} turns")
        .replace("{form}", _FORMS[brief.answer])
    )
    if instructions.strip():
        system += f"\n\n{instructions.strip()}"
    return NeutralPrompt(system, brief.prompt.strip())


def told_text(brief: Brief) -> str:
    """Return all that an agent is told, whatever its limits: what earns nothing when it is given back."""
    return "\n\n".join(
        neutral_prompt(brief, datetime(2000, 1, 1, tzinfo=UTC), PromptLimits(max_turns=1, max_tool_calls=1))
    )


def _in_words(anchor: datetime) -> str:
    """``Monday, 30 November 2026, 12:00:00 UTC``; independent of the process's locale."""
    instant = anchor.astimezone(UTC)
    date = f"{_DAYS[instant.weekday()]}, {instant.day} {_MONTHS[instant.month - 1]} {instant.year}"
    return f"{date}, {instant:%H:%M:%S} UTC"


def _in_rfc3339(anchor: datetime) -> str:
    return anchor.astimezone(UTC).isoformat().replace("+00:00", "Z")
