"""`proctor scenario check` and `new`: what is unfair is said with file, line and fix."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proctor.cli.app import app
from proctor.core.fairness.check import check_files
from proctor.core.fairness.folder import read_draft
from proctor.settings import example_scenario_dir
from support.playing import SCENARIOS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the worked example, to be broken."""
    return Path(shutil.copytree(example_scenario_dir(), tmp_path / "kept-waiting"))


def change(folder: Path, file: str, old: str, new: str) -> int:
    """Replace a piece of a file, and return the line where it was."""
    path = folder / file
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def find(folder: Path) -> list[tuple[str, int, str]]:
    """Every fault as (file, line, all that is said)."""
    return [(Path(fault.file).name, fault.line, str(fault)) for fault in check_files(read_draft(folder))]


def test_the_worked_example_is_fair(folder: Path) -> None:
    """Issue, part 7: what `new` makes passes `check`."""
    assert find(folder) == []


RECIPE = [
    ("query: {sum: [wait, run]}", "query: {sum: [wait, took]}", "draws depend on each other"),
    ("    of: pages\n    role: planted", "    of: pagers\n    role: planted", "there is no stream `pagers`"),
    ('hit: {chance: "0.9"}', 'hit: {chance: "1.9"}', "less than or equal to 1"),
    ("kind: {pick: kinds}", "kind: {pick: kids}", "there is no pool `kids`"),
    ("      at: {time: [{from: -15m}]}", "      at: {time: [{from: -75m}]}", "not within the world"),
    ("at: {time: [{from: -16m, until: -1s}]}", "at: {time: [{from: -16m, until: 5m}]}", "not within the world"),
    ("instances: 4, language: nodejs", "instances: 4, tongue: nodejs", "Extra inputs"),
    ("window: 1h", "window: 1h: 2h", "not YAML"),
    ("rows: 20000", "rows: many", "valid integer"),
]


FIXES = {
    "declare it, or correct the draw",
    "move it, or make `window` longer",
    "lower it",
    "correct it",
    "correct the syntax",
    "remove it, or correct its name",
}


@pytest.mark.parametrize(("old", "new", "said"), RECIPE)
def test_faults_of_a_recipe_name_their_line(folder: Path, old: str, new: str, said: str) -> None:
    """Bad input: a cycle, an unknown stream, a window outside the world, a rate above 1: file, line and fix."""
    line = change(folder, "recipe.yaml", old, new)
    (found,) = find(folder)
    assert found[0] == "recipe.yaml"
    assert abs(found[1] - line) <= 1
    assert said in found[2]
    assert found[2].rpartition("; ")[2] in FIXES


def test_weights_that_sum_to_nothing(folder: Path) -> None:
    """Bad input: weights that sum to 0; the line is that of the draw that can't be made."""
    change(folder, "recipe.yaml", "{article: 60, gallery: 30, profile: 10}", "{article: 0, gallery: 0, profile: 0}")
    line = change(folder, "recipe.yaml", "kind: {pick: kinds}", "kind: {pick: kinds}")
    (found,) = find(folder)
    assert found[:2] == ("recipe.yaml", line)
    assert "weights must add up to" in found[2]


ANSWER = [
    ("cache: '\\bcach(?:e|es|ing)\\b'", "cache: '(?:(?:cach{1,100}e){1,100}){1,10}'", "terms.cache", "pattern is"),
    ("cache: '\\bcach(?:e|es|ing)\\b'", "cache: 'cache(?=s)'", "terms.cache", "RE2 has neither look-around"),
    ("says: ['<<slow>> (?:slow )?requests']", "says: ['(unclosed']", "criteria.extent", "no RE2 syntax"),
    ("blames: ['<<shard>>']", "blames: ['<<shad>>']", "criteria.cause", "no term or fact 'shad'"),
    ("'Root cause: cold caches.'", "'Root cause: cold cash.'", "criteria.blames-cache.fires", "is not matched"),
    ("- The cache is unrelated.\n", "- The root cause is the cache.\n", "criteria.blames-cache.silent", "is matched"),
    ("  - The cache could also be the cause.\n", "", "criteria.4", "at least 6 sentences"),
    ("id: wrong, low: '0', high: '0.1'", "id: wrong, low: '0', high: '0.5'", "answers.wrong.high", "may score 0.5"),
    ("id: hedged, low: '0'", "id: hedged, low: '0.05'", "answers.hedged", "outside 0.05 to 0.1"),
    ("{id: table,", "{id: tabulated,", "answers", "no answer is of the kind 'table'"),
    ("  wrong-evidence: {low: '0.3', high: '0.6'}\n", "", "impostors", "`wrong-evidence` has no band"),
    ("SELECT count() FROM otel_traces", "SELECT count() FROM ds_1.otel_traces", "facts.slow.sql", "names a database"),
]


@pytest.mark.parametrize(("old", "new", "place", "said"), ANSWER)
def test_faults_of_an_answer_key_name_their_place(  # noqa: PLR0917 - a fixture, and the columns of a table
    folder: Path, old: str, new: str, place: str, said: str
) -> None:
    """Bad input, M-A9: patterns, sentences, whole answers and bands, each with file, line and fix."""
    change(folder, "answer.yaml", old, new)
    found = [text for file, line, text in find(folder) if file == "answer.yaml" and line > 1]
    assert any(f": {place}" in text and said in text for text in found), found


