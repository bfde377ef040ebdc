"""The report's page: whole, small, true to run.json, and deaf to whatever anybody wrote into it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from proctor.core.ids import CellKey
from proctor.core.reports.page import render_page
from proctor.core.reports.page.advice import advise
from proctor.core.reports.page.bodies import Body, Shown, show_arguments, show_result
from proctor.core.reports.page.page import hash_source
from proctor.core.stats.observations import Reason
from proctor.core.stats.wording import signed
from proctor.core.trajectory.events import Status
from support.finished_runs import FinishedRun, Played, make_finished_run, suite_of
from support.reports import HOSTILE, gather, make_facts, poison, read_page

MOST = 2_000_000


def play_talkative(_cell: CellKey, chance: random.Random) -> Played:
    """Ten calls with results of some kilobytes of log lines, and now and then an error."""
    rows = "\n".join(
        f"2026-11-30 11:{chance.randint(0, 59):02} api span={chance.getrandbits(64):x} ms={chance.randint(1, 999)}"
        for _ in range(50)
    )
    tools = tuple(("run_query", Status.AGENT_ERROR if chance.random() < 0.1 else Status.OK) for _ in range(10))
    return Played(tools=tools, texts=rows, score=Decimal(chance.choice(["0.25", "0.5", "0.75", "1"])))


def play_noise(_cell: CellKey, chance: random.Random) -> Played:
    """Results that nothing can compress."""
    return Played(tools=(("run_query", Status.OK),) * 10, texts=chance.randbytes(4096).hex())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return make_finished_run(tmp_path_factory.mktemp("run"), suite=suite_of(40), play=play_talkative)


def test_nothing_is_loaded_and_nothing_runs_but_its_own_script(finished: FinishedRun) -> None:
    """D5: the policy forbids everything but this one style and this one script, by their hashes."""
    page = render_page(gather(finished))
    read = read_page(page)
    scripts = [text for name, attributes, text in read.elements if name == "script" and "type" not in attributes]
    styles = [text for name, _, text in read.elements if name == "style"]
    (policy,) = [attributes["content"] for name, attributes in read.tags if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert f"script-src {hash_source(scripts[0])};" in policy
    assert f"style-src {hash_source(styles[0])};" in policy
    assert (len(scripts), len(styles)) == (1, 1)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    for _, attributes in read.tags:
        assert not {"src", "style", "srcset", "action", "ping"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]


def test_every_cell_is_there_with_its_trajectory_and_marks(finished: FinishedRun) -> None:
    """M-A8, D5: a row and a trajectory for each cell, controls included."""
    read = read_page(render_page(gather(finished)))
    names = [cell["cell"] for cell in finished.cells]
    assert [cell["key"] for cell in read.unpacked("index")["cells"]] == names
    assert [cell["cell"] for cell in read.cells] == names
    rows = [attributes for name, attributes in read.tags if name == "tr" and "data-n" in attributes]
    assert [int(row["data-n"]) for row in rows] == list(range(len(names)))
    records = {str(record.key.cell): record for record in finished.records}
    for cell in read.cells:
        assert len(cell["events"]) == records[cell["cell"]].events
        assert [mark["id"] for mark in cell["marks"]]
        assert all(mark["why"] for mark in cell["marks"])
        assert cell["answer"]["text"].startswith("cart-service fails")


def test_numbers_are_those_of_run_json(finished: FinishedRun) -> None:
    """M-A10: scores, intervals, differences, controls and counts are the status's own."""
    status = finished.run.status
    read = read_page(render_page(gather(finished)))
    cells = read.texts("td")
    for arm in status.arms:
        assert arm.score is not None
        low, mean, high = (float(end) for end in (arm.score.low, arm.score.mean, arm.score.high))
        shown = f"{mean:.2f} {low:.2f} – {high:.2f}"
        assert shown in cells
        assert arm.consistency is not None
        assert f"{arm.consistency * 100:.0f} %" in cells
    for comparison in status.comparisons:
        assert comparison.delta is not None
        assert any(text.startswith(f"{signed(float(comparison.delta))} [") for text in cells)
        assert str(comparison.pairs) in cells
    assert status.summary in read.texts("p")
    assert status.verdict.value in read.texts("h1")
    index = read.unpacked("index")["cells"]
    for shown, known in zip(index, finished.cells, strict=True):
        assert shown["score"] == float(known["score"])
        assert shown["tokens"] == known["inputTokens"] + known["outputTokens"]
        assert shown["calls"] == known["toolCalls"]
    digests = status.digests
    identity = read.texts("dd")
    assert {digests.suite, digests.rubric, digests.gate, *digests.datasets.values()} <= set(identity)
    names = [name for name in read.texts("dt") if name.startswith("Dataset seed of ")]
    assert len(names) == len(digests.datasets)


def test_200_cells_fit_into_two_megabytes(tmp_path: Path) -> None:
    """Report ≤ 2 MB for 200 cells of ten calls, though nothing in them can be compressed; what is cut says so."""
    facts = make_facts(tmp_path, cells=200, play=play_noise)
    assert len(facts.judged_cells) == 200
    page = render_page(facts)
    assert len(page.encode()) <= MOST
    judged = [cell for cell in read_page(page).cells if "~" not in cell["cell"]]
    results = [event["said"] for cell in judged for event in cell["events"] if event["kind"] == "tool_call"]
    assert len(results) == 2000
    assert all(result["of"] > 8192 for result in results)


