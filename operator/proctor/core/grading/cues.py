"""Words that tell whether a clause asserts, denies, doubts or only considers what it says.

All are RE2 patterns on lower-case text of one clause. They are listed, not derived, so that each can be read, argued
about, and tested; `tests/unit/grading` holds the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

import re2

_SET_MEMORY = 64 << 20
"""Bytes for a set's automaton: the default of 8 MiB is meant for one pattern, these hold a hundred."""


class Cue(StrEnum):
    """What a clause's words do to what it says."""

    DENIES = "denies"  # this is not so, whatever else the clause says
    WELL = "well"  # its subject is well, and so is no cause
    NEGATES = "negates"  # some negation: its object may be anything
    FAILS = "fails"  # the negation of a failing system: "could not connect" asserts a failure
    AFFIRMS = "affirms"  # a negation of a denial: "no coincidence"
    SWEEPS = "sweeps"  # "everything else is ruled out, including …": what is included is denied after all
    OPEN = "open"  # "can't be ruled out"
    LIMITS = "limits"  # says how far it reaches, which is not as far as the report
    DISMISSES = "dismisses"  # says that it matters little: enough to rule a suspect out, not to deny a cause
    DOUBTS = "doubts"  # may, might, could be
    CONSIDERS = "considers"  # whether, if, should be checked: no statement at all
    PROPOSES = "proposes"  # recommends something: no statement either, but it wants it
    REFUSES = "refuses"  # says that the cause isn't known
    CLAIMS = "claims"  # talks of the cause


_CAUSE = r"(?:root[- ]?cause|cause|culprit|reason|trigger|explanation|source|problem|issue|fault|origin)s?"

_ADVERBS = (
    r"really |actually |in fact |therefore |likely |directly |at all |itself |themselves |to be |even |in any way |"
    r"seem to |appear to |necessarily |probably |being |been |be "
)

