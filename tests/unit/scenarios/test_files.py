"""The files of a scenario folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.core.grading.checks import check_answer, find_statement
from proctor.core.grading.facts import check_facts
from proctor.core.grading.rubric import compile_rubric
from proctor.core.scenarios.answer import AnswerKey, load_answer
from proctor.core.scenarios.brief import Brief, load_brief
from proctor.core.scenarios.document import MAX_DOCUMENT_BYTES, parse_document
from proctor.core.scenarios.folder import find_scenario, list_scenarios, load_scenario
from proctor.core.scenarios.policies import Policies, load_policies
from proctor.core.scenarios.reference import load_reference
from proctor.errors import InvalidInput
from support.grading import NAMES, shipped_key
from support.playing import SCENARIOS

ORACLE = "oracle: {answer: x}"


@pytest.mark.parametrize("name", NAMES)
def test_shipped_folders_are_whole(name: str) -> None:
    """M-A3: brief, recipe, answer key, policies and reference record of every scenario load."""
    scenario = load_scenario(SCENARIOS / name)
    assert scenario.name == name
    assert set(load_reference(SCENARIOS / name).facts) == set(scenario.answer.facts)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_policies_have_three_impostors(name: str) -> None:
    """M-A3: one falls for the strongest decoy, one names everything, one has the wrong evidence."""
    assert {"strongest-decoy", "names-everything", "wrong-evidence"} <= set(load_policies(SCENARIOS / name).impostors)


@pytest.mark.parametrize("name", NAMES)
def test_no_database_is_named_in_queries(name: str) -> None:
    """Manifest, oracle's reading: tables are named without a database."""
    policies = load_policies(SCENARIOS / name)
    queries = [step.query for policy in (policies.oracle, *policies.impostors.values()) for step in policy.steps]
    queries += [fact.sql for fact in load_answer(SCENARIOS / name).facts.values()]
    assert all("default." not in query and "ds_" not in query for query in queries)


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_does_not_know_the_key(name: str) -> None:
    """Issue, part 5: oracle answers from what the tools returned; no fact stands in its answer's text."""
    answer = load_policies(SCENARIOS / name).oracle.answer
    facts = load_reference(SCENARIOS / name).facts
    assert [value for value in facts.values() if isinstance(value, str) and value in answer] == []
    assert [value for value in facts.values() if isinstance(value, int) and f" {value} " in answer] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("prompt: [", "not YAML"),
        ("prompt: short", "brief.yaml:1: prompt"),
        ("prompt: long enough to be a prompt\nhint: look at payments", "brief.yaml:2: hint"),
        ("prompt: long enough to be a prompt\nanswer: xml", "brief.yaml:2: answer"),
        ("- 1", "brief.yaml:1"),
        ("", "brief.yaml:1"),
        ("prompt: !!python/object/apply:os.system ['true']", "brief.yaml"),
        ("x" * (MAX_DOCUMENT_BYTES + 1), "larger than"),
    ],
)
def test_a_bad_brief_names_file_line_and_field(text: str, names: str) -> None:
    """Bad input: each gets a clear error."""
    with pytest.raises(InvalidInput, match=names):
        parse_document(text, Brief, "brief.yaml")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("oracle: {answer: 'x <<n>>'}", "no step returns 'n'"),
        ("oracle: {answer: x, steps: [{query: SELECT 1, markers: []}]}", "markers"),
        ("oracle: {answer: x, steps: [{query: \"SELECT '<<a=1>>'\", markers: [a]}]}", "reads like the marker"),
        ("oracle: {answer: x, steps: [{query: \"SELECT '<<b>>'\", markers: [b]}]}", "no earlier step returns 'b'"),
        (f"{ORACLE}\nimpostors: {{'Bad Name': {{answer: x}}}}", "impostors"),
    ],
)
def test_bad_policies_are_refused(text: str, names: str) -> None:
    """Manifest, scripted policies: markers must be returned before they are used, and never stand in a query."""
    with pytest.raises(InvalidInput, match=names):
        parse_document(text, Policies, "policies.yaml")


def make_key(**changes: Any) -> dict[str, Any]:
    """An answer key that is as small as may be."""
    positive = {
        "id": "cause", "weight": 2, "polarity": "positive", "about": "the cause", "blames": ["<<culprit>>"],
        "fires": ["The cause is the database."], "silent": ["The cause is not the database."],
    }  # fmt: skip
    negative = {
        "id": "decoy", "weight": 2, "polarity": "negative", "about": "the decoy", "blames": ["cdn"],
        "fires": ["The CDN."] * 6, "silent": ["No."] * 6,
    }  # fmt: skip
    answer = {"id": "x", "text": "x", "low": "0", "high": "1"}
    return {
        "facts": {"n": {"sql": "SELECT count() FROM t", "type": "integer"}},
        "terms": {"culprit": "database"},
        "effect": "checkout",
        "criteria": [positive | changes.pop("positive", {}), negative | changes.pop("negative", {})],
        "answers": [answer | changes.pop("answer", {})] * 8,
        "judge": {
            "truth": "The database was full, so everything failed.",
            "decoys": ["The CDN was loud."],
            "criteria": [{"id": "correctness", "weight": 3, "about": "names the true cause"}],
        },
        **changes,
    }


