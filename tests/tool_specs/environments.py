"""Large worlds of a domain, for tests of what calls cost."""

from typing import Any

from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import refs_of
from tool_specs.execution.state import EntityRow, State


def grown(domain: Domain, times: int) -> State:
    """The seed and `times - 1` copies of it under other ids. A copy's references stay within the
    copy, so that a row has as many others around it as in the seed."""
    tables: dict[str, dict[str, EntityRow]] = {name: {} for name in domain.entities}
    for copy in range(times):
        for name, entity in domain.entities.items():
            refs = refs_of(entity)
            for row in domain.seed[name]:
                new = {f: _renamed(v, copy) if f in refs else v for f, v in row.items()}
                new[entity.key] = _renamed(row[entity.key], copy)
                tables[name][new[entity.key]] = new
    return State.of(tables, domain.now)


def _renamed(value: Any, copy: int) -> Any:
    """PT-1001 becomes PT-2001001 in the second copy: it stays a number of the prefix."""
    if isinstance(value, list):
        return [_renamed(item, copy) for item in value]
    if value is None or copy == 0:
        return value
    head = value.rstrip("0123456789")
    return f"{head}{copy}{value[len(head) :]:0>6}"
