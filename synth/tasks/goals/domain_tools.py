"""What task making needs to know of a domain's tools, read off their semantics once."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from synth.tasks.goals.effects import Write, job_writes, writes_of
from tool_specs.domains.domain import Domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.parameters import Path
from tool_specs.language.statements import Read

FieldRef = tuple[str, str]
"""(entity, field)."""


@dataclass(frozen=True, slots=True)
class DomainTool:
    spec: ToolSpec
    writes: tuple[Write, ...]
    """Every change that a call can make."""

    stored_in: Mapping[Path, FieldRef]
    """Parameter -> the field that it is stored in, or else compared with."""

    paging: frozenset[str]
    """Parameters that say which page of an answer to give, and how long: no part of a user goal."""

    rules: tuple[str, ...]
    """Ids of the policy rules about this tool."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def read_only(self) -> bool:
        return not self.writes

    @property
    def about(self) -> set[str]:
        """The entities whose rows a call names or changes."""
        taken = {param.ref for param in self.spec.params.values() if param.ref}
        return taken | {write.entity for write in self.writes}

    @property
    def waits(self) -> bool:
        """Whether calls are made for the time that they let pass, and no user goal is about one."""
        return self.spec.waits is not None

    def takes_any(self, entities: Collection[str]) -> bool:
        """Whether a call has to name a row of one of them."""
        return any(p.ref in entities for p in self.spec.params.values() if not p.optional)


@lru_cache(maxsize=64)
def tools_of(domain: Domain) -> Mapping[str, DomainTool]:
    """Every tool of the domain by name."""
    return {
        name: DomainTool(
            spec=program.spec,
            writes=writes_of(program.spec, program.rows, None if domain.has_time else domain.now),
            stored_in=_stored_in(program.hints.fields),
            paging=program.hints.cursors | set(_page_sizes(program.spec)),
            rules=tuple(rule.spec.id for rule in domain.rules.get(name, ())),
        )
        for name, program in domain.programs.items()
    }


def entities_near(domain: Domain, rows: Collection[tuple[str, str]]) -> set[str]:
    """The entities of the rows, and those that refer to them or that they refer to."""
    entities = {entity for entity, _ in rows}
    pairs = [
        (name, field.to)
        for name, spec in domain.entities.items()
        for field in spec.fields.values()
        if field.type == "ref" and field.to
    ]
    near = {b for a, b in pairs if a in entities} | {a for a, b in pairs if b in entities}
    return entities | near


def jobs_of(domain: Domain) -> list[DomainTool]:
    """The jobs of the domain as tools that nobody calls: what may change by itself."""
    return [
        DomainTool(
            spec=ToolSpec(name=job.spec.name, description=job.spec.text, semantics=job.spec.do),
            writes=job_writes(job),
            stored_in={},
            paging=frozenset(),
            rules=(),
        )
        for job in domain.jobs
    ]


def _stored_in(hints: Iterable[Any]) -> dict[Path, FieldRef]:
    stored_in: dict[Path, FieldRef] = {}
    for hint in sorted(hints, key=lambda hint: hint.relation != "set"):
        stored_in.setdefault(hint.path, (hint.entity, hint.field))
    return stored_in


def _page_sizes(spec: ToolSpec) -> Iterator[str]:
    for statement in spec.semantics:
        if isinstance(statement, Read) and statement.limit:
            yield from re.findall(r"\bargs\.(\w+)", statement.limit)
