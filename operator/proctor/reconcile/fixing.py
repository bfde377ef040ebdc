"""Digests that a run is fixed to before its first cell; a change in the middle is an Error, never a mixed result."""

from __future__ import annotations

from collections import defaultdict

from proctor.api.run import RunDigests
from proctor.core.digests import digest_json
from proctor.reconcile.observed import Observed
from proctor.reconcile.snapshot import RunSnapshot


def read_digests(run: RunSnapshot, observed: Observed) -> RunDigests:
    """Return the digests that can be seen now; what is not known yet is left out."""
    return RunDigests(
        suite=run.suite_digest,
        datasets={name: seen.digest for name, seen in observed.datasets.items() if seen.digest},
        rubric=observed.grader.rubric_digest or None,
        judge=observed.grader.judge_digest or None,
        gate=digest_json(run.suite.gate.to_file()),
        tools=_read_tools(observed),
    )


def _read_tools(observed: Observed) -> dict[str, str]:
    by_server: defaultdict[str, set[str]] = defaultdict(set)
    for probe in observed.probes or ():
        if probe.tools_digest:
            by_server[probe.server].add(probe.tools_digest)
    # A server may offer other tools for other datasets: then the set of its lists is what is pinned.
    return {
        server: next(iter(digests)) if len(digests) == 1 else digest_json(sorted(digests))
        for server, digests in by_server.items()
    }


def is_complete(run: RunSnapshot, digests: RunDigests) -> bool:
    """Tell whether everything is known that has to be fixed before the first cell."""
    return (
        digests.rubric is not None
        and (digests.judge is not None or run.suite.judge.anthropic is None)
        and set(digests.datasets) == set(run.scenarios)
        and set(digests.tools) == {server.name for server in run.suite.servers}
    )


def is_fixed(run: RunSnapshot) -> bool:
    """Tell whether the run's digests were written; no cell starts before."""
    return run.status.digests.suite is not None


def find_change(fixed: RunDigests, seen: RunDigests) -> str | None:
    """Say what differs from what was fixed; None if nothing that is known differs."""
    pairs = [
        ("the frozen suite", fixed.suite, seen.suite),
        ("the rubric", fixed.rubric, seen.rubric),
        ("the judge", fixed.judge, seen.judge),
        ("the gate", fixed.gate, seen.gate),
        *((f"dataset {name}", fixed.datasets.get(name), digest) for name, digest in sorted(seen.datasets.items())),
        *((f"the tool list of {name}", fixed.tools.get(name), digest) for name, digest in sorted(seen.tools.items())),
    ]
    for what, before, after in pairs:
        if before is not None and after is not None and before != after:
            return f"{what} changed from {before[:12]} to {after[:12]} after the first cell was prepared"
    return None
