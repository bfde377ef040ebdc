"""Which clauses an answer asserts, denies, doubts or only considers."""

from __future__ import annotations

import pytest

from proctor.core.grading.clauses import Force, read_clauses


def _read(text: str) -> list[tuple[str, str]]:
    return [(clause.force.value, clause.text.rstrip(".")) for clause in read_clauses(text, skip=lambda _: False)]


def _force_of(text: str, words: str) -> Force:
    found = [clause.force for clause in read_clauses(text, skip=lambda _: False) if words in clause.text]
    assert found, (words, _read(text))
    return found[0]


@pytest.mark.parametrize(
    ("text", "words", "force"),
    [
        ("The root cause is not the hot shard.", "hot shard", Force.DENIED),
        ("No escalation needed, the shard is not to blame.", "shard", Force.DENIED),
        ("It is A rather than B.", "rather than b", Force.DENIED),
        ("It is A rather than B.", "it is a", Force.ASSERTED),
        ("The root cause is A, not B.", "root cause is a", Force.ASSERTED),
        ("The root cause is A, not B.", "not b", Force.DENIED),
        ("Not B but A is the cause.", "a is the cause", Force.ASSERTED),
        ("The root cause is not B but A.", "the root cause is a", Force.ASSERTED),
        ("I ruled out B.", "b", Force.DENIED),
        ("We ruled the B errors out.", "b errors", Force.DENIED),
        ("We can't rule out B.", "b", Force.DOUBTED),
        ("B has not been ruled out.", "b", Force.DOUBTED),
        ("There is no evidence that B is involved.", "b", Force.DENIED),
        ("B is unrelated.", "b", Force.DENIED),
        ("B is not unrelated.", "b", Force.ASSERTED),
        ("It is no coincidence that B fails.", "b fails", Force.ASSERTED),
        ("A could not connect to its database.", "could not connect", Force.ASSERTED),
        ("A can't reach the host.", "reach", Force.ASSERTED),
        ("The host does not respond.", "respond", Force.ASSERTED),
        ("There is no index on tenant_id.", "no index", Force.ASSERTED),
        ("A scans the table without a usable index.", "index", Force.ASSERTED),
        ("It is not a missing index.", "index", Force.DENIED),
        ("A can't be the cause.", "cause", Force.DENIED),
        ("A can't explain this.", "explain", Force.DENIED),
        ("It might be B.", "b", Force.DOUBTED),
        ("B could also be the cause.", "b", Force.DOUBTED),
        ("Is B the cause?", "b", Force.CONSIDERED),
        ("Check whether B fails.", "b", Force.CONSIDERED),
        ("If the B fails, that happens.", "b fails", Force.CONSIDERED),
        ("Neither B nor C explains it.", "neither b", Force.DENIED),
        ("While B is loud, A is the cause.", "a is the cause", Force.ASSERTED),
        ("A fails; B is a red herring.", "a fails", Force.ASSERTED),
        ("A fails and B is not related.", "a fails", Force.ASSERTED),
        ("## Ruled out\nB shows 502s", "b shows", Force.DENIED),
        ("## Not the cause\n- B\n- C", "c", Force.DENIED),
        ("Ruled out:\n- B\n\nA is at fault.", "a is at fault", Force.ASSERTED),
        ("## Possible causes\n- B", "b", Force.DOUBTED),
        ("Ruled out: B (80 times); C (25 times).", "c (25", Force.DENIED),
        ("|what|cause?|\n|---|---|\n|B|no|", "b", Force.DENIED),
        ("|what|cause?|\n|---|---|\n|A|yes|", "a, is the root cause", Force.ASSERTED),
        ("Das CDN ist nicht die Ursache.", "cdn", Force.DENIED),
        ("## Evidence\n\nB\n---\n\nUnrelated\n---------\nC fails", "c fails", Force.DENIED),
        ("Unrelated observations\n\nB returns 502.", "b returns", Force.DENIED),
        ("A failed.\nNot related:\n- B returns 502", "b returns", Force.DENIED),
        ("A fails.\nHost: h\nRuled out: B.\nCause: A breaks", "a breaks", Force.ASSERTED),
        ("|field|value|\n|---|---|\n|Ruled out|B fails|", "b fails", Force.DENIED),
        ("What is it not? B.", "b", Force.DENIED),
        ("My queries timed out.", "queries", Force.CONSIDERED),
        ("The SQL tool failed with an error.", "tool", Force.CONSIDERED),
        ("We initially suspected B.", "b", Force.CONSIDERED),
        ("With everything else ruled out, A is left.", "everything else", Force.ASSERTED),
        ("Everything else is ruled out, including B.", "b", Force.DENIED),
        ("Nobody observed B.", "b", Force.DENIED),
        ("It is false that B fails.", "b fails", Force.DENIED),
        ("The idea that B fails is wrong.", "b fails", Force.DENIED),
        ("B cannot be attributed to C.", "b", Force.DENIED),
        ("The database did not come up.", "come up", Force.ASSERTED),
        ("1) A breaks 2) B is not related", "a breaks", Force.ASSERTED),
        ("Suspects:\n- A fails. This is the root cause.\n- B fails.", "a fails", Force.ASSERTED),
        ("Suspects:\n- A fails. This is the root cause.\n- B fails.", "b fails", Force.DOUBTED),
        ("I don't attribute this to B.", "b", Force.DENIED),
        ("Le CDN n'est pas en cause.", "cdn", Force.DENIED),
    ],
)
def test_force(text: str, words: str, force: Force) -> None:
    """Grading rule 3: negation is understood by clauses."""
    assert _force_of(text, words) is force


