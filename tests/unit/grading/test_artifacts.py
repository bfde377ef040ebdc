"""Answers that are artifacts: marks follow from rows, whatever the answer says of itself."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Iterable
from typing import Any

from proctor.core.grading.artifact_answer import read_json
from proctor.core.grading.artifacts import check_artifact
from proctor.core.grading.dashboard_answer import Submission
from proctor.core.grading.marks import Programmatic, Ungraded
from proctor.core.grading.rows import Extent, Fetched, Question, Refused, Rows
from proctor.core.scenarios.answer import load_answer
from proctor.core.scenarios.artifact import DashboardKey
from proctor.core.scenarios.brief import load_brief
from proctor.core.scenarios.document import parse_document
from proctor.errors import Retryable
from support.playing import ROOT, SCENARIOS

KEY = DashboardKey.model_validate(
    {
        "kind": "dashboards",
        "given": {"service": "web"},
        "checks": [
            {
                "id": "severe",
                "weight": 3,
                "about": "Errors in any case.",
                "kind": "tile-equals",
                "tile": "errors",
                "reference": "SELECT sev",
            },
            {
                "id": "one-service",
                "weight": 2,
                "about": "The filter narrows.",
                "kind": "tile-equals",
                "tile": "routes",
                "within": "0.1",
                "given": {"service": "orders"},
                "reference": "SELECT routes",
            },
            {
                "id": "choice",
                "weight": 1,
                "about": "What to choose from.",
                "kind": "filter-offers",
                "filter": "service",
                "reference": "SELECT names",
            },
            {
                "id": "click",
                "weight": 1,
                "about": "A click narrows.",
                "kind": "links",
                "tile": "errors",
                "filter": "service",
            },
            {
                "id": "internal",
                "weight": 2,
                "about": "No internals.",
                "kind": "tiles-exclude",
                "reference": "SELECT internal",
            },
            {"id": "cpu", "weight": 1, "about": "No CPU in it.", "kind": "declines", "request": "cpu"},
        ],
    }
)
WHOLE: dict[str, Fetched] = {
    "SELECT sev": Rows((("orders", "12"), ("web", "3"))),
    "SELECT routes": Rows((("/a", "100", "2026-11-30 11:05:00"),)),
    "SELECT names": Rows((("orders",), ("web",))),
    "SELECT internal": Rows((("cron",),)),
    "SELECT right": Rows((("web", 3), ("ORDERS", 12.0))),
    "SELECT constant": Rows((("web", 3), ("orders", 12))),
    "SELECT wider": Rows((("web", 3), ("orders", 12), ("Cron", 9))),
    "SELECT near": Rows((("/a", 109.5, "2026-11-30 11:05:00.000000000"),)),
    "SELECT far": Rows((("/a", "9E999999999", "2026-11-30 11:05:00"),)),
    "SELECT wrong": Refused("unknown 'table'\n" + "x" * 900),
}
HALF = WHOLE | {"SELECT sev": Rows((("web", "1"),)), "SELECT right": Rows((("web", 1),))}
NONE = dict.fromkeys(WHOLE, Rows(())) | {"SELECT constant": WHOLE["SELECT constant"]}


class Table:
    """A dataset that returns what is written down, and remembers what it was asked."""

    def __init__(self, rows: dict[str, Fetched] = WHOLE, *, away: bool = False) -> None:
        self.rows, self.away = rows, away
        self.asked: list[Question] = []

    async def fetch(self, questions: Iterable[Question]) -> dict[Question, Fetched]:
        self.asked = list(questions)
        if self.away:
            raise Retryable("the dataset is away")
        told = {Extent.WHOLE: self.rows, Extent.HALF: HALF, Extent.NONE: NONE}
        return {one: told[one.extent][one.sql] for one in self.asked}


def submit(errors: str = "right", routes: str = "near", names: str = "names", **changes: Any) -> bytes:
    link = {"board": "detail", "filter": "service"}
    tiles = [{"id": "errors", "title": "Errors", "kind": "table", "sql": f"SELECT {errors}", "link": link}]
    detail = [{"id": "routes", "title": "Routes", "kind": "table", "sql": f"SELECT {routes}"}]
    filters = [{"id": "service", "sql": f"SELECT {names}"}]
    boards = [
        {"id": "overview", "title": "Overview", "tiles": tiles},
        {"id": "detail", "title": "One service", "filters": filters, "tiles": detail},
    ]
    return json.dumps({"boards": boards, "declined": [{"id": "cpu", "reason": "none is kept"}]} | changes).encode()


def grade(answer: bytes, source: Table | None) -> Programmatic | Ungraded:
    return asyncio.run(check_artifact(KEY, answer, source))


def unmet(answer: bytes) -> dict[str, str]:
    graded = grade(answer, Table())
    assert isinstance(graded, Programmatic)
    return {mark.id: mark.why for mark in graded.checks if not mark.satisfied}


def score(answer: bytes) -> float:
    graded = grade(answer, Table())
    assert isinstance(graded, Programmatic)
    return float(graded.score)


def test_rows_earn_whatever_form_they_have() -> None:
    """P29: other order, case, number format and a share off where that is allowed are the same rows."""
    assert score(submit()) == 1


def test_what_is_asked_is_narrowed_as_the_check_says() -> None:
    """P29: a tile is asked with the check's value of a filter that its own dashboard has, and with no other."""
    table = Table()
    grade(submit(), table)
    asked = {(one.sql, one.given) for one in table.asked}
    assert ("SELECT near", (("service", "orders"),)) in asked
    assert ("SELECT routes", (("service", "orders"),)) in asked
    assert {given for sql, given in asked if sql == "SELECT right"} == {()}


