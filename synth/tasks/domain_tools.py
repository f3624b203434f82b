"""What task making needs to know of a domain's tools, read off their semantics once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from synth.checks import same_value
from tool_specs.domain import Domain
from tool_specs.domain_file import ToolSpec
from tool_specs.expressions import Literal, parse
from tool_specs.parameters import Path
from tool_specs.statements import Create, Delete, ForEach, Link, Read, Update

ANY = "*"


class Effect(NamedTuple):
    op: str
    entity: str
    """`*` where the text of the semantics does not tell."""

    field: str
    """`*` for creates and deletes, which concern the whole row."""

    value: Any = ANY
    """What the field is set to, where that is always the same; else `*`."""


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
                bound[name] = bound.get(over.strip(), ANY)
            case Create(bind=name, entity=entity):
                bound |= {name: entity} if name else {}
                yield Effect("create", entity, ANY)
            case Update(target=target, set=values):
                for field, expression in values.items():
                    yield Effect("update", bound.get(target, ANY), field, _constant(expression))
            case Delete(target=target):
                yield Effect("delete", bound.get(target, ANY), ANY)
            case Link(target=target, field=field):
                yield Effect("update", bound.get(target, ANY), field)


def _constant(expression: str) -> Any:
    tree = parse(expression)
    return tree.value if isinstance(tree, Literal) else ANY


def out_of_reach(changes: Iterable[dict[str, Any]], tools: Iterable[Tool]) -> bool:
    """Whether the changes need an effect that none of the tools has: no plan of them gets there.

    Sound but not complete: where it says False there may still be no plan.
    """
    effects = set().union(*(tool.effects for tool in tools))
    return any(not _reaches(effects, change) for change in changes)


def _reaches(effects: Iterable[Effect], change: dict[str, Any]) -> bool:
    """Whether there is an effect for every field of the change."""
    own = [e for e in effects if e.op == change["op"] and e.entity in (change["entity"], ANY)]
    if change["op"] != "update":
        return bool(own)
    return all(
        any(e.field == field and (e.value == ANY or same_value(e.value, value)) for e in own)
        for field, value in change["after"].items()
    )
