"""What each tool of each arm showed, counted where the rows are: the same figures as `summarise_tools`, of any run.

Reading every call to count it would take half of what comparing two runs may take. That both give the same figures is
a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.ids import Arm, CellKey
from proctor.core.stats.tools import QUANTILE, ToolFigures
from proctor.core.trajectory.events import EventKind, Status
from proctor.core.trajectory.outcome import Outcome

_CELL = "scenario, server, model, replicate"
_FAILING = f"('{Status.AGENT_ERROR}', '{Status.SERVER_ERROR}', '{Status.DENIED}')"

# Grading rule 9: of each cell the last attempt that infrastructure did not fail.
_COUNTING = f"""
SELECT {_CELL}, max(attempt) AS attempt FROM attempts FINAL
WHERE run = {{run:String}} AND outcome != '{Outcome.INFRA_ERROR}' GROUP BY {_CELL}"""  # noqa: S608 - all constants

CELLS_QUERY = f"SELECT server, model, count() FROM ({_COUNTING}) GROUP BY server, model"  # noqa: S608 - as above

TOOLS_QUERY = f"""
SELECT * EXCEPT sorted_us FROM (SELECT
    server, model, name,
    sum(calls) AS calls,
    sumMap(statuses) AS statuses,
    sumMap(errors) AS errors,
    arraySort(arrayFlatten(groupArray(latencies))) AS sorted_us,
    if(empty(sorted_us), NULL, sorted_us[toUInt64(ceil({QUANTILE} * length(sorted_us)))]) AS p95_us,
    sum(result_bytes) AS result_bytes,
    count() AS used_in,
    sum(given_up) AS given_up_in
FROM
(
    SELECT
        {_CELL}, toString(name) AS name,
        count() AS calls,
        sumMap(map(toString(status), toUInt64(1))) AS statuses,
        sumMapIf(map(toString(error_class), toUInt64(1)), error_class != '') AS errors,
        groupArrayIf(latency_us, status != '{Status.INFRA_ERROR}') AS latencies,
        sum(result_bytes) AS result_bytes,
        countIf(status IN {_FAILING}) = 1 AND argMax(toString(status), seq) IN {_FAILING} AS given_up
    FROM events FINAL
    WHERE run = {{run:String}} AND kind = '{EventKind.TOOL_CALL}' AND ({_CELL}, attempt) IN ({_COUNTING})
    GROUP BY {_CELL}, name
)
GROUP BY server, model, name)
SETTINGS max_threads = 2"""  # noqa: S608 - as above


def parse_figures(tools: Sequence[tuple[Any, ...]], cells: Sequence[tuple[Any, ...]]) -> tuple[ToolFigures, ...]:
    """Read the rows of both queries; by arm and then by name, controls left out.

    Args:
        tools: of `TOOLS_QUERY`.
        cells: of `CELLS_QUERY`.
    """
    counts = {(server, model): count for server, model, count in cells}
    found = [
        ToolFigures(
            arm=Arm(server, model),
            tool=name,
            calls=calls,
            statuses={Status(status): count for status, count in statuses.items()},
            errors=errors,
            p95_ms=None if p95_us is None else p95_us / 1000,
            result_bytes=result_bytes,
            cells=counts[server, model],
            used_in=used_in,
            given_up_in=given_up_in,
        )
        for server, model, name, calls, statuses, errors, p95_us, result_bytes, used_in, given_up_in in tools
        if CellKey("", server, model, 1).control is None
    ]
    return tuple(sorted(found, key=lambda figures: (figures.arm, figures.tool)))
