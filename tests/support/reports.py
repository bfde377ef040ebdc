"""Makers of what a report shows, and a reader of the page that came out."""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from proctor.core.ids import Arm, AttemptKey, CellKey
from proctor.core.reports.page import CellTrajectory, Fact, JudgeFacts, MarkFacts, RunFacts
from proctor.core.stats.tools import summarise_tools
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.reconcile.run_page import StoredParts, add_stored, build_run_facts
from support.finished_runs import FinishedRun, Play, make_finished_run, play_alike, suite_of

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>\"'`</style><!--"
    "\x1b[31m\x1b]0;title\x07\x00\u202egnihton\u2066\u200b{{ 7 * 7 }}{% raw %}<svg/onload=alert(4)>\ud800"
)


def gather(run: FinishedRun, **changes: Any) -> RunFacts:
    """Return what the page of a made run shows, its trajectories straight from the maker."""
    events: dict[AttemptKey, list[Event]] = defaultdict(list)
    bodies: dict[str, bytes] = {}
    trajectories: dict[CellKey, CellTrajectory] = {}
    for batch in run.batches():
        bodies.update(batch.blobs)
        for key, event in batch.events:
            events[key].append(event)
        for record in batch.attempts:
            trajectories[record.key.cell] = CellTrajectory(
                record=record, events=tuple(events[record.key]), bodies=bodies
            )
    tools = summarise_tools((cell, one.events) for cell, one in trajectories.items())
    parts = StoredParts(trajectories=trajectories, tools=tools)
    facts = build_run_facts(run.run, run.suite, run.cells, version="1.2.3")
    return replace(add_stored(facts, parts), **changes)


def make_facts(data_dir: Path, *, cells: int = 12, play: Play = play_alike, **suite: Any) -> RunFacts:
    """Return what the page of a finished run of about so many cells shows."""
    return gather(make_finished_run(data_dir, suite=suite_of(cells, **suite), play=play))


def poison(facts: RunFacts) -> RunFacts:
    """Return the same run with hostile text wherever an agent, a model, a server or a file has a say."""
    keys = {cell.key: replace(cell.key, scenario=HOSTILE, model=f"{HOSTILE}{cell.key.model}") for cell in facts.cells}
    arm = Arm(HOSTILE, HOSTILE)
    mark = MarkFacts(id=HOSTILE, weight="2", why=HOSTILE, judged=False, polarity="negative")
    judged = MarkFacts(id=HOSTILE, weight="1", why=HOSTILE, judged=True, score="3", votes=(3, 2))
    cells = tuple(
        replace(cell, key=keys[cell.key], reason=HOSTILE, ungraded=HOSTILE, remark=HOSTILE, marks=(mark, judged))
        for cell in facts.cells
    )
    result = replace(
        facts.result,
        summary=HOSTILE,
        arms=tuple(replace(each, arm=arm) for each in facts.result.arms),
        by_scenario=tuple(replace(each, arm=arm, scenario=HOSTILE) for each in facts.result.by_scenario),
        comparisons=tuple(replace(each, candidate=arm, baseline=arm) for each in facts.result.comparisons),
    )
    return replace(
        facts,
        result=result,
        suite=HOSTILE,
        cells=(replace(cells[0], score=None, state="ungraded"), *cells[1:]),
        controls=tuple(replace(each, scenario=HOSTILE, server=HOSTILE) for each in facts.controls),
        judge=JudgeFacts(model=HOSTILE, votes=3, agreement=None, input_tokens=1, output_tokens=1),
        tools=tuple(replace(each, arm=arm, tool=HOSTILE, errors={HOSTILE: 1}) for each in facts.tools),
        trajectories={keys[cell]: _poison_trajectory(one) for cell, one in facts.trajectories.items()},
        notes=(HOSTILE,),
        identity=(Fact(HOSTILE, HOSTILE),),
    )


def _poison_trajectory(one: CellTrajectory) -> CellTrajectory:
    events = tuple(
        replace(event, name=HOSTILE, request_preview=HOSTILE, result_preview=HOSTILE, **_failing(event))
        for event in one.events
    )
    record = replace(one.record, reason=HOSTILE)
    bodies = {digest: _poison_body(body) for digest, body in one.bodies.items()}
    return CellTrajectory(record=record, events=events, others=(record,), bodies=bodies)


def _failing(event: Event) -> dict[str, Any]:
    if event.kind is not EventKind.TOOL_CALL:
        return {}
    return {"status": Status.SERVER_ERROR, "error_class": HOSTILE}


def _poison_body(body: bytes) -> bytes:
    """Return a body of the same form: JSON stays JSON, so that it is read as such and its texts are shown."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return HOSTILE.encode("utf-8", "surrogatepass")
    if isinstance(parsed, dict) and "content" in parsed:
        content = [{"type": "text", "text": HOSTILE}, {"type": "tool_use", "name": HOSTILE}, {"type": HOSTILE}]
        return json.dumps({"content": content}).encode()
    return json.dumps({HOSTILE: HOSTILE}).encode()


@dataclass
class ReadPage(HTMLParser):
    """A page as a parser that knows nothing of us sees it.

    Attributes:
        tags: every element with its attributes, in order.
        texts: text of every element that has no child, by its id or data attribute where it has one.
    """

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, dict[str, str], list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag not in {"meta", "link", "br", "input", "img"}:
            self._open.append((tag, attributes, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        for _, _, parts in self._open:
            parts.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            name, attributes, parts = self._open.pop()
            self.elements.append((name, attributes, "".join(parts)))
            if name == tag:
                return

    def texts(self, tag: str) -> list[str]:
        return [" ".join(text.split()) for name, _, text in self.elements if name == tag]

    def unpacked(self, name: str) -> Any:
        (packed,) = [
            text for tag, attributes, text in self.elements if tag == "script" and attributes.get("id") == name
        ]
        return json.loads(zlib.decompress(base64.b64decode(packed, validate=True), wbits=-15))

    @property
    def cells(self) -> list[dict[str, Any]]:
        """What the shards have of every cell, in the order of the table."""
        index = self.unpacked("index")
        names = [attributes["id"] for _, attributes in self.tags if attributes.get("id", "").startswith("shard-")]
        shards = [self.unpacked(name) for name in names]
        places = [divmod(cell["place"], index["perShard"]) for cell in index["cells"]]
        return [shards[shard][place] for shard, place in places]


def read_page(page: str) -> ReadPage:
    parser = ReadPage()
    parser.feed(page)
    parser.close()
    return parser