LINE = "weight: 1, polarity: positive, about: None., says: [none], fires: [none], silent: [one]"
TWO = f"[{{id: none, {LINE}}}, {{id: nil, {LINE}}}]"


@pytest.mark.parametrize(
    ("file", "old", "new", "place", "said"),
    [
        ("brief.yaml", "answer: json\n", "", "brief.yaml:1: answer", "asks for prose"),
        (
            "answer.yaml",
            "SELECT count() FROM otel_traces",
            "SELECT count() FROM ds_1.otel_traces",
            "",
            "names a database",
        ),
        ("answer.yaml", "id: slowness", "id: spread", "artifact.checks", "two have the same id"),
        ("answer.yaml", "{service: <<busiest>>}", "{service: <<busier>>}", "artifact", "no term or fact 'busier'"),
        ("answer.yaml", "criteria: []", f"criteria: {TWO}", "criteria", "leave it empty"),
    ],
)
def test_faults_of_a_key_of_an_artifact(tmp_path: Path, file: str, old: str, new: str, place: str, said: str) -> None:  # noqa: PLR0917 - a fixture, and the columns of a table
    """Bad input: an artifact's key names its place and fix too, and its brief asks for JSON."""
    folder = Path(shutil.copytree(SCENARIOS / "dashboard-build", tmp_path / "dashboard-build"))
    change(folder, file, old, new)
    found = [text for _, _, text in find(folder)]
    assert any(place in text and said in text for text in found), found


LEAKS = [
    ("some of our customers.", "some customers of pages-db-7.", "holds the fact `shard`"),
    ("slowly for", "slowly (1.2 s) in the store for", "names the service 'store'"),
    ("pages have been", "pages have been waiting and", "is a word of the scenario's name"),
    ("loading slowly", "loading slowly as pages-db-7 is overloaded", "names what `cause` asks for"),
]


@pytest.mark.parametrize(("old", "new", "said"), LEAKS)
def test_a_brief_that_tells_is_unfair(folder: Path, old: str, new: str, said: str) -> None:
    """Bad input: a brief that contains the answer; no service, fact, or word of the scenario's name."""
    change(folder, "brief.yaml", old, new)
    assert any(file == "brief.yaml" and said in text for file, _, text in find(folder))


POLICIES = [
    ("  names-everything:\n    answer", "  names-all:\n    answer", "there is no impostor `names-everything`"),
    ("Root cause: <<shard>> is", "Root cause: pages-db-7 is", "holds the fact `shard`"),
    ("markers: [missed, longest]", "markers: [missed]", "no step returns 'longest'"),
]


@pytest.mark.parametrize(("old", "new", "said"), POLICIES)
def test_faults_of_policies(folder: Path, old: str, new: str, said: str) -> None:
    """M-A3: three impostors, and an oracle that finds out what it says."""
    change(folder, "policies.yaml", old, new)
    assert any(file == "policies.yaml" and said in text for file, _, text in find(folder))


def test_a_reference_record_of_other_facts(folder: Path) -> None:
    """M-A9: facts that the key doesn't have, and those that the record lacks."""
    line = change(folder, "reference.yaml", "  slow: 40", "  fast: 40")
    found = find(folder)
    assert ("reference.yaml", line) in [one[:2] for one in found]
    assert any("`slow` is missing" in one[2] for one in found)


def test_a_missing_file_is_said(folder: Path) -> None:
    """Bad input: each file that is missing, and nothing else than that."""
    (folder / "policies.yaml").unlink()
    ((file, line, text),) = find(folder)
    assert (file, line) == ("policies.yaml", 1)
    assert "can't be read" in text


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["scenario", *words])


def test_exit_codes_of_check(folder: Path) -> None:
    """Exit codes: 0 fair, 1 unfair, 64 bad usage; `--json` says the same."""
    assert run("check", str(folder), "--static").exit_code == 0
    change(folder, "brief.yaml", "some of our customers", "some users of the store")
    unfair = run("check", str(folder), "--static", "--json")
    assert unfair.exit_code == 1
    said = json.loads(unfair.stdout)
    assert said["fair"] is False
    assert {"file", "line", "place", "message", "fix"} == said["faults"][0].keys()
    assert run("check", str(folder / "none")).exit_code == 64
    assert run("check", "no-such-name").exit_code == 64
    change(folder, "brief.yaml", "some users of the store", "some of our customers")
    assert run("check", str(folder), "--volume", "much").exit_code == 64


def test_new_makes_a_fair_scenario(tmp_path: Path) -> None:
    """Issue, part 7: `new` scaffolds one that passes `check`; it overwrites nothing."""
    made = run("new", "night-shift", "--scenarios", str(tmp_path / "mine"))
    assert made.exit_code == 0, made.output
    assert "first:" not in made.stdout
    assert find(tmp_path / "mine" / "night-shift") == []
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["night-shift"]
    assert run("new", "night-shift", "--scenarios", str(tmp_path / "mine")).exit_code == 64
    for name in ("../up", "Big", "", "a/b"):
        assert run("new", name, "--scenarios", str(tmp_path)).exit_code == 64
    assert "'pages' is a word" in run("new", "slow-pages", "--scenarios", str(tmp_path)).stdout
