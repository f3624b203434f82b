"""Settings of an episode: its limits, its faults, and whether agents can hand work over."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from synth.episode.tools.fault_injection import FaultInjectionConfig


class DelegationConfig(Config):
    share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of agents that have the tool `delegate` beside their own."""

    max_delegations: int = Field(default=4, ge=1)
    """Calls of it in an episode; further ones are refused."""

    max_turns: int = Field(default=12, ge=1)
    """Messages that a sub-agent may write; they are none of the agent's."""

    token_budget: int = Field(default=12_000, ge=100)
    """Size of a sub-agent's conversation, results included, in the project's tokens."""


class EpisodeConfig(Config):
    RENAMED: ClassVar[dict[str, str]] = {"fault_injection": "outcomes"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"delegation": DelegationConfig().identity()}
    )

    fault_injection: FaultInjectionConfig = FaultInjectionConfig()
    """Faults that are injected into calls of tools."""

    max_format_errors: int = Field(default=3, ge=1)
    """Assistant messages in a row with a call that no tool could take; the last one ends the
    episode."""

    max_parallel_calls: int = Field(default=16, ge=1)
    """Further calls of one message are refused unexecuted."""

    observation_chars: int = Field(default=20_000, ge=200)
    """Longer results are cut, and say so."""

    user_retries: int = Field(default=2, ge=0)
    """How often an unusable turn of the simulated user is asked for again."""

    delegation: DelegationConfig = DelegationConfig()
    """Agents that can hand work to a sub-agent."""
