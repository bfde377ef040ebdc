"""What ends a run before its cells have: a request, a deadline, or something that no retry can mend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from proctor.api.run import Verdict
from proctor.reconcile.fixing import find_change, is_fixed, read_digests
from proctor.reconcile.observed import GraderState, Isolation, Observed, Readiness
from proctor.reconcile.preparing import MAX_STARTS
from proctor.reconcile.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True)
class Halt:
    """The verdict that a run is stopped with.

    Attributes:
        reason: machine word.
        summary: why, and what to do, for people.
    """

    verdict: Verdict
    reason: str
    summary: str


def find_halt(run: RunSnapshot, observed: Observed, now: datetime) -> Halt | None:
    """Return the first thing that ends the run now; None if it may go on.

    A request to cancel comes first: whoever asked for it learns that it was done, whatever else is wrong.
    """
    if run.cancel:
        return Halt(Verdict.CANCELLED, "CancelRequested", "cancelled by request; grades and trajectories are kept")
    reason_and_summary = next(_find_errors(run, observed, now), None)
    if reason_and_summary is None:
        return None
    return Halt(Verdict.ERROR, *reason_and_summary)


def _find_errors(run: RunSnapshot, observed: Observed, now: datetime) -> Iterator[tuple[str, str]]:
    for fault in observed.faults:
        yield fault.reason, fault.message
    yield from _find_dataset_errors(run, observed)
    if observed.isolation is Isolation.BROKEN:
        yield "NetworkNotEnforced", f"sandboxes are not isolated: {observed.isolation_message}"
    yield from _find_process_errors(observed)
    for probe in observed.probes or ():
        if probe.reason:
            yield probe.reason, f"on {probe.scenario}: {probe.message}"  # which names the server
    change = find_change(run.status.digests, read_digests(run, observed)) if is_fixed(run) else None
    if change is not None:
        yield "DigestChanged", change
    if now > run.deadline:
        seconds = run.suite.limits.active_deadline_seconds
        yield "DeadlineExceeded", f"not finished after limits.activeDeadlineSeconds = {seconds} s"


def _find_dataset_errors(run: RunSnapshot, observed: Observed) -> Iterator[tuple[str, str]]:
    for name in run.scenarios:
        seen = observed.datasets.get(name)
        if seen is not None and seen.prepared is Readiness.FAILED:
            yield "SeedingFailed", f"dataset of {name} could not be seeded: {seen.message}"
        if seen is not None and seen.served is Readiness.FAILED:
            yield "DatasetUnavailable", f"dataset of {name} could not be served: {seen.message}"


def _find_process_errors(observed: Observed) -> Iterator[tuple[str, str]]:
    gateway = observed.gateway
    used_up = gateway.state is Readiness.ABSENT and gateway.starts >= MAX_STARTS
    if gateway.state is Readiness.FAILED or used_up:
        yield "GatewayFailed", f"the gateway ended after {gateway.starts} starts: {gateway.message}"
    grader = observed.grader
    if grader.fault:
        yield "JudgeNotTrusted", grader.fault
    if grader.state is GraderState.FAILED and grader.starts >= MAX_STARTS:
        yield "GraderFailed", f"the grader ended after {grader.starts} starts: {grader.message}"
