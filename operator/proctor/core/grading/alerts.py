"""What alert rules earn: they are run over the dataset, and whom they would have woken is compared with incidents.

Nothing here asks a database: series are handed in, and the same series earn the same marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import assert_never

from proctor.core.grading.alert_firings import Stretch, find_firings
from proctor.core.grading.alert_rules import RulesSubmission, Selector, Series, read_series
from proctor.core.grading.artifact_answer import SpoiltTrial, mark_check, read_json
from proctor.core.grading.marks import Mark
from proctor.core.grading.rows import Fetched, FetchedRows, Question, Refused
from proctor.core.scenarios.artifact import AlertCheck, AlertsKey, Detects, Lists, Precise
from proctor.errors import InvalidInput

REPEAT = 4 * 60
"""Minutes after which a rule that still fires wakes somebody again; the usual repeat interval of alert managers."""

HALF = Fraction(1, 2)
"""People stop looking at a pager that is mostly wrong; and one that sleeps through most incidents is not precise."""


@dataclass(frozen=True, slots=True)
class Window:
    """An incident, or planned work, as the dataset's record has it."""

    id: str
    during: Stretch


@dataclass(frozen=True, slots=True)
class Tally:
    """What rules did.

    Attributes:
        delays: by incident that was found, minutes from its begin to the first rule that began to fire.
        incidents: how many incidents there were.
        false: how often somebody was woken for nothing.
        worst: the rule that did so most; empty if none did.
    """

    delays: Mapping[str, int]
    incidents: int
    false: int
    worst: str

    @property
    def precision(self) -> Fraction:
        """The share of incidents in all that people were woken for; how often for one of them does not count."""
        return Fraction(len(self.delays), max(1, len(self.delays) + self.false))

    @property
    def recall(self) -> Fraction:
        """The share of incidents that were found."""
        return Fraction(len(self.delays), self.incidents)


def read_alerts(key: AlertsKey, answer: bytes) -> AlertsTrial | SpoiltTrial:
    """Read an answer that should be rules; whatever is in it, this does not raise."""
    submission = read_json(RulesSubmission, answer, "rules")
    if isinstance(submission, Refused):
        return SpoiltTrial(key.checks, submission.reason)
    return AlertsTrial(key, submission)


class AlertsTrial:
    """Rules, tried by one answer key.

    Args:
        key: what is looked at, with facts filled in.
        submission: the answer.
    """

    references: Sequence[Question] = ()

    def __init__(self, key: AlertsKey, submission: RulesSubmission) -> None:
        self._key = key
        self._submission = submission
        self._asked = {rule.selector: Question(rule.selector.query) for rule in submission.rules}

    @property
    def questions(self) -> Sequence[Question]:
        """What each rule watches; rules that watch the same ask once."""
        return list(self._asked.values())

    def mark(self, fetched: FetchedRows) -> tuple[Mark, ...]:
        """Return what the rules earn.

        Raises:
            InvalidInput: what the key says of incidents are no times.
        """
        series = {selector: _read_fetched(fetched[question]) for selector, question in self._asked.items()}
        incidents = [Window(one.id, _read_stretch(one.start, one.until)) for one in self._key.incidents]
        planned = [_read_stretch(one.start, one.until) for one in self._key.planned]
        tally = tally_rules(self._submission, series, incidents, planned, grace=self._key.grace)
        found = ((check, _try(check, self._submission, tally)) for check in self._key.checks)
        return tuple(mark_check(check, met=met, why=why) for check, (met, why) in found)


def _read_fetched(fetched: Fetched) -> Series | None:
    """Read a series; one that can't be had is one that shows nothing."""
    return None if isinstance(fetched, Refused) else read_series(str(fetched.rows[0][0]))


def _read_stretch(start: str, until: str) -> Stretch:
    ends = []
    for text in (start, until):
        try:
            ends.append(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60)
        except ValueError as error:
            raise InvalidInput(f"{text!r} is no instant: let the fact return it as 2026-11-30 12:00:00") from error
    if ends[1] <= ends[0]:
        raise InvalidInput(f"from {start} until {until}: the stretch is empty")
    return Stretch(*ends)


def tally_rules(
    submission: RulesSubmission,
    series: Mapping[Selector, Series | None],
    incidents: Sequence[Window],
    planned: Sequence[Stretch],
    *,
    grace: int,
) -> Tally:
    """Run rules, and count what they found and whom they woke for nothing.

    Args:
        submission: the rules; of several that say the same, one counts.
        series: what each selector watches; None where there is nothing.
        incidents: what they should find.
        planned: when planned work goes on.
        grace: minutes after an incident in which beginning to fire is neither right nor wrong.
    """
    delays: dict[str, int] = {}
    false: dict[str, int] = {}
    alike = {rule.model_copy(update={"name": "x"}).model_dump_json(): rule for rule in submission.rules}
    for rule in alike.values():
        watched = series[rule.selector]
        for firing in find_firings(rule, watched, planned) if watched else ():
            found = [one for one in incidents if one.during.holds(firing.start)]
            for one in found:
                delay = firing.start - one.during.start
                delays[one.id] = min(delay, delays.get(one.id, delay))
            woken = count_false(firing, incidents, grace=grace)
            false[rule.name] = false.get(rule.name, 0) + woken
    worst = max(false, key=lambda name: false[name], default="")
    total = sum(false.values())
    return Tally(delays, len(incidents), total, worst if total else "")


def count_false(firing: Stretch, incidents: Sequence[Window], *, grace: int) -> int:
    """Return how often a firing woke somebody when there was no incident: at its begin, and every four hours."""
    return sum(
        not any(one.during.holds(minute, after=grace) for one in incidents)
        for minute in range(firing.start, firing.until, REPEAT)
    )


def _try(check: AlertCheck, submission: RulesSubmission, tally: Tally) -> tuple[bool, str]:
    match check:
        case Detects():
            return _detect(check, tally)
        case Precise():
            return _measure(check, tally)
        case Lists():
            return _compare(check, submission)
    assert_never(check)


def _detect(check: Detects, tally: Tally) -> tuple[bool, str]:
    if tally.precision < HALF:
        return False, f"nobody would look: {_describe(tally)}"
    delay = tally.delays.get(check.incident)
    if delay is None:
        return False, "no rule begins to fire while it lasts"
    met = check.within is None or delay <= check.within
    return met, f"a rule fires {delay} minutes after it began"


def _measure(check: Precise, tally: Tally) -> tuple[bool, str]:
    if tally.recall < HALF:
        return False, f"only {len(tally.delays)} of {tally.incidents} incidents are found"
    return tally.precision >= check.least, _describe(tally)


def _describe(tally: Tally) -> str:
    most = f", most of all by {tally.worst[:80]!r}" if tally.worst else ""
    return f"{len(tally.delays)} incidents found, people woken {tally.false} times for nothing{most}"


def _compare(check: Lists, submission: RulesSubmission) -> tuple[bool, str]:
    wanted = {name.strip() for name in check.holds.split(",")}
    named = {name.strip() for name in getattr(submission, check.names)}
    if missing := sorted(wanted - named):
        return False, f"it lacks {missing[0]!r}"
    if wrong := sorted(named - wanted):
        return False, f"it holds {wrong[0][:80]!r}"
    return True, "it holds these and no others"
