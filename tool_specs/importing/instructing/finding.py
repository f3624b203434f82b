"""What is found in the texts of a tool, and who may decide otherwise."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from records.errors import ConfigError
from tool_specs.importing.instructing.classifier import score, thresholds
from tool_specs.importing.instructing.rules import instructing

CLASSIFIER = "classifier"
"""Said in place of a rule where the score alone stops a tool."""

ToolDecision = Literal["released", "judged_harmless", "judged_instructing"]
"""Of a person, or of a judge: either counts for more than what is found."""

STOPPING: frozenset[ToolDecision] = frozenset({"judged_instructing"})


class TextFinding(NamedTuple):
    rule: str | None
    """The rule that was hit, `classifier`, or None where nothing stops the tool."""

    score: float
    """Log odds by the classifier."""

    @property
    def is_worth_a_look(self) -> bool:
        """Whether a judge is asked, where there is one."""
        return self.rule is not None or self.score >= thresholds().unsure


def finding_in(texts: Sequence[str]) -> TextFinding:
    rule, found = instructing(texts), score(texts)
    if rule is None and found >= thresholds().stopped:
        rule = CLASSIFIER
    return TextFinding(rule, found)


def released_of(server: str, releases: Iterable[str]) -> dict[str, ToolDecision]:
    """Tools of the server, by name, that `releases` lets pass; each is written SERVER/TOOL."""
    parts = (one.rpartition("/") for one in releases)
    return {tool: "released" for owner, _, tool in parts if owner == server}


def check_releases(releases: Iterable[str], tools: Mapping[str, Iterable[str]], where: str) -> None:
    """ConfigError for a release of a tool that is not there. `tools`: server -> names of tools."""
    for one in releases:
        owner, _, tool = one.rpartition("/")
        if owner not in tools:
            there = ", ".join(sorted(tools)[:10]) or "none"
            raise ConfigError(
                f"{where} names {one!r}, and no server {owner!r} is imported here; it is written "
                f"SERVER/TOOL; servers: {there}"
            )
        if tool not in (names := set(tools[owner])):
            raise ConfigError(
                f"{where} names {one!r}, and {owner} has no tool {tool!r}; tools: "
                f"{', '.join(sorted(names)[:10]) or 'none'}"
            )
