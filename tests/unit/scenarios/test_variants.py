"""Variants: each dataset seed draws another surface of the same scenario."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from proctor.core.agents.prompt import PromptLimits, neutral_prompt
from proctor.core.agents.scripted import REFERENCE_SQL
from proctor.core.digests import digest_bytes
from proctor.core.fairness.check import check_files
from proctor.core.fairness.folder import read_draft
from proctor.core.fairness.variants import CHECKED_SEEDS
from proctor.core.scenarios.answer import load_answer
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.document import Faulty, parse_document
from proctor.core.scenarios.folder import load_scenario
from proctor.core.scenarios.recipe import load_recipe
from proctor.core.scenarios.recipe_rows import MetricKind
from proctor.core.scenarios.redraw import Redraw
from proctor.core.scenarios.variants import Variants, find_redraw
from proctor.core.seeding.identity import WRITTEN_SEED, recipe_digest
from proctor.core.seeding.schema import METRIC_PREFIX, tables_for
from proctor.local.dataset_files import SeedRequest
from proctor.settings import example_scenario_dir
from support.grading import NAMES
from support.playing import SCENARIOS

VARIED = [name for name in NAMES if (SCENARIOS / name / "variants.yaml").is_file()]
_, *REDRAWN = CHECKED_SEEDS
TABLES = tables_for(METRIC_PREFIX + kind for kind in MetricKind)
ANCHOR = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the worked example, to be broken."""
    return Path(shutil.copytree(example_scenario_dir(), tmp_path / "kept-waiting"))


def say(folder: Path, text: str) -> list[tuple[str, int, str]]:
    """Give a scenario other variants, and return every fault as (file, line, all that is said)."""
    (folder / "variants.yaml").write_text(text)
    return [(Path(fault.file).name, fault.line, str(fault)) for fault in check_files(read_draft(folder))]


@pytest.mark.parametrize("seed", [REDRAWN[0], *(pytest.param(seed, marks=pytest.mark.drill) for seed in REDRAWN[1:])])
@pytest.mark.parametrize("name", VARIED)
def test_a_redrawn_scenario_is_fair_by_its_files(name: str, seed: int) -> None:
    """M-A3: three dataset seeds of each pass the whole test set: sentences, whole answers, leaks, bands."""
    assert [str(fault) for fault in check_files(read_draft(SCENARIOS / name, seed))] == []


