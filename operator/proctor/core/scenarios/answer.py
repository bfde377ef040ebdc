"""The answer key: what only graders may see, and the fact queries that seeding runs for them."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from proctor.core.digests import digest_json
from proctor.core.scenarios.artifact import ArtifactKey, list_texts
from proctor.core.scenarios.document import Document, FactName, Slug
from proctor.core.scenarios.variants import load_part
from proctor.core.seeding.facts import FactSheet
from proctor.core.seeding.identity import ANSWER_FILE, WRITTEN_SEED, answer_digest

_REFERENCE = re.compile(r"<<([a-z][a-z0-9_]{0,39})>>")
_MINIMUM_SENTENCES = 6
"""For each negative check, of either kind: fewer leave its negation untested."""

_LEAST_CRITERIA = 2

Pattern = Annotated[str, StringConstraints(min_length=2, max_length=2000)]
Sentence = Annotated[str, StringConstraints(min_length=3, max_length=2000)]
Weight = Annotated[int, Field(ge=1, le=20)]


class FactType(StrEnum):
    """What a fact's query returns; it decides how an answer may write it."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    TEXT = "text"


class Fact(Document):
    """A truth that is computed from the seeded rows, never written down."""

    sql: str = Field(
        min_length=8, max_length=10_000, description="One SELECT over unqualified table names: one row, one column."
    )
    type: FactType = Field(description="What the query returns.")
    about: str = Field(default="", max_length=300, description="What the fact says, for people and for the judge.")
    within: Decimal = Field(
        default=Decimal(0),
        ge=0,
        le=Decimal("0.2"),
        description="Of a number: how far off an answer may write it, as a share. Windows and rounding differ.",
    )

    @model_validator(mode="after")
    def _only_numbers_are_near(self) -> Self:
        if self.within and self.type is FactType.TEXT:
            raise ValueError("`within` is of numbers: a text is written as it is")
        return self


