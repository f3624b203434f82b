"""Lists that a read shows: what a choice is made from, and what a set is."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from synth.tasks.forms.trying import told_of
from synth.tasks.goals.building import Builder, Grounding
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Fact, Step
from synth.tasks.goals.knowledge import words_of
from synth.tasks.proof.unsolvable import action_of
from tool_specs.domains.interpreter import policy_violations

TRIES = 10
"""Reads that are drawn for one goal."""

PERSONAL = frozenset(("email", "phone", "mobile", "born_on", "birth_date", "date_of_birth"))
"""Fields that only people have."""

MOST_ROWS = 12
"""Rows of a list that a person could look through."""


class ShownRows(NamedTuple):
    """A call that shows several rows of one entity."""

    tool: DomainTool
    step: Step
    grounding: Grounding
    entity: str
    rows: list[dict[str, Any]]
    """As they are shown, each with its key."""
    key: str
    """The field of the key."""

    @property
    def words(self) -> str:
        """Which rows these are, for a reader who does not see them."""
        shown = f"the {words_of(self.entity)} entries shown when you {action_of(self.tool)}"
        return shown + (told_of(self.facts) or ", all of them")

    @property
    def facts(self) -> list[Fact]:
        return self.grounding.facts


def listings(builder: Builder, least: int, tries: int = TRIES) -> Iterator[ShownRows]:
    """Lists of at least so many rows, all of what the read finds."""
    reads = [t for t in builder.tools.values() if t.read_only and not t.waits]
    for _ in range(tries if reads else 0):
        tool = builder.rng.choice(reads)
        arguments = builder.drawn(tool)
        if policy_violations(builder.environment, tool.name, arguments) or promises_less(
            tool, arguments
        ):
            continue
        result = builder.environment.snapshot().call(tool.name, arguments)
        if result.is_error or not isinstance(result.observation, dict):
            continue
        for shown in result.observation.values():
            if not _is_list(shown, least) or len(shown) in _page_sizes(tool):
                continue
            for entity, spec in builder.domain.entities.items():
                keys = [row.get(spec.key) for row in shown]
                if len(set(keys)) == len(keys) and all(
                    isinstance(key, str) and builder.environment.get(entity, key) for key in keys
                ):
                    step = Step(tool=tool.name, arguments=arguments)
                    grounding = builder.ground(tool, arguments)
                    yield ShownRows(tool, step, grounding, entity, shown, spec.key)


def promises_less(tool: DomainTool, arguments: dict[str, Any]) -> bool:
    """Whether the words for the read name a filter that this call leaves out, as in "list the
    orders of a customer": they would be taken for fewer rows than it shows."""
    sentence = action_of(tool)
    return any(
        re.search(rf"\b(?:a|an|one|the) (?:\w+ )?{re.escape(words_of(name))}\b", sentence)
        for name, param in tool.spec.params.items()
        if param.optional and name not in arguments and name not in tool.paging
    )


def _is_list(value: Any, least: int) -> bool:
    is_list = isinstance(value, list) and least <= len(value) <= MOST_ROWS
    return is_list and all(isinstance(row, dict) for row in value)


def _page_sizes(tool: DomainTool) -> set[Any]:
    """A list just as long as a page may go on."""
    return {tool.spec.params[name].default for name in tool.paging if name in tool.spec.params}


def is_person(builder: Builder, entity: str) -> bool:
    """Whether the rows are people, as far as their fields tell."""
    fields = builder.domain.entities[entity].fields
    return not PERSONAL.isdisjoint(fields) or any(f.like == "person" for f in fields.values())


def takers(builder: Builder, entity: str) -> list[tuple[DomainTool, str]]:
    """(tool, parameter) of the tools at hand that must be told one row of the entity, in a seeded
    order, those that change something first. Nothing is done to people for what they are like:
    nobody has an allergy because of the balance."""
    found = [
        (tool, name)
        for tool in builder.tools.values()
        if not tool.waits and (tool.read_only or not is_person(builder, entity))
        for name, param in tool.spec.params.items()
        if param.ref == entity and not param.optional
    ]
    builder.rng.shuffle(found)
    return sorted(found, key=lambda pair: pair[0].read_only)
