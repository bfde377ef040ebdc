"""Pages of many cells, packed by several processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor.core.reports.page import render_page
from proctor.local.forks import spread_over_forks
from support.reports import make_facts


def test_a_page_is_the_same_whoever_packs_it(tmp_path: Path) -> None:
    """Report: thousands of cells are packed by all cores; the page is the one that a single process makes."""
    facts = make_facts(tmp_path, cells=520)
    assert render_page(facts, spread=spread_over_forks) == render_page(facts)


def test_work_sees_what_its_process_had_in_memory() -> None:
    """Report: what is worked on is inherited, never sent; results come back in order, from other processes."""
    unsendable = {number: (lambda number=number: number**2) for number in range(50)}
    done = list(spread_over_forks(lambda number: (unsendable[number](), os.getpid()), range(50)))
    assert [square for square, _ in done] == [number**2 for number in range(50)]
    if len(os.sched_getaffinity(0)) > 1:
        assert os.getpid() not in {pid for _, pid in done}


def test_a_fault_in_the_work_is_the_callers() -> None:
    """Report: an error in another process is raised here."""
    with pytest.raises(ZeroDivisionError):
        list(spread_over_forks(lambda number: 1 // number, range(3)))