def test_results_of_some_kilobytes_are_there_whole(finished: FinishedRun) -> None:
    """M-A8: what tools of an ordinary run answered needs no other place to be read."""
    judged = [cell for cell in read_page(render_page(gather(finished))).cells if "~" not in cell["cell"]]
    results = [event["said"] for cell in judged for event in cell["events"] if event["kind"] == "tool_call"]
    assert len(results) == 400
    assert all(len(result["text"]) > 2000 and "of" not in result for result in results)


def test_hostile_text_makes_no_element_and_hides_nothing(tmp_path: Path) -> None:
    """S33: tags, quotes, comments, escapes, NUL, reversals and lone surrogates stay text, and visible."""
    clean = read_page(render_page(make_facts(tmp_path / "clean")))
    page = render_page(poison(make_facts(tmp_path / "hostile")))
    read = read_page(page)
    assert {name for name, _ in read.tags} <= {name for name, _ in clean.tags} | {"a", "strong", "span"}
    assert [name for name, _ in read.tags].count("script") == [name for name, _ in clean.tags].count("script")
    assert "{{ 7 * 7 }}" in page
    page.encode("utf-8")
    unpacked = [json.dumps(cell, ensure_ascii=False) for cell in read.cells]
    for text in (page, *unpacked):
        assert all(sign.isprintable() or sign in "\n\t" for sign in text)
    assert all("\\u001b[31m" in text.replace("\\\\", "\\") for text in unpacked)


@pytest.mark.parametrize("read", [show_arguments, show_result])
def test_no_depth_of_nesting_stops_a_report(read: Callable[[Body, int], Shown | None]) -> None:
    """S33: what can just be parsed may be too deep to be written again."""
    for depth in range(880, 1000):
        body = b'{"content": [%b%b]}' % (b"[" * depth, b"]" * depth)
        assert read(Body(body, "", len(body)), 100)


def test_a_body_that_was_cut_or_is_gone_says_how_large_it_is(tmp_path: Path) -> None:
    """M-B2, M-B8: the beginning is shown, with the size of the whole."""
    facts = make_facts(tmp_path, play=play_noise)
    shown = read_page(render_page(facts)).cells[-1]["events"]
    (cut, *_) = [event["said"] for event in shown if event["kind"] == "tool_call"]
    assert cut["of"] > 8192
    assert 0 < len(cut["text"]) < cut["of"]
    without = {cell: replace(one, bodies={}) for cell, one in facts.trajectories.items()}
    gone = read_page(render_page(replace(facts, trajectories=without))).cells[-1]
    (kept, *_) = [event["said"] for event in gone["events"] if event["kind"] == "tool_call"]
    assert kept["of"] == cut["of"]
    assert kept["text"].startswith('{"content"')


def test_a_cell_without_an_attempt_says_why(tmp_path: Path) -> None:
    """M-A6: a lost cell is in the table of those without a score, with its reason, and its row opens."""
    facts = make_facts(tmp_path)
    lost = replace(facts.cells[-1], state="infra_errored", score=None, outcome=None, reason="the sandbox was lost")
    read = read_page(render_page(replace(facts, cells=(*facts.cells[:-1], lost), trajectories={})))
    assert "the sandbox was lost" in read.texts("td")
    assert read.cells[-1]["grade"] == "No grade: the sandbox was lost"
    assert read.cells[-1]["events"] == []


def test_every_verdict_says_what_it_means_and_what_to_do(tmp_path: Path) -> None:
    """D5: no reader is left with a machine word alone."""
    facts = make_facts(tmp_path)
    reasons = [*map(str, Reason), "JudgeNotTrusted", "ServerNotReady", "DeadlineExceeded", "SomethingNew"]
    for verdict, reason in product(["Pass", "Fail", "Inconclusive", "Error", "Cancelled", "Pending"], reasons):
        advice = advise(replace(facts.result, verdict=verdict, reason=reason), facts.cells)
        assert advice.meaning.endswith(".")
        assert advice.hints
        assert all(hint.text for hint in advice.hints)


def test_replicates_used_are_said_where_they_are_adaptive(tmp_path: Path) -> None:
    """Adaptive runs say how many replicates they took, and of how many."""
    facts = make_facts(tmp_path)
    page = render_page(replace(facts, limits=replace(facts.limits, max_replicates=12)))
    assert "3; the suite starts with 3 and adds up to 12" in read_page(page).texts("dd")


def test_a_judge_is_shown_with_its_agreement(tmp_path: Path) -> None:
    """M-A9: who judged, how far its votes agree, and each mark's votes and rationale."""
    read = read_page(render_page(poison(make_facts(tmp_path))))
    assert any("unknown: one vote" in text for text in read.texts("dd"))
    marks = read.cells[0]["marks"]
    assert marks[1]["votes"] == [3, 2]
    assert marks[1]["score"] == "3"
    assert HOSTILE[:40] in marks[1]["why"]
