"""What task making needs to know of a domain's tools, read off their semantics once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tool_specs.domain import Domain
from tool_specs.domain_file import ToolSpec
from tool_specs.parameters import Path
from tool_specs.statements import Create, Delete, ForEach, Link, Read, Update

Effect = tuple[str, str, str]
"""(op, entity, field); creates and deletes concern the field "*". The entity "*" is one that the
text does not tell."""

Place = tuple[str, str]
"""(entity, field)."""


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    effects: frozenset[Effect]
    """Every change that a call can make."""

    places: Mapping[Path, Place]
    """Parameter -> the field that it is stored in, or else compared with."""

    paging: frozenset[str]
    """Parameters that say which page of an answer to give, and how long: no part of a wish."""

    rules: tuple[str, ...]
    """Ids of the policy rules about this tool."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def read_only(self) -> bool:
        return not self.effects


def tools_of(domain: Domain) -> dict[str, Tool]:
    """Every tool of the domain by name."""
    return {
        name: Tool(
            spec=program.spec,
            effects=frozenset(_effects(program.spec)),
            places=_places(program.hints.fields),
            paging=program.hints.cursors | set(_page_sizes(program.spec)),
            rules=tuple(rule.spec.id for rule in domain.rules.get(name, ())),
        )
        for name, program in domain.programs.items()
    }


def _places(hints: Iterable[Any]) -> dict[Path, Place]:
    places: dict[Path, Place] = {}
    for hint in sorted(hints, key=lambda hint: hint.relation != "set"):
        places.setdefault(hint.path, (hint.entity, hint.field))
    return places


def _page_sizes(spec: ToolSpec) -> Iterator[str]:
    for statement in spec.semantics:
        if isinstance(statement, Read) and statement.limit:
            yield from re.findall(r"\bargs\.(\w+)", statement.limit)


def _effects(spec: ToolSpec) -> Iterator[Effect]:
    bound: dict[str, str] = {}
    for statement in spec.semantics:
        match statement:
            case Read(bind=str(name), entity=entity):
                bound[name] = entity
            case ForEach(bind=name, over=over):
                bound[name] = bound.get(over.strip(), "*")
            case Create(bind=name, entity=entity):
                bound |= {name: entity} if name else {}
                yield "create", entity, "*"
            case Update(target=target, set=values):
                yield from (("update", bound.get(target, "*"), field) for field in values)
            case Delete(target=target):
                yield "delete", bound.get(target, "*"), "*"
            case Link(target=target, field=field):
                yield "update", bound.get(target, "*"), field


def out_of_reach(changes: Iterable[dict[str, Any]], tools: Iterable[Tool]) -> bool:
    """Whether the changes need an effect that none of the tools has: no plan of them gets there.

    Sound but not complete: where it says False there may still be no plan.
    """
    have: set[Effect] = set().union(*(tool.effects for tool in tools))
    if any(entity == "*" for _, entity, _ in have):
        return False
    needed: set[Effect] = set()
    for change in changes:
        if change["op"] == "update":
            needed |= {("update", change["entity"], field) for field in change["after"]}
        else:
            needed.add((change["op"], change["entity"], "*"))
    return not needed <= have
