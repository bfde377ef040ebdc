"""The recipe language refuses what it doesn't know, and says where."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.scenarios.recipe import load_recipe, parse_recipe
from proctor.core.scenarios.recipe_draws import _KINDS
from proctor.core.scenarios.recipe_terms import parse_duration, split_template
from proctor.core.seeding.identity import recipe_digest
from proctor.errors import InvalidInput
from support.seeding import EVERYTHING, ROOT, SHIPPED, load_everything, make_plan, make_recipe, make_stream


def _broken(old: str, new: str) -> str:
    text = (EVERYTHING / "recipe.yaml").read_text()
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weight: 6,", "wieght: 6,", "services.api.wieght: Extra inputs are not permitted"),
        ("window: 2h", "window: 2 hours", "'2 hours' is no span of time"),
        ('chance: "0.7"', 'chance: "1.7"', "streams.requests.draws.cached"),
        ("cached: {chance", "cached: {luck", "a draw has exactly one of the keys"),
        ("of: noise", "of: silence", "groups.burst.of: there is no stream `silence`"),
        ("instances: [0, 1, 2], from", "instances: [0, 1, 9], from", "`api` has fewer instances"),
        ("note {word}", "note {word", "a lone '{'"),
        ("version: 1\n", "version: 2\n", "version: Input should be 1"),
    ],
)
def test_faults_name_the_field(old: str, new: str, said: str) -> None:
    """P4: unknown fields, wrong types and bad values name file, field and fix."""
    with pytest.raises(InvalidInput) as caught:
        parse_recipe(_broken(old, new), "mine/recipe.yaml")
    assert str(caught.value).startswith("mine/recipe.yaml:")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{took.ms}ms", "{tock.ms}ms", "there is no draw `tock`"),
        ("{took.ms}ms", "{took.weeks}ms", "a number has the units"),
        ("resource: pinned", "resource: tier", "`tier` draws no instance"),
        ("pick: tiers", "pick: tears", "there is no pool `tears`"),
        ("{when: {tier: enterprise}", "{when: {tier: entreprise}", "`tier` is never 'entreprise'"),
        ("sum: [own, extra]", "sum: [own, took]", "draws depend on each other"),
        ("counts: [5, 3]", "counts: [5, 2]", "add up to 8 rows"),
        ("text: ERROR", "text: HORROR", "HORROR is none of"),
        ("parent: inner\n", "parent: outer\n", "no span `outer`"),
        ("{api_pod.pod}", "{api_pod.version}", "depends on time"),
        ("{between: [80ms, 180ms]", "{between: [80ms, 18ms]", "a bucket ends before it begins"),
    ],
)
def test_names_that_lead_nowhere_are_refused(old: str, new: str, said: str) -> None:
    """P4: a recipe that parses but refers to nothing is refused before anything is built."""
    with pytest.raises(InvalidInput) as caught:
        make_plan(parse_recipe(_broken(old, new)))
    assert said in str(caught.value)


def test_shipped_recipe_is_valid_and_its_digest_is_that_of_its_file() -> None:
    """M-A1: the digest that finds a dataset needs no parsing."""
    assert load_recipe(SHIPPED).digest == recipe_digest(SHIPPED)


def test_oversized_recipe_is_refused() -> None:
    """P4: ten megabytes never reach the parser."""
    with pytest.raises(InvalidInput, match="larger than"):
        parse_recipe("#" * 10_000_000)


def test_recipe_says_all_of_the_language() -> None:
    """M-A3: one recipe uses every kind of draw, emission and metric."""
    recipe = load_everything()
    used = {type(draw) for stream in recipe.streams.values() for draw in stream.draws.values()}
    used |= {type(draw) for group in recipe.groups.values() for draw in group.draws.values()}
    assert used == set(_KINDS.values())
    assert {metric.type for metric in recipe.streams["scrapes"].metrics.values()} == {
        "gauge",
        "sum",
        "histogram",
        "exponential_histogram",
        "summary",
    }


@given(st.text(alphabet="ab{}. _", max_size=30))
def test_templates_are_cut_without_loss(text: str) -> None:
    """P4: any template is either refused or put together again from its pieces."""
    try:
        pieces = split_template(text)
    except ValueError:
        return
    again = "".join(
        "{" + piece + "}" if is_reference else piece.replace("{", "{{").replace("}", "}}")
        for piece, is_reference in pieces
    )
    assert split_template(again) == pieces


def test_durations_are_whole_nanoseconds() -> None:
    """M-A1: no time passes through a float."""
    assert [parse_duration(text) for text in ("15ms", "-5m", "2h", "7ns")] == [
        15_000_000,
        -300 * 10**9,
        7200 * 10**9,
        7,
    ]


def test_no_text_of_a_recipe_can_leave_its_literal() -> None:
    """P4, S12: a recipe is data: quotes and backslashes in it stay text."""
    evil = "x'); DROP TABLE otel_traces; --\\"
    stream = make_stream(logs={"line": {"resource": "pod", "time": ["at"], "body": evil}})
    plan = make_plan(make_recipe(streams={"requests": stream}))
    (log,) = [source for source in plan.sources if source.table == "otel_logs"]
    assert log.columns["Body"] == "'x\\'); DROP TABLE otel_traces; --\\\\'"


def test_the_recipe_that_the_documentation_shows_compiles() -> None:
    """Style: documentation is tested: the worked example is a whole recipe."""
    page = (ROOT / "docs" / "datasets.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    plan = make_plan(parse_recipe(example, "docs/datasets.md"))
    assert {(one.owner, one.emission) for one in plan.sources} >= {("visits", "page"), ("stuck", "failure")}


def test_the_documentation_names_every_kind_of_draw() -> None:
    """Style: documentation is tested."""
    page = (ROOT / "docs" / "datasets.md").read_text()
    assert [kind for kind in _KINDS if not re.search(rf"`\{{{kind}: ", page)] == []
