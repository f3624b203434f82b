"""Quotas that keep evolved tools believable: on ideas, on names and on shapes of parameters.

What was committed before a round counts, and what the same batch has accepted. Batches of one round
do not see each other, so a quota over domains may be passed by what they write at the same time.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from records.config import Config
from tool_specs.coverage.believability import (
    LONG_NAME,
    CountedTool,
    is_joined,
    num_params,
)
from tool_specs.language.domain_file import ToolSpec

FREE = 2
"""Tools, or parameters, that a quota on a share lets pass besides: of the first few, one is a large
share."""


class QuotaConfig(Config):
    """Quotas on evolved tools. Lists of real servers have 0.6% of names with `_and_` or `_with_`,
    1.3% over 40 characters, 4.8% of enums, and their commonest idea on 22% of servers."""

    on: bool = True
    """Whether tools are held against quotas. The offline model's grammar repeats itself, and gives
    few tools where they are on."""
    idea_in_domain: int = Field(default=2, ge=1, le=1_000)
    """Tools of one domain that may have the same idea: name without the domain's own words."""
    idea_domains: int = Field(default=3, ge=1, le=10_000)
    """Domains that may have the same idea, however few domains there are."""
    idea_share: float = Field(default=0.22, ge=0.0, le=1.0)
    """Share of the domains that may have the same idea, where that is more."""
    joined_share: float = Field(default=0.01, ge=0.0, le=1.0)
    """Share of tools with `_and_` or `_with_` in their names."""
    long_share: float = Field(default=0.02, ge=0.0, le=1.0)
    """Share of tools with names of over 40 characters."""
    enum_share: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of parameters that are enums."""
    novelty: float = Field(default=0.2, ge=0.0, le=1.0)
    """New ideas for each tool that a round asks for, below which no further round is begun."""


class CatalogueCounts(NamedTuple):
    """Of the tools that a batch may see, its own domain's and all others."""

    masked: frozenset[str]
    """Words of the domain, which are no part of an idea."""
    own_ideas: dict[str, int]
    """Idea -> tools of the domain that have it."""
    used_up: frozenset[str]
    """Ideas that as many other domains have as may."""
    tools: int = 0
    joined: int = 0
    """Tools with `_and_` or `_with_` in their names."""
    long: int = 0
    params: int = 0
    enums: int = 0


def counts_of(
    place: str,
    masked: frozenset[str],
    tools: Sequence[CountedTool],
    *,
    domains: int,
    config: QuotaConfig,
) -> CatalogueCounts:
    """`tools`: all of the catalogue, those of the domain `place` included."""
    own = Counter(tool.idea for tool in tools if tool.place == place)
    elsewhere: dict[str, set[str]] = {}
    for tool in tools:
        if tool.place != place:
            elsewhere.setdefault(tool.idea, set()).add(tool.place)
    most = max(config.idea_domains, config.idea_share * domains)
    used_up = {i for i, places in elsewhere.items() if len(places) >= most and i not in own}
    shapes = [num_params(tool.input_schema) for tool in tools]
    return CatalogueCounts(
        masked,
        dict(own),
        frozenset(used_up),
        len(tools),
        sum(is_joined(tool.name) for tool in tools),
        sum(len(tool.name) > LONG_NAME for tool in tools),
        sum(params for params, _ in shapes),
        sum(enums for _, enums in shapes),
    )


def used_up_ideas(counts: CatalogueCounts, config: QuotaConfig) -> list[str]:
    """Ideas that no further tool of the domain may have, in order."""
    own = {idea for idea, number in counts.own_ideas.items() if number >= config.idea_in_domain}
    return sorted(own | counts.used_up)


class QuotaScreen:
    """The quotas of a domain, while tools are proposed. What is admitted counts from then on."""

    def __init__(self, config: QuotaConfig, counts: CatalogueCounts) -> None:
        self._config = config
        self._counts = counts
        self._own = Counter(counts.own_ideas)

    def fault(self, spec: ToolSpec) -> str | None:
        """Which quota the tool is over, or None."""
        config, counts, idea = self._config, self._counts, self._idea(spec)
        if self._own[idea] >= config.idea_in_domain:
            return "idea_repeated"
        if idea in counts.used_up:
            return "idea_taken"
        more = counts.tools + 1
        if is_joined(spec.name) and _is_over(counts.joined + 1, more, config.joined_share):
            return "name_quota"
        if len(spec.name) > LONG_NAME and _is_over(counts.long + 1, more, config.long_share):
            return "name_quota"
        params, enums = num_params(spec.input_schema())
        if enums and _is_over(counts.enums + enums, counts.params + params, config.enum_share):
            return "shape_quota"
        return None

    def admit(self, spec: ToolSpec) -> None:
        counts, (params, enums) = self._counts, num_params(spec.input_schema())
        self._own[self._idea(spec)] += 1
        self._counts = counts._replace(
            tools=counts.tools + 1,
            joined=counts.joined + is_joined(spec.name),
            long=counts.long + (len(spec.name) > LONG_NAME),
            params=counts.params + params,
            enums=counts.enums + enums,
        )

    def _idea(self, spec: ToolSpec) -> str:
        return CountedTool("", spec.name, "", {}, self._counts.masked).idea


def _is_over(number: int, of: int, share: float) -> bool:
    return number > share * of + FREE
