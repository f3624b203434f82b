"""What a simulator model is shown of an environment: its entities, and the rows that bear on one
call.

Bounded, whatever the size of the state: rows that hold a value of the arguments, those that they
refer to and those that refer to them, then the first page of each entity.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from synth.episode.tools.state_patch import next_id
from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import ids_in, refs_of
from tool_specs.execution.state import EntityRow, State

MAX_RELATED = 12
"""Rows of one entity that are shown for the values of the arguments, and as many by refs."""

MAX_VALUE_CHARS = 400
"""Of one text in a row that is shown; a cut one says so."""


def entities_of(domain: Domain, state: State) -> dict[str, Any]:
    """The declarations, with the id that the next new row of each gets and how many rows it has."""
    shown: dict[str, Any] = {}
    for name, entity in domain.entities.items():
        fields = {
            field: spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            for field, spec in entity.fields.items()
        }
        shown[name] = {"key": entity.key, "fields": fields, "rows": _size(state, name)}
        if (key := next_id(state, name, entity)) is not None:
            shown[name]["next_id"] = key
        if entity.lifecycle is not None:
            moves = [{"from": list(m.from_), "to": m.to} for m in entity.lifecycle.moves]
            shown[name]["lifecycle"] = {"field": entity.lifecycle.field, "moves": moves}
        rules = [rule.text for rule in domain.file.rules if rule.entity == name]
        if rules:
            shown[name]["always"] = rules
    return shown


def _size(state: State, name: str) -> int:
    return sum(1 for _ in state.tables[name].rows())


def rows_for(
    domain: Domain, state: State, arguments: Mapping[str, Any], *, page: int
) -> dict[str, list[EntityRow]]:
    """Rows by entity, in reading order: `page` of each, and those that bear on the arguments."""
    wanted = {str(value).casefold() for value in _values(arguments) if value not in ("", None)}
    chosen: dict[str, dict[str, EntityRow]] = {name: {} for name in domain.entities}
    for name, entity in domain.entities.items():
        for row in state.tables[name].rows():
            if len(chosen[name]) == MAX_RELATED:
                break
            if any(str(value).casefold() in wanted for value in _values(row)):
                chosen[name][row[entity.key]] = row
    for name, rows in [(name, list(rows.values())) for name, rows in chosen.items()]:
        for row in rows:
            for other, found in _neighbours(domain, state, name, row):
                if len(chosen[other]) < 2 * MAX_RELATED:
                    chosen[other].setdefault(found[domain.entities[other].key], found)
    for name, entity in domain.entities.items():
        for _, row in zip(range(page), state.tables[name].rows(), strict=False):
            chosen[name].setdefault(row[entity.key], row)
    return {
        name: [_cut(rows[key]) for key in sorted(rows, key=lambda key: (len(key), key))]
        for name, rows in chosen.items()
    }


def _neighbours(
    domain: Domain, state: State, name: str, row: EntityRow
) -> Iterator[tuple[str, EntityRow]]:
    """Rows that this one refers to, then those that refer to it."""
    for field, target in refs_of(domain.entities[name]).items():
        for key in ids_in(row[field]):
            if (found := state.get(target, key)) is not None:
                yield target, found
    key = row[domain.entities[name].key]
    for other, field in domain.referrers[name]:
        for _, found in zip(
            range(MAX_RELATED), state.tables[other].matching({field: key}), strict=False
        ):
            yield other, found


def _values(value: Any) -> Iterator[Any]:
    """Every plain value in it but true and false, which single out nothing."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _values(part)
    elif isinstance(value, list):
        for part in value:
            yield from _values(part)
    elif not isinstance(value, bool) and value is not None:
        yield value


def _cut(row: EntityRow) -> EntityRow:
    return {
        field: f"{value[:MAX_VALUE_CHARS]} [cut]"
        if isinstance(value, str) and len(value) > MAX_VALUE_CHARS
        else value
        for field, value in row.items()
    }