def test_a_small_key_is_enough() -> None:
    """Documentation: what a rubric needs at least."""
    rubric = compile_rubric(AnswerKey.model_validate(make_key()), {"n": 3}, told="told")
    assert rubric.negative_ids == rubric.suspect_ids == ("decoy",)


def test_half_of_the_truth_is_no_blame_beside_the_whole() -> None:
    """Documentation, `unless`: silent where the whole is said, and never a suspect."""
    half = {"blames": ["disks?"], "unless": ["cause"]}
    key = AnswerKey.model_validate(make_key(terms={"culprit": "database.*disk"}, negative=half))
    rubric = compile_rubric(key, {"n": 3}, told="told")
    assert rubric.suspect_ids == ()
    assert find_statement(rubric, "decoy", "The cause is a full disk.") is not None
    assert find_statement(rubric, "decoy", "The cause is a disk. The cause is the database and its disk.") is None
    assert check_answer(rubric, "The cause is a full disk.").score == 0
    assert check_answer(rubric, "The cause is the database and its disk.").score == 1


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"positive": {"blames": ["<<nobody>>"]}}, "no term or fact 'nobody'"),
        ({"positive": {"blames": []}}, "at least one of"),
        ({"positive": {"needs": ["nothing"]}}, "no other criterion 'nothing'"),
        ({"positive": {"needs": ["cause"]}}, "no other criterion 'cause'"),
        ({"negative": {"unless": ["nothing"]}}, "no other criterion 'nothing'"),
        ({"positive": {"unless": ["decoy"]}}, "only a negative criterion"),
        ({"positive": {"id": "decoy"}}, "same id"),
        ({"negative": {"fires": ["one"]}}, "at least 6 sentences"),
        ({"terms": {"culprit": "database", "n": "xx"}}, "same name"),
        ({"answer": {"low": 0.5}}, "as strings"),
        ({"answer": {"high": "1.5"}}, "less than or equal to 1"),
        ({"answer": {"text": "<<missing>>"}}, "no term or fact 'missing'"),
        ({"positive": {"weight": 0}}, "greater than or equal to 1"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_bad_answer_keys_are_refused(changes: dict[str, Any], names: str) -> None:
    """M-A9: names hold, weights and bands are bounded, negatives carry their sentences."""
    with pytest.raises(ValueError, match=names):
        AnswerKey.model_validate(make_key(**changes))


@pytest.mark.parametrize(
    ("changes", "facts", "names"),
    [
        ({}, {}, "fact 'n'"),
        ({}, {"n": ""}, "fact 'n'"),
        ({}, {"n": "many"}, "type integer"),
        ({}, {"n": "1.5"}, "type integer"),
        ({"terms": {"culprit": "(unclosed"}}, {"n": 1}, "no RE2 syntax"),
        ({"terms": {"culprit": "a(?=b)"}}, {"n": 1}, "no RE2 syntax"),
        ({"terms": {"culprit": "(?:(?:a{1,100}){1,100}){1,10}"}}, {"n": 1}, "RE2|too large"),
        ({"terms": {"culprit": "<<later>>", "later": "xx"}}, {"n": 1}, "declared before"),
    ],
)
def test_bad_patterns_and_facts_are_refused(changes: dict[str, Any], facts: dict[str, Any], names: str) -> None:
    """Grading rule 4: RE2 only, a pattern that can explode is refused; a fact must be there and of its type."""
    with pytest.raises(InvalidInput, match=names):
        compile_rubric(AnswerKey.model_validate(make_key(**changes)), facts, told="told")


@pytest.mark.parametrize("name", [name for name in NAMES if shipped_key(name).criteria])
def test_digests_follow_what_grades_and_nothing_else(name: str) -> None:
    """Architecture: facts are keyed by the digest of their queries; grading rule 7: grades by the rubric's."""
    key = shipped_key(name)
    line = key.criteria[0]
    other_sentence = line.model_copy(update={"fires": ["Another sentence."]})
    other_weight = line.model_copy(update={"weight": line.weight + 1})
    told = key.model_copy(update={"criteria": [other_sentence, *key.criteria[1:]]})
    weighed = key.model_copy(update={"criteria": [other_weight, *key.criteria[1:]]})
    assert told.rubric_digest == key.rubric_digest
    assert weighed.rubric_digest != key.rubric_digest
    assert weighed.facts_digest == key.facts_digest
    assert key.model_copy(update={"facts": {}}).facts_digest != key.facts_digest


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_has_every_fact(name: str) -> None:
    """Issue, part 8: facts come from a reference record where no dataset is seeded."""
    check_facts(shipped_key(name), load_reference(SCENARIOS / name).facts)


def test_scenarios_are_found_by_name(tmp_path: Path) -> None:
    """Bad input, unknown scenario: the message lists those that there are."""
    assert find_scenario(SCENARIOS, "error-root-cause").is_dir()
    assert list_scenarios(tmp_path / "none") == ()
    for name in ("nothing", "../scenarios/error-root-cause", "", "/etc"):
        with pytest.raises(InvalidInput, match="error-root-cause"):
            find_scenario(SCENARIOS, name)
    with pytest.raises(InvalidInput, match="can't be read"):
        load_brief(tmp_path)