def test_a_heading_of_a_claim_lends_its_words() -> None:
    """Grading rule 3: "Root cause" above a list makes each item a claim, and a dash stands for a verb."""
    assert _read("## Root cause\nthe database") == [("asserted", "the root cause is the database")]
    assert _read("Root cause - the database")[-1] == ("asserted", "the root cause is the database")
    assert _read("Root causes: A fails; B fails")[-1] == ("asserted", "the root cause is b fails")


def test_hosts_numbers_and_abbreviations_do_not_end_sentences() -> None:
    """Grading: a full stop inside a name is no end."""
    sentences = {
        c.sentence for c in read_clauses("db-1.example.internal took 2.5 s, e.g. at 11:58.", skip=lambda _: False)
    }
    assert len(sentences) == 1


def test_sentences_that_were_told_are_skipped() -> None:
    """Grading rule 2: sentences found in the brief are dropped before checks run."""
    assert read_clauses("Told. Found.", skip=lambda sentence: sentence.startswith("told")) != []
    assert [c.text for c in read_clauses("Told. Found.", skip=lambda s: s.startswith("told"))] == ["found."]


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("The reader can't decode the record.", False),
        ("The records can't be parsed.", False),
        ("Calls that are not cached fail.", False),
        ("It fails for what isn't in the cache yet.", False),
        ("There is no index on that column.", False),
        ("It reads all rows without a usable index.", False),
        ("The column isn't indexed.", False),
        ("The statement does not use an index.", False),
        ("Its objects are never freed.", False),
        ("The heap does not come down again.", False),
        ("A collection can't reclaim it.", False),
        ("The reader doesn't fail.", True),
        ("It is not the cache.", True),
    ],
)
def test_what_a_system_does_not_do_is_no_denial(text: str, negated: bool) -> None:
    """Grading rule 3: a negation that tells of a failure, or of a state, denies nothing."""
    assert [clause.negated for clause in read_clauses(text, skip=lambda _: False)] == [negated]


def test_a_line_that_says_the_cause_states_it() -> None:
    """Grading rule 2: names in a row state nothing, but a cause with what it led to does."""
    listing = "heap leak, old generation, long pauses, pods, containers, threads"
    assert [clause.listing for clause in read_clauses(listing, skip=lambda _: False)] == [True]
    assert [clause.listing for clause in read_clauses(f"Cause: {listing}", skip=lambda _: False)] == [False]