_CUES: dict[Cue, tuple[str, ...]] = {
    Cue.DENIES: (
        r"^(?:and |but |or |it's |its |is |so |just |certainly |definitely |clearly )*(?:not|neither|nor|never)\b",
        (
            r"^(?:and |but )?(?:rather than|instead of|as opposed to|opposed to|contrary to|unlike|other than|"
            r"regardless of|despite)\b"
        ),
        r"(?:\bnot|n't|\bnever) (?:"
        + _ADVERBS
        + (
            r")*(?:the|an?|our|its|their|any|related|caused?|causing|causal(?:ly)?|due|because|from|by|"
            r"to blame|responsible|involved|relevant|contribut\w+|part|linked|tied|associated|correlat\w+|"
            r"connected (?:to|with)|behind|at fault|explain\w*|affect\w*|impact\w*|involving|touch\w*|"
            r"trigger\w*|drive|driving|matter\w*|appear\w*|occur\w*|show up|contain\w*|"
            r"coincid\w+|overlap\w*|intersect\w*|point\w* (?:to|at)|(?:stem\w*|com(?:e|ing)|originat\w+) from|"
            r"match\w*|line up|attribut\w+|blam\w+|suspect\w*|confuse\w*|share\w*|belong\w*|"
            r"what|why|where|how|broken|failing|failed|fail|slow\w*|down|at play|in play|implicated|"
            r"in the (?:failing|failed|affected|same|path))\b"
        ),
        r"\b(?:is|was|are|were)(?: not|n't) \w+[-.]\w[\w.-]*",
        r"\b"
        + _CAUSE
        + (
            r"(?:'s| is| was| isn't| wasn't| are| were| aren't| lies)?(?: therefore| also| clearly| certainly|"
            r" definitely)? (?:not|never|neither)\b"
        ),
        _CAUSE + r" (?:isn't|wasn't|aren't|weren't)\b",
        r"^(?:it|this|that|these|those|they|which) (?:(?:is|was|are|were) not|isn't|wasn't|aren't|weren't)\b",
        (
            r"(?:can't|can not|cannot|could not|couldn't) (?:possibly |therefore )?(?:be (?:the|an?|to blame|"
            r"responsible|causing|behind|blamed|it|why|related|involved|(?:attributed|explained|traced|linked|"
            r"tied) )|explain|account|have (?:caused|been|"
            r"led|produced|broken)|cause|produce|break|affect)\b"
        ),
        (
            r"\b(?:no|zero|little|any) (?:\w+ )?(?:evidence|signs?|indications?|links?|relation\w*|correlat\w+|"
            r"overlap|impact|effect|bearing|role|part|involvement|causal\w*|hints?|proof|trace ids?|shared traces?|"
            r"connection (?:to|with|between) (?:the )?(?:checkout|fail|incident|error|order|report|"
            r"customer)\w*)\b"
        ),
        r"\bno (?:\w+ ){0,2}(?:timeouts?|errors?|failures?|problems?|issues?|anomal\w+|checkouts?|traces?|requests?)\b",
        r"\bnothing to do with\b|\bnone of (?:these|them|those|which|the)\b|\bneither\b|\bnor\b",
        r"\brul(?:e|ed|es|ing) (?:[\w'-]+ ){0,5}out\b",
        (
            r"\bexclud\w+|\bdismiss\w*|\bdiscount(?:ed)? (?:as|the|this|that|it|them)\b|\beliminat(?:ed|ing|"
            r"e)\b|\bcleared\b|\bexonerat\w+"
        ),
        (
            r"\bunrelated\b|\bnon-?related\b|\birrelevant\b|\bred[- ]herrings?\b|\bdecoys?\b|\bdistract\w+|"
            r"\bcoinciden(?:ce|ces|tal|tally)\b|\bindependent(?:ly)? (?:of|from)\b|\binnocent\b|"
            r"\bfalse (?:lead|trail|alarm)s?\b|\bbystanders?\b|\bunconnected\b|\buninvolved\b|\bunlikely\b"
        ),
        (
            r"\b(?:rather than|instead of|as opposed to|other than|differs? from|distinct from|"
            r"separate (?:from|to|issue|problem|incident|matter))\b"
        ),
        (
            r"\b(?:different|another) (?:causes?|reasons?|problem|issue|incident|path|matter|story)\b|"
            r"\bred flag that leads nowhere\b"
        ),
        r": (?:no|none|false)(?: ?$| ?[,.;)(-])|: not\b|\?:? (?:no|false|none|not)\b",
        (
            r"\bat no (?:time|point)\b|\b(?:claim|idea|theory|hypothesis|notion|suspicion|"
            r"assumption)\b.*\b(?:wrong|false|untrue|incorrect|unfounded|rejected|refuted)\b|"
            r"^no[.,!]*$|\b(?:it's|it is|is) (?:\w+ )?(?:false|untrue|wrong|incorrect) that\b|"
            r"\b(?:nobody|no one|nothing) (?:\w+ )?(?:observ|saw|notic|report|found|suggest|indicat|show|point|"
            r"link)\w*|"
            r"\b(?:found|saw|see|there (?:is|are|was|were)) (?:none|nothing)\b|\bdisprov\w+|\brefut\w+|"
            r"\bdead[- ]ends?\b|\baccount\w* for (?:none|nothing|zero)\b|\bblind alleys?\b|\bnon-?issues?\b|"
            r"\bdiscard(?:ed)?\b|\bn[ãa]o (?:é|são|tem|têm|"
            r"está\w*)\b"
        ),
        r"\bnon-?caus\w+|\bnot-?caus\w+|\bno caus\w+",
        (
            r"\bnicht (?:die|der|das|verantwortlich|schuld)\b|\bkein\w* (?:ursache|grund|zusammenhang)\b|"
            r"\b(?:n'est|ne sont|n'a|n'ont) (?:pas|rien)\b|\bn'est pour rien\b|\bno (?:es|son|está|están) \w+|无关|不是"
        ),
    ),
    Cue.WELL: (r"\bhealthy\b|\bunaffected\b|\bworks? (?:fine|normally)\b",),
    Cue.NEGATES: (
        r"\bnot\b|n't\b|\bnever\b|\bno\b|\bwithout\b|\bnothing\b|\bnone\b|\bcannot\b|\bnobody\b|\bnicht\b|\bpas\b",
    ),
    Cue.FAILS: (
        (
            r"(?:\bnot|n't|\bnever|\bcannot|\bno longer|\bunable to|\bnicht) (?:[\w-]+ ){0,2}(?:connect|reach|"
            r"respon|answer|accept|establish|open|complet|record|finish|return|succe|resolv|get|obtain|acquir|"
            r"contact|talk|writ|stor|sav|load|read|able|availab|erreich|listen|up\b|work|recover|send|deliver|"
            r"fetch|serv|sign|log|pay|load|trust|process|verif|validat|render|decod|pars|deseriali|be (?:reach|"
            r"establish|open|record|complet|contact|sen|serv|load|deliver|decod|pars|read))\w*"
        ),
        (
            r"\bno (?:answer|response|reply|longer|route|(?:new |tcp |database |db )?connections? (?:could|"
            r"can|was|were|to the (?:database|db)|to p)|reachable|available|doubt|question|deploy\w*)\b"
        ),
        (
            r"\bnot (?:just|only|merely|simply|surpris\w+|all|every|yet|once|until|before|deployed|"
            r"retried|persisted|committed|processed|charged|placed|recorded)\b|"
            r"(?:\bnot|n't) (?:yet |already )?(?:cached|in (?:the |its |their )?cache)\b"
        ),
        (
            r"\bnot reachable\b|\bcould not be\b|\bcouldn't be\b|\bcan(?:no|')t be (?:reach|open|establish|"
            r"contact)\w*|\bwithout (?:an? )?(?:answer|response|reply|doubt|question|success)\b|"
            r"\bnever (?:came|returned|arrived|connected|answered)\b|\b(?:nothing|nobody) (?:answer|respon|listen)\w*|"
            r"(?:n't|not) check ?out\b"
        ),
        (
            r"\b(?:no|without (?:an?|any)) (?:[\w-]+ ){0,3}ind(?:ex|exes|ices)\b|(?:\bnot|n't) (?:\w+ )?indexed\b|"
            r"(?:\bnot|n't|\bcannot|\bno longer) (?:have|use|using|find|exist)\w* (?:[\w-]+ ){0,3}index\b"
        ),
        (
            r"(?:\bnot|n't|\bnever|\bcannot|\bno longer|\bwithout) (?:[\w-]+ ){0,2}(?:free[ds]?|freeing|reclaim\w*|"
            r"given back|giving back|evict\w*|shrink\w*|(?:come|coming|go|going) (?:back )?down)\b"
        ),
    ),
    Cue.AFFIRMS: (
        (
            r"\b(?:not|n't|no|never|hardly|far from) (?:an? |the )?(?:unrelated|irrelevant|coincidence|"
            r"coincidental|red herring|noise|innocent|independent|decoy|unlikely|unconnected|separate)\b"
        ),
        r"\bno (?:doubt|question)\b|\bwithout (?:a )?(?:doubt|question)\b",
        r"\b(?:all|everything) (?:the )?(?:else|others?|rest)\b.*\b(?:ruled out|excluded|eliminated|cleared)\b",
        r"\bnot only\b|\bnot just\b|\bnot merely\b",
    ),
    Cue.SWEEPS: (r"\b(?:ruled out|excluded|eliminated|cleared)\b.*\bincluding\b",),
    Cue.OPEN: (
        (
            r"(?:\bnot|n't|\bnever|\bcannot|\bunable to|\bhard to|\bdifficult to) (?:be |been |entirely |"
            r"fully |completely |yet |yet be )*(?:rul(?:e|ed|es|ing) (?:[\w'-]+ ){0,5}out|exclud\w+|"
            r"dismiss\w*|eliminat\w+|discount\w*)\b"
        ),
    ),
    Cue.DISMISSES: (
        (
            r"\bnois[ey]\w*|\bbackground\b|\bbaseline\b|\bpre-?exist\w+|\bpredat\w+|\bpreced\w+|\bearlier\b|"
            r"\blong before\b|\bbefore (?:the|any|this)\b|\boutside (?:of )?(?:the|that|this)\b|\bended\b|"
            r"\bover by\b|\bstopped\b|\bresolved\b"
        ),
        (
            r"\bexpected\b|\broutine\b|\bordinary\b|\bregular\b|\bnormal\w*|\busual\b|\bconstant\w*|\bsteady\b|"
            r"\bsteadily\b|\b(?:all|whole|entire|full) hour\b|\bthroughout\b|\bevenly\b|\bspread\b"
        ),
        (
            r"\bbenign\b|\bharmless\b|\bsucceed\w*|\bsuccessful\w*|\bstill (?:ok|return|complet|work)\w*|"
            r"\bbut (?:ok|fine)\b|\b(?:user|customer|issuer|business)-?(?: |level|side)|\bbusiness\b|"
            r"\blegitimate\b|\bby design\b"
        ),
        (
            r"\bonly (?:affect|touch|hit|concern|impact|involv)\w*|\basynchronous\w*|\bstatic (?:assets?|"
            r"content|files)\b|\bisolated\b|\bunchanged\b|\bflat\b|\bside[- ]issue\b|\bsecondary\b|\bminor\b|"
            r"\bseparate\w*|\bignor\w+|\bset aside\b|\bindependent\w*|\btoo (?:early|late|old)\b|"
            r"\b(?:other|different) traces\b|\b(?:off|outside|not on|not in) (?:of )?the (?:\w+ )?(?:path|"
            r"flow)\b|\bown trouble\b|\bin time only\b|\bolder\b|\ball the time\b|\balways\b"
        ),
    ),
    Cue.LIMITS: (
        (
            r"\bonly (?:affect|touch|hit|concern|impact|involv|delay|break|degrad)\w*|\bafter (?:the |"
            r"a )?(?:successful )?check-?out\b|\basynchronous\w*|\bafterwards\b|\bdownstream of\b"
        ),
    ),
    Cue.DOUBTS: (
        (
            r"\b(?:might|may|maybe|perhaps|possibly|potentially|conceivabl[ye]|possible|potential|"
            r"plausibl[ye]|unclear|unsure|inconclusive|undetermined|speculat\w+|hypothe\w+|a guess|my guess|"
            r"guessing)\b"
        ),
        r"\b(?:it|this|that|these|they|which|who|"
        + _CAUSE
        + (
            r"|[a-z]+-[a-z0-9-]+|cdn|gateway|database|db) could (?:also |well |still |just |even |easily |"
            r"equally )*(?:be|have|explain|cause|stem|come|point|indicate|contribute|result)\b"
        ),
        (
            r"\bcould (?:also |well |still |just |even |easily |equally )*(?:be (?:the|an?|due|caused|because|"
            r"from|related|behind|to blame|responsible|one|either|any|several)|have (?:caused|been|led|"
            r"contributed|triggered)|explain|contribut\w+|stem|be contribut\w+)\b"
        ),
        (
            r"\b(?:not|n't) (?:entirely |fully |completely |at all )?(?:sure|certain|clear|known|confirmed|"
            r"proven)\b|\beither\b.*\bor\b|\bany of\b|\bone of (?:these|the following|them|several)\b|"
            r"\bhard to say\b|\bdifficult to say\b"
        ),
        (
            r"\b(?:equally|just as) (?:likely|possible|plausible)\b|\b(?:candidates?|suspects|theor(?:y|ies)|"
            r"possibilit(?:y|ies)|options?)\b"
        ),
    ),
    Cue.CONSIDERS: (
        r"\?['\")]*$|\bwhether\b|(?:^|,| )if (?:the|it|this|that|so|there|we|you|an?|payments?|checkout|any)\b",
        r"\bwould (?:then )?(?:appear|show|see|expect|mean|have|be|need|occur|fail|time)\b",
        r"\b(?:one|we|you|i) would (?:\w+ )?(?:look|check|inspect|examin|verif|investigat|start|quer|need)\w*",
        r"\bunless\b|\bassuming\b|\bsuppos(?:e|ing)\b|\bimagine\b",
        (
            r"\bshould (?:be |also |probably |then |next |now )*(?:check|verif|investigat|look|confirm|ensure|"
            r"rul|examin|inspect|query|review|monitor)\w*|\bneeds? to (?:be )?(?:check|verif|investigat|"
            r"confirm|look|examin)\w*|\bto be (?:checked|verified|confirmed|investigated)\b"
        ),
        (
            r"\bnext steps?\b|\bi(?:'d| would|'ll| will) (?:check|look|investigate|verify|query|start|begin|"
            r"next|now|need|first)\b|\blet(?:'s| me| us)\b|\bworth (?:a look|checking|looking|investigating|"
            r"verifying)\b|\btodo\b|\bplan(?:ned|s)? to\b|\bgoing to (?:check|look|query)\b"
        ),
        (
            r"\b(?:i|we) (?:first |initially |at first |had )?(?:suspected|thought|assumed)\b|"
            r"\b(?:was|were|been) (?:first |initially |at first )?(?:suspected|thought|assumed|believed)\b|"
            r"\b(?:first|initially|at first)\b.*\b(?:thought|suspected|looked like|seemed|assumed|"
            r"appeared (?:to|as|like))\b|"
            r"\btempting\b|\bit (?:would be|is) easy to\b|\bone (?:might|could|may) (?:think|blame|assume|"
            r"suspect)\b|\b(?:looks?|looked|seems?|seemed|appears?|appeared) (?:like|to be) (?:the|"
            r"a) (?:\w+ )?"
        )
        + _CAUSE
        + r" at first\b|\bat first (?:glance|sight|look)\b",
        # The agent's own tools and queries, which are no part of what it was asked about.
        (
            r"\b(?:my|our) (?:\w+ ){0,2}(?:quer(?:y|ies)|tools?|tool calls?|"
            r"sessions?)\b(?: [\w-]+){0,5} (?:timed|times|"
            r"timing|fail\w*|error\w*|did not|didn't|could not|couldn't|kept)\b|"
            r"\btools?\b(?: [\w-]+){0,3} (?:fail\w*|error\w*|timed|"
            r"times|timing|"
            r"returned an error|returns an error)\b"
        ),
        (
            r"(?:\bunable to|\bfailed to|n't|\bcannot|\bcould not|\bcan not) (?:run |execute |finish |complete )*"
            r"(?:quer\w+|(?:the|my|this) (?:investigation|analysis|quer\w+))|"
            r"\b(?:connect|reach)\w* (?:to )?(?:the )?(?:clickhouse|mcp|sql)\b|"
            r"\bi (?:was|am|have been) (?:given|provided)\b|\bi (?:could not|couldn't|can't|cannot|"
            r"was unable to|failed to) (?:connect|reach|access|query|open)\b"
        ),
    ),
    Cue.REFUSES: (
        (
            r"(?:can't|can not|cannot|could not|couldn't|unable to|not able to|impossible to|not possible to|"
            r"don't|do not|did not|didn't|failed to|won't|will not|wasn't able to|"
            r"was not able to) (?:[\w-]+ ){0,3}(?:determin\w+|identif\w+|find|say|tell|conclu\w+|establish|"
            r"pinpoint|know|diagnos\w+|locate|work out|figure out|name|isolate|explain|give|provide|attribute|"
            r"commit)\b.*\b(?:cause|culprit|reason|why|what|which|who|answer|fault|conclusion|service|"
            r"definitive\w*|certainty|source|happened)\b"
        ),
        (
            r"\b(?:can't|cannot|can not|unable to|not able to|won't|will not|refuse to|"
            r"decline to) (?:[\w-]+ ){0,2}(?:help|assist|answer|comply|say|investigate|do (?:that|this))\b"
        ),
        (
            r"\b(?:n't|not|cannot|unable to) (?:finish|complete) (?:the|my|this) (?:investigation|analysis)\b|"
            r"\bno (?:clear |definitive |single |obvious |firm |certain |known )*(?:root[- ]?cause|cause|"
            r"culprit|conclusion|finding|answer)s?\b|\binconclusive\b|\bundetermined\b|\b(?:insufficient|"
            r"not enough|too little) (?:data|evidence|information|telemetry|context)\b|\b(?:root[- ]?cause|"
            r"cause|culprit|reason)s? (?:is|are|was|remains?|stays?)(?: still| currently)? (?:unknown|unclear|"
            r"undetermined|open|not (?:known|clear))\b"
        ),
    ),
    Cue.CLAIMS: (r"\b" + _CAUSE + r"\b|\bcaused by\b|\bdue to\b|\bbecause\b|\bto blame\b|\bresponsible\b",),
}


class PatternSet:
    """Many patterns tried at once, each under a label, in time linear in the text.

    Args:
        labelled: pairs of label and pattern; a label may stand for many.
    """

    def __init__(self, labelled: Iterable[tuple[str, str]]) -> None:
        options = re2.Options()
        options.max_mem = _SET_MEMORY
        options.case_sensitive = False
        self._set = re2.Set.SearchSet(options)
        self._labels: list[str] = []
        for label, pattern in labelled:
            self._set.Add(pattern)
            self._labels.append(label)
        if self._labels:
            self._set.Compile()

    def find(self, text: str) -> frozenset[str]:
        """Return the labels of all patterns that match somewhere in the text."""
        if not self._labels:
            return frozenset()
        return frozenset(self._labels[index] for index in self._set.Match(text) or ())


_CUE_SET = PatternSet((cue, pattern) for cue, patterns in _CUES.items() for pattern in patterns)


@lru_cache(maxsize=256)
def find_cues(text: str) -> frozenset[str]:
    """Return the cues in a clause."""
    return _CUE_SET.find(text)
