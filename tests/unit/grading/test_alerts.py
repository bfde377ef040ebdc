"""What alert rules earn: precision, recall and delay on made firings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from proctor.core.grading.alert_firings import Stretch
from proctor.core.grading.alert_rules import Rule, RulesSubmission, Series
from proctor.core.grading.alerts import REPEAT, Tally, count_false, tally_rules
from support.alert_rules import BEGIN, make_rule, plateau, windows

TWO = windows(first=(100, 160), second=(1000, 1030))


def run(series: Series, *rules: Rule, planned: tuple[Stretch, ...] = ()) -> Tally:
    submission = RulesSubmission(rules=list(rules))
    return tally_rules(submission, {rule.selector: series for rule in rules}, TWO, planned, grace=15)


def test_a_good_rule() -> None:
    """Part 2: precision, recall and delay of a rule that finds both, one of them late."""
    tally = run(plateau(2000, (100, 160), (1007, 1030)), make_rule(**{"for": "2m"}))
    assert (tally.delays, tally.false) == ({"first": 2, "second": 9}, 0)
    assert tally.precision == tally.recall == 1


def test_a_rule_that_always_fires_finds_nothing() -> None:
    """Names everything: it began before, so it tells nobody anything, and wakes somebody every four hours."""
    tally = run(plateau(2000), make_rule(threshold=0))
    assert tally.delays == {}
    assert tally.false == 2000 // REPEAT + 1
    assert tally.precision == 0


def test_a_flapping_rule_finds_all_and_is_not_precise() -> None:
    """A symptom that comes and goes: how often it is right within one incident does not pay for the rest."""
    flapping = [(at, at + 1) for at in range(0, 2000, 10)]
    tally = run(plateau(2000, *flapping), make_rule())
    assert tally.recall == 1
    assert tally.precision < Fraction(1, 50)
    assert tally.worst == "busy"


def test_the_same_rule_twice_is_one() -> None:
    """Copies wake people no more, and pay no more."""
    series = plateau(2000, (100, 160), (500, 510))
    once, twice = run(series, make_rule()), run(series, make_rule(), make_rule(name="again"))
    assert (once.delays, once.false) == (twice.delays, twice.false) == ({"first": 0}, 1)


def test_late_is_neither_right_nor_wrong_within_the_grace() -> None:
    """A rule that fires just after an incident has not found it, and is no noise either."""
    tally = run(plateau(2000, (165, 170), (1045, 1050)), make_rule())
    assert (tally.delays, tally.false) == ({}, 1)


@pytest.mark.parametrize(
    ("firing", "expect"),
    [((0, 10), 1), ((100, 110), 0), ((0, 100), 1), ((0, REPEAT + 1), 2), ((100, 100 + REPEAT), 0), ((100, 2000), 7)],
)
def test_a_firing_wakes_again_every_four_hours(firing: tuple[int, int], expect: int) -> None:
    """A rule that is not switched off is not paid as one wake-up."""
    start, until = firing
    assert count_false(Stretch(BEGIN + start, BEGIN + until), TWO, grace=15) == expect


def test_planned_work_is_false_unless_a_rule_keeps_quiet() -> None:
    """Decoy: nothing is wrong in planned work."""
    series, planned = plateau(2000, (100, 160), (500, 620)), (Stretch(BEGIN + 500, BEGIN + 620),)
    assert run(series, make_rule(), planned=planned).false == 1
    assert run(series, make_rule(quiet_in_planned_work=True), planned=planned).false == 0
