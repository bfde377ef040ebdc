"""The whole page: one file that loads nothing, runs nothing but its own script, and shows every text as text."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from proctor.core.ids import CellKey
from proctor.core.reports.inert import make_inert
from proctor.core.reports.page import numbers, plots, sections
from proctor.core.reports.page.advice import advise
from proctor.core.reports.page.facts import CellFacts, RunFacts
from proctor.core.reports.page.shards import CELLS_PER_SHARD, Shard, ShardPlan, pack

_PACKAGE = "proctor.core.reports.page"
_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def page_policy() -> str:
    """Return the content security policy of every page: nothing but its own script and style, by their hashes."""
    script, style = _read_asset("report.js"), _read_asset("report.css")
    return _POLICY.format(script=hash_source(script), style=hash_source(style))


def render_page(run: RunFacts, *, packed: Sequence[str] | None = None) -> str:
    """Return a run's page.

    Args:
        run: what there is to show; any text in it may be hostile.
        packed: the shards of `ShardPlan.of` its cells, where somebody packed them; else it is done here.
    """
    plan = ShardPlan.of(run.cells)
    if packed is None:
        packed = [plan.pack(number, run.trajectories) for number in range(len(plan.shards))]
    script, style = _read_asset("report.js"), _read_asset("report.css")
    difference_axis, differences = sections.tabulate_differences(run)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            run=run,
            result=run.result,
            advice=advise(run.result, run.cells),
            scores=sections.tabulate_scores(run),
            score_axis=plots.score_axis(run.limits.minimum),
            differences=differences,
            difference_axis=difference_axis,
            tools=sections.tabulate_tools(run),
            most_tools=sections.MOST_TOOLS,
            outcomes=sections.tabulate_outcomes(run),
            costs=sections.tabulate_costs(run),
            controls_in_line=all(each.in_line(run.limits) for each in run.controls),
            lost=sections.list_lost(run),
            replicates=sections.count_replicates(run),
            total_tokens=sum(cell.tokens for cell in run.cells),
            total_usd=_total_usd(run),
            index=Shard(-1, pack(_index(run, plan.places))),
            shards=[Shard(number, text) for number, text in enumerate(packed)],
            numbers=numbers,
            width=plots.WIDTH,
            height=plots.HEIGHT,
            policy=page_policy(),
            # Both come from this package and were written by nobody else.
            script=Markup(script),  # noqa: S704 - as said above
            style=Markup(style),  # noqa: S704 - as said above
        )
    )


def hash_source(text: str) -> str:
    """Return an inline element's text as a source of a content security policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every expression of every template passes here: no text reaches the page that could hide or reverse anything.
        finalize=_finalize,
    )
    environment.filters["words"] = lambda value: str(value).replace("_", " ")
    environment.filters["link"] = _link_cell
    return environment


def _link_cell(key: object) -> str:
    """Return the address of a cell within the page."""
    return f"#cell={quote(make_inert(str(key)), safe='')}"


def _finalize(value: object) -> str:
    # Whatever it is, what it says of itself may be a stranger's text; only what templates made is more than text.
    return value if isinstance(value, Markup) else make_inert(str(value))


@functools.cache
def _read_asset(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("templates", name).read_text("utf-8")


def _total_usd(run: RunFacts) -> str:
    prices = [cell.usd for cell in run.judged_cells if cell.outcome is not None]
    known = [price for price in prices if price is not None]
    return numbers.render_usd(sum(known, start=known[0] * 0) if known and len(known) == len(prices) else None)


def _index(run: RunFacts, places: Mapping[CellKey, int]) -> dict[str, object]:
    """Return what the script sorts and filters by; the rows themselves are in the page."""
    return {
        "run": run.result.run,
        "perShard": CELLS_PER_SHARD,
        "cells": [_index_cell(cell, places[cell.key]) for cell in run.cells],
    }


def _index_cell(cell: CellFacts, place: int) -> dict[str, object]:
    return {
        "key": make_inert(str(cell.key)),
        "place": place,
        "scenario": make_inert(cell.key.scenario),
        "arm": make_inert(str(cell.key.arm)),
        "ended": (cell.outcome.value if cell.outcome else cell.state).replace("_", " "),
        "score": None if cell.score is None else float(cell.score),
        "calls": cell.tool_calls,
        "errors": cell.tool_errors,
        "tokens": cell.tokens,
        "usd": None if cell.usd is None else float(cell.usd),
        "seconds": cell.seconds,
    }
