"""What one attempt may use, and what it has used so far."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from proctor.core.gatewaypolicy.pricing import TokenPrice, Usage
from proctor.core.trajectory.outcome import Limit


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What an attempt may use.

    Attributes:
        turns: model calls that were answered.
        calls: tool calls.
        tokens: input and output tokens, cached ones too.
        usd: US dollars; None for no such limit.
        active_us: microseconds, without those spent waiting for an overloaded provider.
    """

    turns: int
    calls: int
    tokens: int
    usd: Decimal | None
    active_us: int


class Budget:
    """A running account of one attempt.

    A model call takes its turn before it is sent and gives it back if the provider failed, so that calls made at the
    same time can't pass a limit together.

    Args:
        limits: what may be used.
        price: what tokens cost; None if that is not known.
    """

    def __init__(self, limits: BudgetLimits, price: TokenPrice | None) -> None:
        self.limits = limits
        self.price = price
        self.turns = 0
        self.calls = 0
        self.tokens = 0
        self.usd = Decimal(0)
        self.hit: Limit | None = None

    def take_turn(self, *, active_us: int) -> Limit | None:
        """Take one model call; if a limit forbids it, nothing is taken and the limit is returned."""
        exceeded = self._exceeded(active_us, turns=True)
        if exceeded is None:
            self.turns += 1
        return exceeded

    def return_turn(self) -> None:
        """Give back a turn that the provider never answered."""
        self.turns -= 1

    def charge(self, usage: Usage) -> Decimal | None:
        """Add an answered call's tokens; return its price, None where that is not known."""
        self.tokens += usage.total
        if self.price is None:
            return None
        cost = self.price.cost(usage)
        self.usd += cost
        return cost

    def take_call(self, *, active_us: int) -> Limit | None:
        """Take one tool call; if a limit forbids it, nothing is taken and the limit is returned."""
        exceeded = self._exceeded(active_us, calls=True)
        if exceeded is None:
            self.calls += 1
        return exceeded

    def cap_output(self, requested: int) -> int:
        """Return how many tokens a call may produce without passing the budget by its output alone; at least 1."""
        room = min(requested, self.limits.tokens - self.tokens)
        if self.limits.usd is not None and self.price is not None and self.price.output_per_mtok > 0:
            room = min(room, int((self.limits.usd - self.usd) * 1_000_000 / self.price.output_per_mtok))
        return max(room, 1)

    def _exceeded(self, active_us: int, *, turns: bool = False, calls: bool = False) -> Limit | None:
        limits = self.limits
        found: Limit | None = None
        if active_us >= limits.active_us:
            found = Limit.TIME
        elif turns and self.turns >= limits.turns:
            found = Limit.TURNS
        elif calls and self.calls >= limits.calls:
            found = Limit.CALLS
        elif self.tokens >= limits.tokens:
            found = Limit.TOKENS
        elif limits.usd is not None and self.usd >= limits.usd:
            found = Limit.USD
        # The first limit is the one that ended the work; what it hits afterwards follows from that.
        self.hit = self.hit or found
        return found
