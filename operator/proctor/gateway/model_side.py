"""The one model that an attempt may call."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.gateway.patience import SharedPause
from proctor.gateway.ports import Provider, ScriptedModel

SCRIPTED_PREFIX = "scripted/"


def scripted_name(policy: str) -> str:
    """Return what an agent writes as ``model`` to be answered by a policy."""
    return f"{SCRIPTED_PREFIX}{policy}"


@dataclass(frozen=True, slots=True)
class ScriptedSide:
    """A policy that the gateway plays.

    Attributes:
        name: what the agent writes as ``model``.
        play: the policy.
    """

    name: str
    play: ScriptedModel


@dataclass(frozen=True, slots=True)
class ProviderSide:
    """A model of a provider.

    Attributes:
        name: the provider's name of the model, which is also what the agent writes.
        provider: sends requests, with the key; one connection pool per attempt.
        pause: shared with all attempts that use the same provider and key.
    """

    name: str
    provider: Provider
    pause: SharedPause


ModelSide = ScriptedSide | ProviderSide