@pytest.mark.parametrize("name", VARIED)
def test_services_and_hosts_differ_and_the_structure_does_not(name: str) -> None:
    """M-A3: the same truth, new names: every draw has other services, and as many streams, groups and criteria."""
    drawn = [load_scenario(SCENARIOS / name, seed) for seed in CHECKED_SEEDS]
    written = set(drawn[0].recipe.services)
    for scenario in drawn[1:]:
        answered = {service for service in written if service in load_answer(SCENARIOS / name).model_dump_json()}
        assert not answered & set(scenario.recipe.services)
        assert len(scenario.recipe.services) == len(written)
        assert scenario.recipe.streams.keys() == drawn[0].recipe.streams.keys()
        assert scenario.recipe.groups.keys() == drawn[0].recipe.groups.keys()
        assert [line.id for line in scenario.answer.criteria] == [line.id for line in drawn[0].answer.criteria]
        assert not any(service in scenario.answer.model_dump_json() for service in answered)
    assert drawn[1].recipe.services.keys() != drawn[2].recipe.services.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_of_the_files_has_them_as_they_are(name: str) -> None:
    """P30: what was seeded before keeps its hash and its rows: seed 42 is the file, byte for byte."""
    folder = SCENARIOS / name
    assert find_redraw(folder, WRITTEN_SEED) is None
    assert load_recipe(folder).digest == digest_bytes((folder / "recipe.yaml").read_bytes())
    for seed in CHECKED_SEEDS:
        assert load_recipe(folder, seed).digest == recipe_digest(folder, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", CHECKED_SEEDS)
def test_nothing_that_an_agent_sees_holds_a_word_of_the_scenarios_name(name: str, seed: int) -> None:
    """Scenarios, no tells: database, table, tool and brief, with three dataset seeds."""
    folder = SCENARIOS / name
    told = neutral_prompt(load_brief(folder, seed), ANCHOR, PromptLimits(max_turns=25, max_tool_calls=40))
    dataset = SeedRequest(folder, seed=seed, anchor=ANCHOR, volume=Decimal("0.01")).hash
    seen = " ".join([told.system, told.prompt, *TABLES, REFERENCE_SQL.name, dataset]).lower()
    assert [word for word in name.split("-") if len(word) > 3 and word in seen.replace("_", " ").split()] == []
    assert name not in seen
    assert name.replace("-", "_") not in seen


def test_the_hash_covers_what_is_redrawn(folder: Path) -> None:
    """P30: a dataset's hash covers the variants wherever they change its rows, and nowhere else."""
    seeds = (WRITTEN_SEED, 7)
    written, redrawn = (SeedRequest(folder, seed=one, anchor=ANCHOR, volume=Decimal("0.1")).hash for one in seeds)
    (folder / "variants.yaml").write_text("words: {web: [frontend, site-front]}\n")
    assert SeedRequest(folder, seed=WRITTEN_SEED, anchor=ANCHOR, volume=Decimal("0.1")).hash == written
    assert SeedRequest(folder, seed=7, anchor=ANCHOR, volume=Decimal("0.1")).hash != redrawn


TEXTS = [
    ("media-cdn refuses", "static-edge refuses"),
    ("Media-cdn refuses", "Static-edge refuses"),
    (r"\bmedia-cdn\b|\bcdns?\b", r"\bstatic-edge\b|\bcdns?\b"),
    ("<<media-cdn>>, (media-cdn), media-cdn's.", "<<static-edge>>, (static-edge), static-edge's."),
    ("http://a.media-cdn.internal/x", "http://a.static-edge.internal/x"),
    ("media-cdns, media-cdn-2, media-cdn_x, big-media-cdn", "media-cdns, media-cdn-2, media-cdn_x, big-media-cdn"),
    ("'originrefused' or OriginRefused", "'backendgone' or BackendGone"),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_words_are_whole_words(text: str, wanted: str) -> None:
    """A name in a text, a pattern and a query alike; never a part of another."""
    redraw = Redraw({"media-cdn": "static-edge", "OriginRefused": "BackendGone"})
    assert redraw.change("answer", {"k": [text]}) == {"k": [wanted]}


def test_words_that_change_places_are_changed_once() -> None:
    """Two names that change places do not both become one."""
    assert Redraw({"a-1": "a-2", "a-2": "a-1"}).change("recipe", {"a-1": "a-2"}) == {"a-2": "a-1"}


def test_what_anchors_name_many_times_is_changed_once() -> None:
    """Hostile input: a tree of a few nodes that spells out to 10^30, and one that holds itself."""
    tree: list[object] = ["web"]
    for _ in range(30):
        tree = [tree] * 10
    changed = Redraw({"web": "portal"}).change("brief", tree)
    while isinstance(changed[0], list):
        changed = changed[0]
    assert changed == ["portal"]
    loop: list[object] = ["web"]
    loop.append(loop)
    assert Redraw({"web": "portal"}).change("brief", loop)[0] == "portal"


def test_a_draw_depends_on_the_seed_alone(folder: Path) -> None:
    """P40: one dataset seed, one surface; and seeds together reach every word."""
    assert find_redraw(folder, 5) == find_redraw(folder, 5)
    drawn = [found.words for seed in range(60) if (found := find_redraw(folder, seed))]
    assert {words["web"] for words in drawn} == {"frontend", "portal", "site-web"}
    for words in drawn:
        assert len(set(words.values())) == len(words)


HOSTILE = [
    "words: {web: ['<<shard>>', other]}",
    "words: {web: ['{kind}', other]}",
    'words: {web: ["a\' OR 1", other]}',
    "words: {web: ['a.*b', other]}",
    "words: {web: [portal, portal]}",
    "words: {web: [portal, store], store: [x-1, x-2]}",
    "words: {web: [only]}",
    "times: {t: {by: [5m, -5m], places: [groups.cold_cache.rows]}}",
    "times: {t: {by: [0s, 24h], step: 1ms, places: [groups.cold_cache.rows]}}",
    "values: {v: {of: [1, '2'], places: [groups.cold_cache.rows]}}",
    "values: {v: {of: [1, 2], places: [a.b]}, w: {of: [1, 2], places: [a.b]}}",
    "values: {v: {of: ['x; y', 'z'], places: [a.b]}}",
    "wordz: {}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_variants_are_refused(text: str) -> None:
    """Bad input: closed, bounded, and no word with a meaning in a template, a query or a pattern."""
    with pytest.raises(Faulty, match=r"variants.yaml:\d+: "):
        parse_document(text, Variants, "variants.yaml")


FAULTS = [
    ("words:\n  web: [portal, site-web]\n  wep: [x-1, x-2]\n", 3, "stands nowhere in recipe.yaml"),
    ("words:\n  web: [portal, warmer]\n", 2, "'warmer' stands in the files already"),
    ("shuffled:\n- [pages-db-1, pages-db-2]\n- [pages-db-3, pages-db-99]\n", 3, "'pages-db-99' stands nowhere"),
    ("times:\n  t:\n    by: [-5m, 0s]\n    places: [groups.cold_cash.rows]\n", 4, "has no such place"),
    ("values:\n  v: {of: ['1', '2'], places: [groups.cold_cache.rows]}\n", 2, "there is no text"),
    ("sizes:\n- [groups.cold_cache.rows, groups.cold_cache.note]\n", 2, "there is no whole number"),
]


@pytest.mark.parametrize(("text", "line", "said"), FAULTS)
def test_faults_of_variants_name_their_line(folder: Path, text: str, line: int, said: str) -> None:
    """Bad input: words that stand nowhere or mean something else, places that are none: file, line and fix."""
    ((file, found, message),) = say(folder, text)
    assert (file, found) == ("variants.yaml", line)
    assert said in message
    assert "; " in message


def test_a_fault_of_a_redrawn_file_names_the_written_line(folder: Path) -> None:
    """Bad input: what is wrong only with another seed is told with the seed, at the line of the file."""
    (folder / "variants.yaml").write_text("words: {web: [frontend, portal]}\n")
    brief = folder / "brief.yaml"
    brief.write_text(brief.read_text().replace("our customers", "our portal's customers"))
    faults = [str(fault) for seed in range(8) for fault in check_files(read_draft(folder, seed))]
    assert any(
        "brief.yaml:1: prompt: dataset seed " in fault and "names the service 'portal'" in fault for fault in faults
    )
