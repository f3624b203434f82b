"""What people know of a row: not its id but its natural fields, and those of the rows it names."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment

MAX_DEPTH = 3
"""References followed from a row: an appointment's slot's doctor."""


class Leaf(NamedTuple):
    """A natural field that holds a plain value."""

    path: tuple[str, ...]
    """Fields from the row to the value: ("patient_id", "name")."""

    entity: str
    """Of the row that has the field itself."""

    value: Any


def words_of(name: str) -> str:
    """`patient_id` -> `patient`, `starts_at` -> `starts at`."""
    return name.removesuffix("_id").replace("_", " ").strip() or name


def natural_refs(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str
) -> Iterator[tuple[str, str, str]]:
    """(field, entity, key) of the rows that a row's natural fields name."""
    row = environment.get(entity, key) or {}
    spec = domain.entities[entity]
    for field in spec.natural:
        kind = spec.fields[field]
        if kind.type == "ref" and kind.to and row.get(field):
            yield field, kind.to, row[field]


def leaves(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str, depth: int = 0
) -> list[Leaf]:
    """The plain values by which people refer to the row, references followed."""
    row = environment.get(entity, key) or {}
    spec = domain.entities[entity]
    found: list[Leaf] = []
    for field in spec.natural:
        kind, value = spec.fields[field], row.get(field)
        if value is None:
            continue
        if kind.type == "ref" and kind.to:
            if depth < MAX_DEPTH:
                inner = leaves(environment, domain, kind.to, value, depth + 1)
                found += [Leaf((field, *leaf.path), leaf.entity, leaf.value) for leaf in inner]
        elif kind.type not in ("list", "object"):
            found.append(Leaf((field,), entity, value))
    return found


def label_of(leaf: Leaf, role: str) -> str:
    """`role` is what the row is to the goal, such as `patient`: "patient name"."""
    return " ".join(once([role, *(words_of(field) for field in leaf.path)]))


def once(parts: Iterable[str]) -> list[str]:
    """The words of the parts without one that stands right after itself."""
    words = [word for part in parts for word in part.split()]
    return [word for i, word in enumerate(words) if i == 0 or word != words[i - 1]]


def singles_out(environment: DomainEnvironment, domain: Domain, entity: str, key: str) -> bool:
    """Whether the user's words mean this row: it has natural leaves that no other row has, be it
    with others beside them."""
    return meant_by_words(environment, domain, entity, key) == {key}


def meant_by_words(
    environment: DomainEnvironment, domain: Domain, entity: str, key: str
) -> frozenset[str]:
    """The keys of all rows that have the natural leaves of this one; none where it has none."""
    own = [(leaf.path, leaf.value) for leaf in leaves(environment, domain, entity, key)]
    if not own:
        return frozenset()
    key_field = domain.entities[entity].key
    plain = {path[0]: value for path, value in own if len(path) == 1}
    return frozenset(
        row[key_field]
        for row in environment.state.tables[entity].matching(plain)
        if row[key_field] == key
        or _has_all(own, leaves(environment, domain, entity, row[key_field]))
    )


def _has_all(own: Iterable[tuple[tuple[str, ...], Any]], others: Iterable[Leaf]) -> bool:
    held = {other.path: other.value for other in others}
    return all(path in held and held[path] == value for path, value in own)


def plain_values(value: Any) -> Iterator[Any]:
    """Every plain value in a JSON value, at any depth."""
    if isinstance(value, dict):
        for item in value.values():
            yield from plain_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from plain_values(item)
    else:
        yield value