def test_a_constant_earns_nothing() -> None:
    """P29: rows that are written down instead of computed do not follow when half of the data is left out."""
    assert set(unmet(submit(errors="constant"))) == {"severe"}
    assert set(unmet(submit(names="constant"))) == {"choice"}


def test_wrong_rows_and_internal_services_are_told_apart() -> None:
    """P29: too many rows, an internal service in any tile, and SQL that is refused each cost their check."""
    wider = unmet(submit(errors="wider"))
    assert set(wider) == {"severe", "click", "internal"}
    assert "'Cron'" in wider["internal"]
    refused = unmet(submit(errors="wrong"))["severe"]
    assert "unknown" in refused
    assert "\n" not in refused
    assert len(refused) < 400
    assert set(unmet(submit(routes="far"))) == {"one-service"}


def test_declining_earns_only_beside_a_right_tile_and_without_an_invention() -> None:
    """P29: what can't be shown is declined, not invented; and who declines everything has found nothing."""
    declined = [{"id": name, "reason": "no"} for name in ("cpu", "errors", "routes")]
    assert score(submit(errors="wrong", routes="wrong", names="wrong", declined=declined)) == 0
    assert set(unmet(submit(declined=[]))) == {"cpu"}
    made_up = json.loads(submit())
    made_up["boards"][0]["tiles"].append({"id": "cpu", "title": "CPU", "kind": "line", "sql": "SELECT right"})
    assert set(unmet(json.dumps(made_up).encode())) == {"cpu"}


def test_two_tries_at_one_request_are_none() -> None:
    """P29: an answer commits to one query per request; one that submits several is not read."""
    twice = json.loads(submit())
    twice["boards"][0]["tiles"] *= 2
    assert score(json.dumps(twice).encode()) == 0


def test_what_is_no_artifact_is_nothing_and_asks_nothing() -> None:
    """P29: the brief pasted back, prose, and broken JSON score 0, with no dataset at hand."""
    for answer in (
        b"",
        b"Build a dashboard.",
        b'{"boards": []}',
        b"{" * 9000,
        b"\xff",
        b"[" * 60_000,
        b"x" * 900_000,
    ):
        graded = grade(answer, None)
        assert isinstance(graded, Programmatic)
        assert graded.score == 0


def test_what_is_shown_is_of_the_form() -> None:
    """P29, docs: the boards that the page and the brief show are read, and the checks that the page shows are a key."""
    page = (ROOT / "docs" / "grading.md").read_text()
    shown = page.split("```json boards\n")[1].split("```")[0]
    brief = load_brief(SCENARIOS / "dashboard-build").prompt
    told = brief[brief.index('{"boards"') : brief.index("`kind` is")]
    for text in (shown, told):
        assert isinstance(read_json(Submission, text.encode(), "boards"), Submission)
    checks = (ROOT / "docs" / "scenarios.md").read_text().split("criteria: []\nartifact:\n")[1].split("```")[0]
    assert len(parse_document(textwrap.dedent(checks), DashboardKey, "docs/scenarios.md").checks) == 5


def test_every_check_of_a_brief_is_asked_for() -> None:
    """P29: what earns is what the brief asks for, by its id."""
    key = load_answer(SCENARIOS / "dashboard-build").artifact
    brief = load_brief(SCENARIOS / "dashboard-build").prompt
    assert key is not None
    for check in key.checks:
        named = getattr(check, "tile", getattr(check, "filter", getattr(check, "request", None)))
        assert named is None or f"`{named}`" in brief, check.id


def test_trouble_with_the_dataset_is_no_grade() -> None:
    """Grading rule 5: never 0 where the dataset is away, missing, or the key's own query is refused or empty."""
    at_fault = (Refused("no such user"), Rows(()))
    for source in (None, Table(away=True), *(Table(WHOLE | {"SELECT sev": one}) for one in at_fault)):
        assert isinstance(grade(submit(), source), Ungraded)
