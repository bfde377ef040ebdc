"""One attempt of a cell while it is open: its budget, its record, its answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from proctor.api.server import Server
from proctor.core.digests import digest_bytes
from proctor.core.gatewaypolicy.budget import Budget
from proctor.core.gatewaypolicy.refusal import RefusalCode, Refused, refuse_over
from proctor.core.gatewaypolicy.tokens import TokenClaims
from proctor.core.gatewaypolicy.waiting import WaitLedger
from proctor.core.ids import AttemptKey
from proctor.core.trajectory.deciding import AttemptFacts, decide_outcome
from proctor.core.trajectory.events import Event, EventKind, Status
from proctor.core.trajectory.outcome import AnswerSource, AttemptRecord, ProcessExit
from proctor.errors import ProctorError
from proctor.gateway.model_side import ModelSide
from proctor.gateway.ports import Closable
from proctor.gateway.recorder import EventFields, Recorder, Span

logger = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 64 * 1024
_MAX_ANSWERS = 100
_MAX_DENIED = 1000
"""Refusals after which an attempt's further ones are not recorded: a loop of them must not fill the store."""

_MAX_DENIED_BYTES = 64 * 1024
"""What is kept of a refused request's body, for the same reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpec:
    """What an attempt is made of; fixed when it opens.

    Attributes:
        key: run, cell and attempt.
        server: the MCP server under test.
        opened: when its token began to hold.
        claims: what its token stands for.
        deadline_seconds: how long the agent may work, not counting waits for the provider.
    """

    key: AttemptKey
    server: Server
    opened: datetime
    claims: TokenClaims
    deadline_seconds: int


@dataclass(slots=True)
class Answer:
    """The final answer, as far as it is known."""

    put: bytes | None = None
    last_text: bytes = b""
    puts: int = 0

    @property
    def source(self) -> AnswerSource:
        """Where the answer comes from: what was sent wins over what was said."""
        if self.put is not None:
            return AnswerSource.PUT
        return AnswerSource.LAST_TEXT if self.last_text else AnswerSource.NONE

    @property
    def body(self) -> bytes:
        """The answer; empty without one."""
        return self.put if self.put is not None else self.last_text


@dataclass(slots=True, kw_only=True)
class Attempt:
    """An open attempt; every door works on one.

    Attributes:
        spec: what it is made of.
        recorder: its trajectory.
        budget: what it may still use.
        model: the one model that it may call.
        toolbox: its session with the server under test.
        waits: when it waited for an overloaded provider.
        answer: the final answer so far.
        requests: requests with a good token.
        at_work: how many of them are being answered; streams that only wait for news don't count.
        infra_failure: why infrastructure failed it for good; empty while it did not.
        trouble: why the last model call failed, where that was the provider's doing; empty once one was answered.
        tools_digest: digest of the tool list that it was served.
        source: whoever sent its first request: nobody else may use its token; None before that.
    """

    spec: AttemptSpec
    recorder: Recorder
    budget: Budget
    model: ModelSide
    toolbox: Closable | None = None
    waits: WaitLedger = field(default_factory=WaitLedger)
    answer: Answer = field(default_factory=Answer)
    requests: int = 0
    at_work: int = 0
    infra_failure: str = ""
    trouble: str = ""
    tools_digest: str = ""
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    started_ns: int = field(default_factory=time.monotonic_ns)
    source: str | None = None
    _seen_ns: int = 0

    @property
    def key(self) -> AttemptKey:
        """Run, cell and attempt."""
        return self.spec.key

    @property
    def server(self) -> Server:
        """The MCP server under test."""
        return self.spec.server

    @property
    def ended(self) -> bool:
        """Whether the attempt is over: nothing can be added to its record."""
        return self.recorder.sealed

    @property
    def waited_us(self) -> int:
        """Microseconds spent waiting for an overloaded provider so far."""
        return self.waits.total_us(self.monotonic_ns())

    @property
    def active_us(self) -> int:
        """Microseconds since it opened, without those spent waiting for an overloaded provider."""
        return (self.monotonic_ns() - self.started_ns) // 1000 - self.waited_us

    @property
    def quiet_us(self) -> int:
        """Microseconds since its last request was answered; 0 while one is."""
        return 0 if self.at_work else (self.monotonic_ns() - max(self._seen_ns, self.started_ns)) // 1000

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a request while it is answered."""
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self._seen_ns = self.monotonic_ns()

    def bind(self, source: str) -> None:
        """Note who sent the first request; only now the agent's time begins, however long its sandbox took to come."""
        self.source = source
        self.started_ns = self.monotonic_ns()

    def start(self) -> Span:
        """Note that something begins; hand the span to `record` when it is over."""
        return self.recorder.start()

    def record(self, **fields: Unpack[EventFields]) -> Event | None:
        """Add an event that is over; None if it came too late, or could not be kept.

        An attempt whose record has a hole is worth nothing, so that is infrastructure's failure of the whole attempt.
        """
        if self.recorder.sealed:
            return None
        try:
            return self.recorder.record(**fields)
        except ProctorError as error:
            logger.exception("an event could not be kept", extra={"attempt": self.key.opaque_id})
            self.infra_failure = self.infra_failure or f"the record could not be kept: {error}"
            return None

    def deny(self, refused: Refused, *, name: str = "", span: Span | None = None, request: bytes = b"") -> None:
        """Record a refusal, once."""
        if refused.recorded:
            return
        refused.recorded = True
        if self.recorder.tally.denied < _MAX_DENIED:
            self.record(
                kind=EventKind.DENIED,
                status=Status.DENIED,
                name=name,
                error_class=refused.code,
                span=span,
                request=request[:_MAX_DENIED_BYTES],
            )

    def check_untold(self, text: bytes) -> None:
        """Refuse what would take the attempt's token beyond this gateway: only who follows a stranger's words tells it.

        Raises:
            Refused: the token is in it.
        """
        if self.recorder.holds_secret(text):
            raise Refused(RefusalCode.TOKEN_TOLD, "the token is for the header only: it is told to nobody", status=403)

    def take_call(self) -> None:
        """Take one tool call from the budget.

        Raises:
            Refused: a limit forbids it.
        """
        limit = self.budget.take_call(active_us=self.active_us)
        if limit is not None:
            raise refuse_over(limit)

    def take_turn(self) -> None:
        """Take one model call from the budget.

        Raises:
            Refused: a limit forbids it.
        """
        limit = self.budget.take_turn(active_us=self.active_us)
        if limit is not None:
            raise refuse_over(limit)

    def put_answer(self, body: bytes) -> None:
        """Take the final answer; a later one replaces it.

        Raises:
            Refused: it is too large, not UTF-8, or was replaced too often.
        """
        if len(body) > MAX_ANSWER_BYTES:
            raise Refused(RefusalCode.ANSWER, f"the answer is larger than {MAX_ANSWER_BYTES} bytes", status=413)
        try:
            body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(RefusalCode.ANSWER, "the answer is not valid UTF-8", status=400) from error
        if self.answer.puts >= _MAX_ANSWERS:
            raise Refused(RefusalCode.ANSWER, f"the answer was sent {_MAX_ANSWERS} times already", status=429)
        self.answer.put = body
        self.answer.puts += 1

    def note_reply(self, reply: Mapping[str, Any]) -> None:
        """Keep the text of a reply that ended the model's turn: the answer, if none is sent."""
        content = reply.get("content")
        if reply.get("stop_reason") != "end_turn" or not isinstance(content, list):
            return
        texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text")
        whole = "".join(text for text in texts if isinstance(text, str)).encode("utf-8", "replace")
        if whole.strip():
            self.answer.last_text = whole[:MAX_ANSWER_BYTES].decode("utf-8", "ignore").encode()

    def close(self, process: ProcessExit, *, ended: datetime) -> AttemptRecord:
        """Seal the trajectory and decide how the attempt ended."""
        source, answer = self.answer.source, self.recorder.mask(self.answer.body)
        tally = self.recorder.tally
        outcome, reason = decide_outcome(self._facts(), process)
        # The answer travels with the last event, so that it is in the blobs wherever it came from.
        last = self.record(kind=EventKind.ATTEMPT_ENDED, name=outcome, error_class=process.cause, result=answer)
        if last is None:
            outcome, reason = decide_outcome(self._facts(), process)
        trajectory_digest = self.recorder.seal()
        return AttemptRecord(
            key=self.key,
            outcome=outcome,
            reason=self.recorder.mask_text(reason),  # it quotes what the agent printed
            opened=self.spec.opened,
            ended=ended,
            requests=self.requests,
            turns=tally.turns,
            tool_calls=tally.tool_calls,
            agent_tool_errors=tally.tool_errors.get(Status.AGENT_ERROR, 0),
            server_tool_errors=tally.tool_errors.get(Status.SERVER_ERROR, 0),
            infra_tool_errors=tally.tool_errors.get(Status.INFRA_ERROR, 0),
            denied=tally.denied,
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            usd=tally.usd,
            waited_us=self.waited_us,
            limit=self.budget.hit,
            answer_source=source,
            answer_digest=digest_bytes(answer) if answer else "",
            tools_digest=self.tools_digest,
            trajectory_digest=trajectory_digest,
            events=tally.events,
        )

    def _facts(self) -> AttemptFacts:
        tally = self.recorder.tally
        return AttemptFacts(
            requests=self.requests,
            turns=tally.turns,
            tool_calls=tally.tool_calls,
            answered=bool(self.answer.body.strip()),
            sent=bool((self.answer.put or b"").strip()),
            limit=self.budget.hit,
            infra_failure=self.infra_failure or self.trouble,
        )
