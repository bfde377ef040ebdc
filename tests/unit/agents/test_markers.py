"""Reading values out of whatever form a server wraps its rows in."""

from __future__ import annotations

import html
import json

import pytest

from proctor.core.agents.markers import fill_markers, find_markers, marker_names

READING = "<<failures=8>><<host=db-1.example.internal>><<message=could not connect: i/o timeout>>"
VALUES = {"failures": "8", "host": "db-1.example.internal", "message": "could not connect: i/o timeout"}


@pytest.mark.parametrize(
    "wrapped",
    [
        READING,
        json.dumps({"columns": ["reading"], "rows": [[READING]]}),
        json.dumps({"content": json.dumps({"rows": json.dumps([READING])})}),
        json.dumps({"rows": [READING]}).replace("<", "\\u003c").replace(">", "\\u003E"),
        json.dumps(json.dumps([READING])).replace("<", "\\\\u003c").replace(">", "\\\\u003e"),
        f"| reading |\n|---|\n| {READING} |",
        f"reading\n{READING}\n",
        f"<table><tr><td>{html.escape(READING)}</td></tr></table>",
        f"1 row\nRow 1:\n──────\nreading: {READING}",
        f"reading\t{READING}\nLIMIT 1000 was added",
    ],
    ids=range(10),
)
def test_any_wrapping_will_do(wrapped: str) -> None:
    """Manifest, oracle's reading of two servers: a single regular expression finds the markers in any form."""
    assert find_markers(wrapped) == VALUES


@pytest.mark.parametrize(
    "text", ["", "<<>>", "<<a>>", "<<A=1>>", "<a=1>", "<<a=1>", "<<a=1\n>>", "<<a=" + "x" * 5000 + ">>", "<<1a=2>>"]
)
def test_what_is_no_marker_is_not_read(text: str) -> None:
    """Scripted models read only what a query put there."""
    assert find_markers(text) == {}


def test_the_first_value_counts_and_quotes_are_unescaped() -> None:
    """JSON inside JSON escapes quotes, once or more often."""
    assert find_markers("<<a=1>><<a=2>>") == {"a": "1"}
    assert find_markers(json.dumps(json.dumps('<<a=say "x">>'))) == {"a": 'say "x"'}


def test_values_are_never_read_as_places() -> None:
    """One pass: what a tool returned can't name another marker, or a pattern's group."""
    assert fill_markers("<<a>> and <<b>>", {"a": "<<b>>", "b": r"\1"}) == r"<<b>> and \1"
    assert marker_names("<<a>> <<b=1>> <<c>>") == {"a", "c"}


@pytest.mark.parametrize("hostile", ["<<" * 100_000, "<<a=" * 50_000, "\\" * 200_000, "<<a=1" + ">" * 100_000])
def test_hostile_results_are_read_in_linear_time(hostile: str) -> None:
    """Grading rule 4: RE2 on whatever a server returns."""
    assert len(find_markers(hostile)) <= 1
