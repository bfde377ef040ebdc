"""Grading by checks: answers per second on one core.

    .venv/bin/python bench/grading.py

Grades the whole answers of every shipped rubric again and again; the figure is what a grader gets from one process.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "operator"), str(ROOT / "tests")]

from proctor.core.grading.checks import check_answer  # noqa: E402
from proctor.core.grading.facts import fill_text  # noqa: E402
from support.grading import NAMES, shipped_key, shipped_rubric  # noqa: E402 - the path must be set first

LEAST = 500
SECONDS = 3.0


def main() -> None:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in NAMES:
        started = time.perf_counter()
        rubric = shipped_rubric(name)
        ready = time.perf_counter() - started
        answers = [fill_text(answer.text, rubric.facts) for answer in shipped_key(name).answers]
        check_answer(rubric, answers[0])
        graded, size, started, used = 0, 0, time.perf_counter(), time.process_time()
        while (elapsed := time.perf_counter() - started) < SECONDS:
            for answer in answers:
                check_answer(rubric, answer)
            graded += len(answers)
            size += sum(map(len, answers))
        rate, of_cpu = graded / elapsed, graded / (time.process_time() - used)
        print(
            f"{name}: {rate:,.0f} answers/s ({rate / LEAST:.1f}x the {LEAST} asked for), {of_cpu:,.0f} per CPU-second; "
            f"mean answer {size // graded} characters; rubric ready in {ready * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
