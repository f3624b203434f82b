"""Rows that nothing tells apart: alike in every field but the id, and referred to by no row.

A call on one of them is as right as a call on another, as long as nobody has said the id of one.
"""

from collections.abc import Mapping
from typing import Any

from synth.rubrics.criteria import EqualRows
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.knowledge import meant_by_words, plain_values
from synth.tasks.goals.parts import parts_of
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


class AmbiguousRowError(Exception):
    """Of rows that are equal, the words name one by its id and another by what they share."""


def equals_of(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str
) -> frozenset[str]:
    """The keys of the rows that are equal to this one, its own among them; only its own where
    people have no words for rows of its kind."""
    spec = domain.entities[entity]
    row = environment.get(entity, key) or {}
    fields = row.keys() - {spec.key}
    alike = {
        other
        for other in meant_by_words(environment, domain, entity, key)
        if all((environment.get(entity, other) or {})[field] == row[field] for field in fields)
    }
    if len(alike) < 2 or _is_referred_to(environment, domain, alike):
        return frozenset([key])
    return frozenset(alike)


def _is_referred_to(environment: DomainEnvironment, domain: Domain, keys: set[str]) -> bool:
    """Whether a row holds one of the keys and is not the row that it is the key of."""
    return any(
        isinstance(value, str) and value in keys
        for entity, spec in domain.entities.items()
        for row in environment.rows(entity)
        for field, held in row.items()
        if field != spec.key
        for value in plain_values(held)
    )


def equal_rows(
    domain: Domain, draft: Draft, tools: Mapping[str, DomainTool]
) -> tuple[EqualRows, ...]:
    """The rows that the plan names, nobody has said the ids of, and that equal others in the
    initial state, with those. Raises AmbiguousRowError where an id of such rows is said."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    told: set[Any] = {fact.value for goal in draft.goals for fact in goal.known}
    found: dict[tuple[str, frozenset[str]], None] = {}
    for entity, key in _named(draft, tools):
        if key in told:
            continue
        keys = equals_of(environment, domain, entity, key)
        if keys & told:
            raise AmbiguousRowError(f"{entity} {', '.join(sorted(keys))}")
        if len(keys) > 1:
            found[entity, keys] = None
    return tuple(EqualRows(entity=entity, ids=tuple(sorted(keys))) for entity, keys in found)


def _named(draft: Draft, tools: Mapping[str, DomainTool]) -> dict[tuple[str, str], None]:
    """(entity, key) of the rows that calls of the plan name."""
    return {
        (part.param.ref, part.value): None
        for step in draft.plan
        if step.tool in tools
        for part in parts_of(tools[step.tool].spec.params, step.arguments)
        if part.param.ref
    }
