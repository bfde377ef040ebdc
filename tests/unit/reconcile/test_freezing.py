"""A suite and a run's overrides → what the run is fixed to."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.api.run import EvalRunSpec
from proctor.core.ids import Arm, CellKey, Control
from proctor.core.stats.controls import judge_controls
from proctor.core.stats.observations import Judgement, Reason
from proctor.core.stats.settlement import settle
from proctor.reconcile.rules import build_rules
from proctor.reconcile.suites_freezing import FreezeSources, SuiteRefused, freeze_suite, images_of
from support.manifests import real_model, server
from support.observations import controls, graded
from support.suites import FOLLOWER, IMAGE_A, IMAGE_B, NOW, make_spec

LAST_PASSED = {"enforcement": "Enforce", "baseline": {"lastPassed": True}, "maxDrop": "0.05"}


def sources(**changes: Any) -> FreezeSources:
    return FreezeSources(**({"now": NOW, "shipped": {"mcp": IMAGE_A}} | changes))


def run(**changes: Any) -> EvalRunSpec:
    return EvalRunSpec.model_validate({"suiteRef": {"name": "made"}} | changes)


def test_every_server_that_is_started_has_an_image() -> None:
    """The run's own, the suite's, the one that a Deployment runs, or the one that ships for its program."""
    elsewhere = {"name": "elsewhere", "http": {"url": "https://mcp.example.com/mcp"}, "deniedTools": []}
    named = server("named", stdio={"command": ["mcp"], "image": IMAGE_B})
    spec = make_spec(servers=[server("current"), named, FOLLOWER, elsewhere, server("other")])
    frozen = freeze_suite(
        spec, run(servers=[{"name": "other", "image": IMAGE_B}]), sources(followed={"candidate": IMAGE_B})
    )
    assert images_of(frozen) == {"current": IMAGE_A, "named": IMAGE_B, "candidate": IMAGE_B, "other": IMAGE_B}
    assert all(one.image_from is None for one in frozen.servers)


def test_overrides_win() -> None:
    spec = make_spec(anchor=None, anchorPolicy="LatestDay")
    frozen = freeze_suite(spec, run(replicates=7, models=[real_model()]), sources())
    assert [model.name for model in frozen.models] == ["newest", "opus"]
    assert frozen.replicates == 7
    assert frozen.anchor == NOW.replace(hour=0)
    assert frozen.anchor_policy is None


@pytest.mark.parametrize(
    ("spec", "changes", "reason", "words"),
    [
        (
            {"servers": [server(), server("candidate", stdio={"command": ["mine"]})]},
            {},
            "ImageMissing",
            "name its image",
        ),
        ({"servers": [server("current"), FOLLOWER]}, {}, "AwaitingImage", "Deployment my-mcp"),
        ({}, {"servers": [{"name": "nobody", "image": IMAGE_A}]}, "UnknownServer", "one of: candidate, current"),
        ({}, {"replicates": 2}, "InvalidSuite", "raise replicates"),
    ],
)
def test_what_can_not_be_frozen_says_how_to_mend_it(
    spec: dict[str, Any], changes: dict[str, Any], reason: str, words: str
) -> None:
    with pytest.raises(SuiteRefused, match=words) as refused:
        freeze_suite(make_spec(**spec), run(**changes), sources())
    assert refused.value.reason == reason


def test_what_passed_last_is_run_again_beside_its_present_self() -> None:
    """gate.baseline.lastPassed: the images that passed are arms of this run, so pairs stay fair."""
    spec = make_spec(servers=[server("one"), server("two"), server("new")], gate=LAST_PASSED)
    frozen = freeze_suite(spec, run(), sources(last_passed={"one": IMAGE_B, "two": IMAGE_B, "gone": IMAGE_B}))
    assert [one.name for one in frozen.servers] == ["one", "two", "new", "one-last-passed", "two-last-passed"]
    assert [one.image for one in frozen.servers] == [IMAGE_A, IMAGE_A, IMAGE_A, IMAGE_B, IMAGE_B]
    assert images_of(frozen).keys() == {"one", "two", "new"}
    rules = build_rules(frozen, seed=1)
    assert rules.baseline_missing
    assert rules.baseline is not None
    assert rules.baseline.opposite(Arm("two", "m")) == Arm("two-last-passed", "m")
    assert rules.baseline.opposite(Arm("new", "m")) is None
    assert [name for name in ("one", "new", "one-last-passed") if rules.is_candidate(Arm(name, "m"))] == ["one", "new"]


def test_each_server_is_compared_with_its_own_former_self() -> None:
    spec = make_spec(servers=[server("one"), server("two")], gate=LAST_PASSED)
    frozen = freeze_suite(spec, run(), sources(last_passed={"one": IMAGE_B, "two": IMAGE_B}))
    rules = build_rules(frozen, seed=1)
    names = [one.name for one in frozen.servers]
    scores = {"one": [0.9] * 5, "two": [0.3] * 5, "one-last-passed": [0.9] * 5, "two-last-passed": [0.8] * 5}
    seen = [cell for name in names for cell in graded("s", name, scores[name], model="newest")]
    settled = settle([*seen, *controls(["s"], names)], rules)
    assert (settled.verdict, settled.reason) == (Judgement.FAIL, Reason.MAX_DROP_EXCEEDED)
    assert {(each.candidate.server, each.baseline.server) for each in settled.comparisons} == {
        ("one", "one-last-passed"),
        ("two", "two-last-passed"),
    }


def test_a_server_that_never_passed_is_judged_by_the_minimum_alone() -> None:
    """LastPassed without an earlier pass; else Inconclusive, NoBaseline."""
    for minimum, wanted in ((None, Reason.NO_BASELINE), ("0.5", Reason.ABOVE_MINIMUM)):
        gate = LAST_PASSED if minimum is None else LAST_PASSED | {"minimum": minimum}
        frozen = freeze_suite(make_spec(servers=[server("one")], gate=gate), run(), sources())
        seen = [*graded("s", "one", [0.9] * 5, model="newest"), *controls(["s"], ["one"])]
        assert settle(seen, build_rules(frozen, seed=1)).reason is wanted


def test_a_server_that_broke_what_its_former_self_could_fails() -> None:
    """ControlRegression holds beside the former self as beside a named baseline."""
    frozen = freeze_suite(
        make_spec(servers=[server("one")], gate=LAST_PASSED), run(), sources(last_passed={"one": IMAGE_B})
    )
    names = [one.name for one in frozen.servers]
    finding = judge_controls(controls(["s"], names, oracle={"one": 0.1}), build_rules(frozen, seed=1))
    assert finding is not None
    assert (finding.verdict, finding.reason) == (Judgement.FAIL, Reason.CONTROL_REGRESSION)
    assert "one-last-passed" in finding.summary
    assert CellKey.for_control("s", "one", Control.ORACLE).server == "one"


@pytest.mark.parametrize("names", [("n" * 39,), ("one", "one-last-passed")])
def test_a_name_that_leaves_no_room_for_the_baseline_is_refused(names: tuple[str, ...]) -> None:
    spec = make_spec(servers=[server(name) for name in names], gate=LAST_PASSED)
    with pytest.raises(SuiteRefused, match="give it another name"):
        freeze_suite(spec, run(), sources(last_passed={names[0]: IMAGE_B}))
