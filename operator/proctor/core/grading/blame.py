"""Sentences that name a cause: where, in a clause, the blamed thing stands.

Each template is RE2 syntax with two places: the subject (what may be blamed) and the effect (the reported symptom).
A clause is short and has one force, so its parts may be any number of words apart.
"""

from __future__ import annotations

_CAUSE = (
    r"(?:root[- ]?causes?|causes?|culprits?|reasons?|triggers?|explanations?|source of|origin of|problem|issue|fault"
    r"|perpetrator|offender|points? of failure|faulty \w+|failing (?:component|service|part|dependency)"
    r"|contribut\w+ (?:factors?|causes?)|ursache|grund|causa)"
)
_WEIGHED = (
    r"(?:the |a |an |our |one |your )?(?:actual |real |root |main |primary |true |underlying |likely |most |only |"
    r"sole |probable |key |direct |immediate |ultimate |second |additional |other |partial |contributing )*"
)
_BREAKS = (
    r"(?:caus(?:e|es|ed|ing)|trigger(?:s|ed|ing)?|broke|breaks?|breaking|led to|leads? to|leading to|"
    r"result(?:s|ed|ing)? in|explain(?:s|ed|ing)?|accounts? for|accounted for|prevent(?:s|ed|ing)?|block(?:s|ed|ing)?|"
    r"fail(?:s|ed|ing)?|kill\w*|reject\w*|contribut\w+ to|bring\w* down|takes? down|took down|took out|takes? out|"
    r"stop\w*|affect\w*|drives?|mak(?:es|ing)|made|hurt\w*|sink\w*)"
)

_IS = (
    r"(?:\b(?:is|are|was|were|being|lies?|sits?|appears?|seems?|turns? out|points?|remains|must be|be|ist|est|es)\b|"
    r"'s\b|:|=|->)"
)
_LINKS = (
    r"(?:because|on account of|as a result of|result of|consequence of|wegen|weil|à cause de|debido a|"
    r"(?:due|owing|attribut\w+|traced(?: back)?|down|point(?:s|ed|ing)?|leads? back|goes back|traces? back|thanks) to|"
    r"(?:caused|triggered|driven|explained|produced|broken|introduced|blocked|created|brought (?:down|about))"
    r"(?: \w+)? by|"
    r"(?:stem\w*|aris\w+|originat\w+|comes?|came|coming|start(?:s|ed)?|begins?|began|result(?:s|ed)?)"
    r" (?:from|in|at|with)|"
    r"blame[sd]?|blaming|at fault|responsib\w+|guilty|culprit|(?:diagnosis|verdict|conclusion|answer)(?: is| was|:))"
)
_FAILS = (
    r"(?:fail\w*|break\w*|broke\w*|reject\w*|throttl\w*|block\w*|die\w*|drop\w*|stall\w*|hang\w*|hung|stuck|"
    r"lost|unable|"
    r"cannot|can't)"
)
_IT_IS = (
    r"^(?:so |therefore |thus |clearly |in short |overall )*(?:it's|it is|it was|this is|this was|that's|that is|"
    r"looks like|seems like|i suspect|i think it's|i believe it's) "
    r"(?:most likely |probably |clearly |definitely |simply |actually |really |again |likely |all )*"
    r"(?:the |a |an )?(?:[\w-]+ ){0,4}?"
)
_GUILTY = (
    r"(?:(?:root[- ]?causes?|causes?|culprits?|reasons?|triggers?|sources?|problem|issue|explanation|factor|"
    r"points? of failure|weak (?:spot|link|point))\b|"
    r"to blame|responsible|at fault|why\b|behind\b|what (?:broke|breaks|is breaking|caused|causes|fails)\b)"
)
_TAKES_PART = r"(?:contribut\w+|(?:plays?|played|has|have|had) (?:a|some|its) (?:\w+ )?(?:part|role|share))"

_TEMPLATES = (
    # The cause is SUBJECT.
    rf"(?:\b{_CAUSE}\b|原因).*{_IS}.*<subject>",
    rf"\b{_LINKS}.*<subject>",
    rf"{_IT_IS}<subject>",
    rf"^(?:but |so |and )?what (?:[\w']+ )?(?:fail|broke|break|caus|sank|kill|block)\w*\b.*{_IS}.*<subject>",
    # SUBJECT is the cause.
    rf"<subject>.*\b(?:is|are|was|were|as|being|remains?|be|becomes?|am)\b {_WEIGHED}{_GUILTY}",
    r"<subject>(?:\W+\w+){0,3}\W+(?:root[- ]cause|culprit|to blame)\b",
    rf"<subject>.*\b{_BREAKS}\b.*<effect>",
    r"<subject>.*\b(?:deserv\w+|bears?|carr(?:y|ies)|takes?|gets?)\b.*\b(?:blame|responsib\w+|fault)\b",
    rf"<subject>.*\b{_TAKES_PART}\b",
    # EFFECT fails at SUBJECT.
    rf"<effect>.*\b{_FAILS}\b.*\b(?:at|in|by|when|because|behind|through|calling)\b.*<subject>",
    r"<effect>(?: [\w-]+){0,4} (?:is|are|was|were|being|got|get|getting|been)(?: \w+){0,2} <subject>",
)

_EXPLAINED = (
    # The subject is what gets explained: "the CDN's 502s are due to its origin".
    r"<subject>.*\b(?:(?:caused|explained) by|(?:due|attributed) to|because|(?:stem\w*|results?|comes?) (?:of|from))\b",
    rf"\b{_CAUSE}\b (?:of|for|behind) (?:the |those |these |all )?(?:[\w-]+ ){{0,3}}<subject>",
)

_ALONGSIDE = (
    r"\b(?:same (?:window|time|\w+ minutes|minutes|period|interval)|alongside|in parallel|concurrent\w*|"
    r"simultaneous\w*|at the time|coincid\w+|overlap\w*|besides|meanwhile|in addition|"
    r"also (?:saw|seen|found|observed|noticed))\b"
)


def build_blames(subject: str, effect: str) -> list[str]:
    """Return the patterns of clauses that blame a subject for the effect."""
    return [_fill(template, subject, effect) for template in _TEMPLATES]


def build_explained(subject: str, effect: str) -> list[str]:
    """Return the patterns of clauses that explain the subject itself, and so do not blame it."""
    return [_fill(template, subject, effect) for template in _EXPLAINED]


def build_alongside() -> str:
    """Return the pattern of clauses that only say what else was there at that time."""
    return _ALONGSIDE


def _fill(template: str, subject: str, effect: str) -> str:
    return template.replace("<subject>", f"(?:{subject})").replace("<effect>", f"(?:{effect})")
