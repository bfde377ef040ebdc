"""What the gateway of one run is made of; `bootstrap` gives the parts, tests give makers' parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from proctor.api.suite import EvalSuiteSpec
from proctor.clock import Clock, utc_now
from proctor.gateway.attempt import Attempt
from proctor.gateway.patience import Patience
from proctor.gateway.ports import BriefText, Closable, OpenProvider, OpenScripted, Probe, RecordSink

DEFAULT_HOST_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "gateway", "proctor"})


@dataclass(frozen=True, kw_only=True)
class GatewayContext:
    """The parts of a gateway.

    Attributes:
        run: the EvalRun's uid.
        suite: the frozen suite.
        run_key: signs cell tokens.
        operator_token: opens the control doors.
        sockets_dir: where the sockets are; nobody else may enter it.
        sink: takes the record.
        brief_of: gives what an agent is told about a scenario.
        open_scripted: makes the policy of a scripted cell.
        open_provider: makes the connection of a cell to its provider.
        open_toolbox: makes an attempt's session with the server under test; it connects when it is first used.
        patience: how an overloaded provider is waited for.
        probe: starts every server once and lists its tools.
        host_names: names by which the gateway may be called; any other ``Host`` is refused.
        clock: tells the time of day.
    """

    run: str
    suite: EvalSuiteSpec
    run_key: bytes
    operator_token: str
    sockets_dir: Path
    sink: RecordSink
    brief_of: Callable[[str], BriefText]
    open_scripted: OpenScripted
    open_provider: OpenProvider
    open_toolbox: Callable[[Attempt], Closable] | None = None
    probe: Probe | None = None
    patience: Patience = field(default_factory=Patience)
    host_names: frozenset[str] = DEFAULT_HOST_NAMES
    clock: Clock = utc_now
