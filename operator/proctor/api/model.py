"""Models that agents run on, the judge, and what tokens cost."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from proctor.api.fields import Breach, Closed, Flag, ModelId, Money, Name, SecretKeyRef, Url, one_of, refuse
from proctor.core.gatewaypolicy.pricing import TokenPrice

DEFAULT_ANTHROPIC_URL = "https://api.anthropic.com"


class AnthropicModel(Closed):
    """A model behind the Anthropic Messages API."""

    model: ModelId = Field(description="The provider's name of the model; pinned, an agent can ask for no other.")
    secret_key_ref: SecretKeyRef = Field(description="The API key. The gateway adds it; no sandbox ever holds it.")
    base_url: Url | None = Field(
        default=None,
        description=f"Another host that speaks the same API; must be allow-listed. Default {DEFAULT_ANTHROPIC_URL}.",
    )

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.base_url or DEFAULT_ANTHROPIC_URL


class ScriptedModel(Closed):
    """A model that needs no provider: a policy that the gateway plays behind the same Messages door."""

    policy: Name = Field(description="`loudest`, `newest`, `oracle`, `noop`, or one of the scenario's own policies.")


class Price(Closed):
    """What a million tokens cost, in US dollars; without a price no cost is ever shown, never 0."""

    input_per_mtok: Money = Field(alias="inputPerMTok", description="Uncached input tokens.")
    output_per_mtok: Money = Field(alias="outputPerMTok", description="Output tokens.")
    cache_read_per_mtok: Money = Field(alias="cacheReadPerMTok", description="Input tokens read from the cache.")
    cache_write_per_mtok: Money = Field(alias="cacheWritePerMTok", description="Input tokens written to the cache.")

    @property
    def tokens(self) -> TokenPrice:
        """As what costs are computed with."""
        return TokenPrice(
            self.input_per_mtok, self.output_per_mtok, self.cache_read_per_mtok, self.cache_write_per_mtok
        )


class Model(Closed):
    """A model under test."""

    name: Name = Field(description="Name of the model in this suite.")
    anthropic: AnthropicModel | None = Field(default=None, description="A model behind the Anthropic Messages API.")
    scripted: ScriptedModel | None = Field(default=None, description="A scripted policy; needs no key.")
    price: Price | None = Field(default=None, description="Needed for USD figures and for `agent.maxUSD`.")

    @property
    def source(self) -> AnthropicModel | ScriptedModel:
        """The one source that is given."""
        if self.anthropic is not None:
            return self.anthropic
        if self.scripted is not None:
            return self.scripted
        raise AssertionError("validation admits no model without a source")

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = one_of(self, "anthropic", "scripted")
        if self.scripted is not None and self.price is not None:
            breaches.append(Breach(("price",), "a scripted model costs nothing", "remove the price"))
        refuse(breaches)
        return self


class Judge(Closed):
    """Who grades what checks can't: a model with a fixed rubric, or nobody."""

    none: Literal[True] | None = Field(default=None, description="No judge: the score is programmatic, and says so.")
    anthropic: AnthropicModel | None = Field(default=None, description="The judge's model.")
    votes: Annotated[StrictInt, Field(ge=1, le=9)] | None = Field(
        default=None,
        description="Votes per answer; the median per criterion counts. Default 1. Votes that lie two marks or more "
        "apart are asked for once more.",
    )
    price: Price | None = Field(default=None, description="Needed to say what judging cost.")
    allow_self_judge: Flag | None = Field(
        default=None, description="Allow a judge that is also an agent's model; it may favour itself."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        breaches = one_of(self, "none", "anthropic")
        beside = (self.votes, self.price, self.allow_self_judge)
        if self.none and any(value is not None for value in beside):
            breaches.append(Breach(("none",), "there is no judge to vote", "remove votes, price and allowSelfJudge"))
        refuse(breaches)
        return self

    @property
    def vote_count(self) -> int:
        """How often each answer is judged; 0 without a judge."""
        return 0 if self.anthropic is None else self.votes or 1
