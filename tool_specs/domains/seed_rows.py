"""Rows of a seed or a patch checked: whole, with keys of their own, refs that lead to rows, and
natural fields that single them out."""

from collections.abc import Iterable, Mapping
from typing import Any

from tool_specs.execution.fields import RowCheck, ids_in, refs_of
from tool_specs.execution.programs import Problems
from tool_specs.execution.state import EntityRow, State
from tool_specs.language.domain_file import DomainFile, EntitySpec
from tool_specs.language.values import EvaluationError, show_value


def checked_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]], entity: EntitySpec, problems: Problems
) -> dict[str, EntityRow]:
    """(path, row) pairs as whole rows by key; what is wrong goes to `problems`."""
    result: dict[str, EntityRow] = {}
    check = RowCheck(entity)
    for path, values in rows:
        try:
            row = check.row(values)
        except EvaluationError as error:
            problems.add(path, str(error))
            continue
        key = row[entity.key]
        if not key:
            problems.add(path, f"{entity.key} is empty; a key names its row")
        elif key in result:
            problems.add(path, f"{entity.key} {show_value(key)} stands twice")
        result[key] = row
    return result


def seed_rows(file: DomainFile, problems: Problems) -> dict[str, dict[str, EntityRow]]:
    return {
        name: checked_rows(
            ((f"seed.{name}[{i}]", row) for i, row in enumerate(file.seed.get(name, []))),
            entity,
            problems,
        )
        for name, entity in file.entities.items()
    }


def check_refs(
    state: State,
    name: str,
    entity: EntitySpec,
    path: str,
    rows: Iterable[EntityRow],
    problems: Problems,
) -> None:
    """Every id in a ref field of the rows must be a row's key in the state."""
    refs = refs_of(entity)
    for row in rows if refs else ():
        for field, target in refs.items():
            for key in ids_in(row[field]):
                if state.get(target, key) is None:
                    where = f"{path}.{name}[{row[entity.key]}].{field}"
                    problems.add(where, f"no {target} has the id {show_value(key)}")


def check_natural(file: DomainFile, state: State, problems: Problems) -> None:
    """A user who gives the natural fields must mean one row."""
    for name, entity in file.entities.items():
        seen: dict[str, str] = {}
        for row in state.tables[name].rows() if entity.natural else ():
            values = ", ".join(show_value(row[field]) for field in entity.natural)
            first = seen.setdefault(values, row[entity.key])
            if first != row[entity.key]:
                where = f"seed.{name}[{row[entity.key]}]"
                fields = ", ".join(entity.natural)
                problems.add(where, f"natural fields {fields} ({values}) also name {first}")
