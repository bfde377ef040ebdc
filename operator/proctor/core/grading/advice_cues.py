"""Words that advise: what goes, what stays, what only hedges. All are RE2 patterns on lower-case text."""

from __future__ import annotations

import re2

_CUTTING = (
    r"(?:drop(?:s|ped|ping)?|throttl\w+|(?:down-?)?sampl(?:e|es|ed|ing)|rate-?limit\w*|suppress\w*|silenc\w+|"
    r"filter\w*|discard\w*|remov\w+|exclud\w+|eliminat\w+|demot\w+|cut(?:s|ting)?|trim\w*|thin(?:ned|ning)?|"
    r"mut(?:e|ed|ing)|disabl\w+|delet\w+|strip\w*|turn(?:ed|ing)? off|switch(?:ed|ing)? off|get(?:ting)? rid|"
    r"blanket[- ]\w+|aggregat\w+|dedup\w*|collaps\w+|roll(?:ed|ing)? up|convert\w*|"
    r"throw(?:n|ing)? (?:away|out))"
)
_HARMING = rf"(?:{_CUTTING}|los(?:e|ing)|touch\w*)"
_STORING = (
    r"(?:keep(?:ing)?|kept|stor(?:e|ed|ing)|log(?:ged|ging)?|ship(?:ped|ping)?|retain\w*|emit\w*|ingest\w*|"
    r"index(?:ed|ing)?|send(?:ing)?|sent|writ(?:e|ing|ten))"
)
_FILL = (
    r"(?:be |being |ever |simply |just |also |get |blindly |to |you |we |in any way |safe to |safely |entirely |all )*"
)

_SPARED = (
    (
        r"\b(?:do not|don't|does not|did not|never|not|must not|mustn't|should not|shouldn't|cannot|can't|can not|"
        r"without|avoid|nor|won't|will not|would not|wouldn't|rather than|instead of|tempting to|wrong to|mistake to|"
        rf"dangerous to|unsafe to|risky to|careful not to|before) {_FILL}{_HARMING}\b"
    ),
    (
        rf"\b{_CUTTING}\b(?: [\w'/-]+){{1,12}}? would (?:also |then )?(?:lose|hide|blind|destroy|break|take|throw|"
        r"remove|discard|kill|erase|wipe|cost|drop|delete|be (?:wrong|a mistake|unsafe|dangerous))\w*"
    ),
    r"(?:\bnot|n't|\bnever|\bno|\bavoid|\bagainst)(?: [\w'-]+){0,4} blanket(?: [\w'-]+){0,6}",
    r"\b(?:is|are|was|were) (?:not|no) (?:noise|chatter|redundant|waste)",
    r"\b(?:isn't|aren't) (?:noise|chatter|redundant)",
    rf"\b{_CUTTING}\b(?: [\w',/-]+){{1,12}}? (?:is|are) (?:out of the question|not an option|wrong|unsafe|dangerous)",
    r"\b(?:must|may) not go\b",
)
"""Told not to cut, or what would be lost."""

_THINNED = (
    (
        r"\b(?:keep|keeping|retain|retaining|store|storing|leave|leaving|kept) (?:only |just |about |roughly |at most |"
        r"perhaps )*(?:a |an |the )?(?:\d{1,2}(?:[.,]\d+)? ?(?:%|per ?cent)|(?:1|one) (?:in|per|of|out|line)|"
        r"1 ?[/:] ?\d|first |sample|few|small|fraction|tenth)"
    ),
    (
        r"\b(?:no need to|needn't|not worth|needs? not|need not|no reason to|no point in|do not|don't|"
        rf"stop|stops|stopped|stopping|no longer|never|not) (?:be )?{_STORING}\b"
    ),
    rf"(?:n't|\bnot) need to be {_STORING}\b",
    r"\bmust go\b|\b(?:can|could|should|may) (?:safely )?go\b|\bnot (?:needed|useful|valuable|worth)\b",
)
"""Kept only in part, or not at all."""

_KEPT = (
    (
        r"\b(?:keep|keeps|keeping|kept|retain\w*|preserv\w+|stays?|staying|remain\w*|untouched|off[- ]limits|exempt\w*|"
        r"protect\w*|must[- ]keep\w*|leave|leaving|left (?:alone|as|in|untouched|intact)|indispensable|essential|"
        r"irreplaceable|stored? in full|whitelist\w*|allow-?list\w*|needed|required|valuable)\b"
    ),
)

_CUT = (
    rf"\b(?:can be |may be |could be |should be |to be )?{_CUTTING}\b",
    (
        r"\b(?:noise|noisy|chatter|low[- ]value|worthless|useless|spam\w*|redundant|waste\w*|droppable|valueless|"
        r"no (?:information|value))\b"
    ),
    (
        r"\b(?:as|into|to|with|by|become|becomes|emit|expose|record) (?:a |an |one |proper |real |plain |otel |the |"
        r"prometheus )*(?:gauge|counter|metric)s?\b"
    ),
    r"\b(?:reduc|rais|lower|limit|chang|set)\w*(?: [\w-]+){1,4} to (?:warn|error|info)\w*",
    r"-> (?:a |an |one )?(?:gauge|counter|metric)s?\b",
    r"\b(?:raise|raising|set|setting|change|bump\w*) (?:the )?(?:log(?:ging)? )?(?:level|threshold|severity)\b",
)

CUES = re2.compile(
    "|".join(
        f"(?P<{name}>{'|'.join(patterns)})"
        for name, patterns in (("spared", _SPARED), ("thinned", _THINNED), ("kept", _KEPT), ("cut", _CUT))
    )
)
"""Words of advice; the groups `spared` and `kept` keep, the others cut."""

NEUTRAL = re2.compile(
    r"\b(?:sample|example) (?:message|bod(?:y|ie)|line|log|record|text|row|event)s?\b:?|\bsample:|"
    r"\bsampled? (?:from|over)\b|\bnoise[- ]free\b|\bdropp?ed? (?:rate|count)s?\b|"
    r"\bfilter(?:s|ed|ing)? (?:on|for|by)\b|"
    r"\bcut-?over\b|\b(?:drop|keep)s? (?:or|vs\.?|versus|and) (?:drop|keep)s?\b"
)
"""Words that only look like advice."""

HEDGES = re2.compile(
    r"\b(?:might|perhaps|maybe|possibly|unclear|unsure|hard to say|hard to tell|"
    r"(?:not|n't) (?:sure|certain|know|say|tell)|whether (?:this|these|those|it|they) (?:is|are)|either|"
    r"may be (?:noise|needed|useless|valuable|droppable))\b|\?[)'\"]*$"
)
"""Words that give no advice, whatever else they say."""
