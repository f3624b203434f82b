"""Which policy rules an agent can follow: those about what it can look up.

A rule that hangs on a field which no read of the agent shows makes an honest agent guess: it breaks
the rule unknowingly, or refuses what is allowed. Neither is a task.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from synth.tasks.goals.domain_tools import DomainTool, tools_of
from tool_specs.domains.domain import Domain
from tool_specs.language.expressions import parse, walk
from tool_specs.language.statements import Return
from tool_specs.language.syntax.nodes import Access, Name


def followable(domain: Domain, tools: Mapping[str, DomainTool]) -> dict[str, DomainTool]:
    """Those of the tools whose rules an agent that has all of them can follow. Fields are known by
    their names: one that a read shows of another entity counts as shown."""
    shown = _shown(domain)
    seen = {field for name, tool in tools.items() if tool.read_only for field in shown[name]}
    hangs_on = _looked_at(domain)
    return {n: tool for n, tool in tools.items() if hangs_on.get(n, frozenset()) <= seen}


def hidden_fields(domain: Domain) -> frozenset[str]:
    """The fields on which rules hang and that no read of the domain shows."""
    shown, tools = _shown(domain), tools_of(domain)
    seen = {field for name, tool in tools.items() if tool.read_only for field in shown[name]}
    return frozenset[str]().union(*_looked_at(domain).values()) - seen


@lru_cache(maxsize=64)
def _looked_at(domain: Domain) -> Mapping[str, frozenset[str]]:
    """Tool -> the fields of rows on which its rules hang."""
    return {
        name: frozenset(
            node.field
            for rule in rules
            for node in walk(parse(rule.spec.forbids))
            if isinstance(node, Access) and node.base != Name("args")
        )
        for name, rules in domain.rules.items()
    }


@lru_cache(maxsize=64)
def _shown(domain: Domain) -> Mapping[str, frozenset[str]]:
    """Tool -> the names of what its answers hold, and of the fields that this comes from."""
    return {
        name: frozenset(_properties(domain.programs[name].output_schema))
        | frozenset(
            node.field
            for statement in tool.spec.semantics
            if isinstance(statement, Return)
            for text in _texts(statement.value)
            for node in walk(parse(text))
            if isinstance(node, Access)
        )
        for name, tool in tools_of(domain).items()
    }


def _properties(schema: Any) -> Iterator[str]:
    """Names of the properties at any depth of a JSON schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties") or {}
        for part in schema.values():
            yield from _properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _properties(part)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, str):
        yield value