class Polarity(StrEnum):
    """Whether an answer should match a criterion or must not."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Criterion(Document):
    """One line of the rubric.

    A pattern is RE2 syntax, ignores case, and may hold ``<<name>>`` of a term or a fact. It is tried on one clause of
    the answer at a time, and only on clauses that the answer asserts: what it denies, asks or merely considers never
    counts. The three kinds may stand together; any one that matches is enough.
    """

    id: Slug = Field(description="Its name in grades and reports.")
    weight: Weight = Field(description="Its share of the score.")
    polarity: Polarity = Field(description="Positive: to be met. Negative: met as long as it does not fire.")
    about: str = Field(min_length=3, max_length=300, description="What it looks for.")
    blames: list[Pattern] = Field(
        default=[], max_length=20, description="Subjects: met where the answer names one of them as the cause."
    )
    says: list[Pattern] = Field(default=[], max_length=20, description="Statements: met where a clause matches one.")
    urges: list[Pattern] = Field(
        default=[],
        max_length=20,
        description="Of a negative criterion: as `says`, and met where the answer only recommends it, or hedges it.",
    )
    together: list[list[Pattern]] = Field(
        default=[], max_length=20, description="Statements in parts: met where one sentence holds all parts of one."
    )
    dismisses: list[Pattern] = Field(
        default=[], max_length=20, description="Subjects: met where the answer rules one of them out."
    )
    cuts: list[Pattern] = Field(
        default=[], max_length=20, description="Things: met where the answer advises to drop or thin out one of them."
    )
    sweeps: list[Pattern] = Field(
        default=[],
        max_length=20,
        description="Wholes, a service's level say: as `cuts`, but not where the same sentence excepts a part.",
    )
    keeps: list[Pattern] = Field(
        default=[], max_length=20, description="Things: met where the answer advises to keep one of them."
    )
    spares: list[Pattern] = Field(
        default=[],
        max_length=20,
        description="Of `cuts` and `sweeps`: not where the same words also match one of these.",
    )
    needs: list[Slug] = Field(
        default=[], max_length=10, description="Counts only if one of these criteria is met: detail needs a finding."
    )
    unless: list[Slug] = Field(
        default=[],
        max_length=10,
        description="Of a negative criterion: silent if one of these is met. Naming half of the truth is no blame "
        "beside the whole.",
    )
    fires: list[Sentence] = Field(max_length=60, description="Sentences that it must match.")
    silent: list[Sentence] = Field(max_length=60, description="Sentences that it must not match.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        looked_for = (
            *(self.blames, self.says, self.urges, self.together, self.dismisses),
            *(self.cuts, self.sweeps, self.keeps),
        )
        if not any(looked_for):
            raise ValueError(
                "a criterion needs at least one of `blames`, `says`, `urges`, `together`, `dismisses`, `cuts`, "
                "`sweeps`, `keeps`"
            )
        if (self.unless or self.urges) and self.polarity is Polarity.POSITIVE:
            raise ValueError("only a negative criterion may have `unless` or `urges`")
        least = _MINIMUM_SENTENCES if self.polarity is Polarity.NEGATIVE else 1
        if min(len(self.fires), len(self.silent)) < least:
            raise ValueError(f"a {self.polarity} criterion needs at least {least} sentences under `fires` and `silent`")
        return self


class Band(Document):
    """Where a score must lie."""

    low: Decimal = Field(ge=0, le=1, description="The least programmatic score.")
    high: Decimal = Field(ge=0, le=1, description="The highest programmatic score.")

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_strings(cls, value: object) -> object:
        """Floats are refused: 0.1 is not a tenth."""
        if isinstance(value, dict) and any(isinstance(value.get(key), float) for key in ("low", "high")):
            raise ValueError('write numbers with a fraction as strings: "0.5"')
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError("`low` is above `high`")
        return self

    def holds(self, score: Decimal) -> bool:
        """Tell whether a score lies in it."""
        return self.low <= score <= self.high


class WholeAnswer(Band):
    """An answer with the score that careful people would give it."""

    id: Slug = Field(description="What kind of answer it is.")
    text: str = Field(max_length=65_536, description="The answer; `<<fact>>` is replaced by the fact's value.")


class JudgeCriterion(Document):
    """One line that a model judges."""

    id: Slug = Field(description="Its name in grades and reports.")
    weight: Weight = Field(description="Its share of the judge's score.")
    about: str = Field(min_length=10, max_length=2000, description="What the judge scores from 0 to 5.")
    anchors: dict[Annotated[int, Field(ge=0, le=5)], Sentence] = Field(
        default={}, max_length=6, description="What a score means here, where that is not plain; `<<fact>>` as above."
    )


class JudgeKey(Document):
    """What the judge is told beside the facts."""

    truth: str = Field(min_length=20, max_length=4000, description="What happened; `<<fact>>` as above.")
    decoys: list[Sentence] = Field(min_length=1, max_length=20, description="What misleads, and why it is not it.")
    criteria: list[JudgeCriterion] = Field(min_length=1, max_length=10, description="What is judged.")


class AnswerKey(Document):
    """All that graders know of a scenario."""

    facts: dict[FactName, Fact] = Field(max_length=60, description="Queries over the dataset, by name.")
    terms: dict[FactName, Pattern] = Field(default={}, max_length=60, description="Named parts of patterns.")
    effect: Pattern = Field(description="The reported symptom; tells what blames explain and what they don't.")
    most_blamed: Annotated[int, Field(ge=0, le=10)] = Field(
        default=1, description="With more negative criteria fired than this, the answer commits to nothing."
    )
    criteria: list[Criterion] = Field(max_length=60, description="The rubric; empty where `artifact` is.")
    artifact: ArtifactKey | None = Field(
        default=None, description="What is looked at where the answer is an artifact that is run over the dataset."
    )
    answers: list[WholeAnswer] = Field(min_length=8, max_length=60, description="Whole answers with score bands.")
    impostors: dict[Slug, Band] = Field(
        default={}, max_length=12, description="Bands of the impostors, of `loudest` and of `newest`, by policy."
    )
    judge: JudgeKey = Field(description="For the judge.")

    @model_validator(mode="after")
    def _has_one_rubric(self) -> Self:
        if len(self.criteria) < (_LEAST_CRITERIA if self.artifact is None else 0):
            raise ValueError("criteria: list should have at least 2 items")
        if self.criteria and self.artifact is not None:
            raise ValueError("criteria: leave it empty where there is `artifact`, whose checks are the rubric")
        return self

    @model_validator(mode="after")
    def _names_hold(self) -> Self:
        known = set(self.facts) | set(self.terms)
        if len(known) < len(self.facts) + len(self.terms):
            raise ValueError("a term and a fact have the same name")
        for name, text in self._patterns():
            for reference in _REFERENCE.findall(text):
                if reference not in known:
                    raise ValueError(f"{name}: there is no term or fact {reference!r}")
        ids = [criterion.id for criterion in self.criteria]
        if len(set(ids)) < len(ids):
            raise ValueError("criteria: two have the same id")
        for criterion in self.criteria:
            for field, named in (("needs", criterion.needs), ("unless", criterion.unless)):
                for other in named:
                    if other not in ids or other == criterion.id:
                        raise ValueError(f"criteria.{criterion.id}.{field}: there is no other criterion {other!r}")
        return self

    def _patterns(self) -> list[tuple[str, str]]:
        """Every text that may name a term or fact, with the name of its place."""
        texts = [(f"terms.{name}", text) for name, text in self.terms.items()] + [("effect", self.effect)]
        for line in self.criteria:
            advised = [*line.cuts, *line.sweeps, *line.keeps, *line.spares]
            parts = [part for statement in line.together for part in statement]
            grouped = [*line.blames, *line.says, *line.urges, *line.dismisses, *advised, *parts]
            texts += [(f"criteria.{line.id}", text) for text in (*grouped, *line.fires, *line.silent)]
        texts += [("artifact", text) for text in (list_texts(self.artifact) if self.artifact else ())]
        texts += [(f"answers.{answer.id}", answer.text) for answer in self.answers]
        return [*texts, ("judge.truth", self.judge.truth)]

    @property
    def facts_digest(self) -> str:
        """Digest of the fact queries: a dataset's facts are stored under it, and asked anew when it changes."""
        asked = {name: fact.model_dump(mode="json", exclude={"within"}) for name, fact in self.facts.items()}
        return digest_json(asked)

    @property
    def rubric_digest(self) -> str:
        """Digest of all that can change a grade by checks; sentences and examples can't."""
        untold = {"fires", "silent"}
        artifact = {} if self.artifact is None else {"artifact": self.artifact.model_dump(mode="json")}
        return digest_json(
            artifact
            | {
                "facts": self.facts_digest,
                "within": {name: str(fact.within) for name, fact in self.facts.items() if fact.within},
                "terms": self.terms,
                "effect": self.effect,
                "most_blamed": self.most_blamed,
                "criteria": [line.model_dump(mode="json", exclude=untold) for line in self.criteria],
            }
        )


def load_answer(folder: Path, seed: int = WRITTEN_SEED) -> AnswerKey:
    """Read the answer key of a scenario folder as a dataset seed has it.

    Raises:
        InvalidInput: there is none, or it is no answer key.
    """
    return load_part(folder, ANSWER_FILE, AnswerKey, seed)


def read_sheet(folder: Path, seed: int) -> FactSheet | None:
    """Read the fact queries of a scenario folder's answer key as a dataset seed has them; None if there is no key.

    Raises:
        InvalidInput: the key is at fault.
    """
    source = answer_digest(folder)
    if source is None:
        return None
    answer = load_answer(folder, seed)
    return FactSheet(answer.facts_digest, source, answer.facts)
