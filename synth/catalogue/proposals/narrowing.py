"""A narrower application of a domain: the parent's entities, fewer rows, more fields and rules.

The generator says what is fixed and what is added; everything else is the parent's, so that a
narrower domain is as sound as the domain it comes from.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from records.errors import ConfigError
from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import ids_in, refs_of
from tool_specs.execution.programs import Entities
from tool_specs.execution.state import EntityRow
from tool_specs.execution.statements import MAX_STEPS
from tool_specs.language.evaluation import FIRST_FREE, Scope, compile_expression
from tool_specs.language.expressions import parse
from tool_specs.language.syntax.nodes import Literal
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.values import EvaluationError

LEAST_ROWS = 2
"""Of each entity: with one row no tool's answer could depend on which was asked for."""

NarrowingAnswer = Mapping[str, Any]
"""As the schema `domain` has it."""


class NarrowingError(Exception):
    """What is wrong with the answer, in sentences for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def narrowed(parent: Domain, answer: NarrowingAnswer, *, taken: set[str]) -> Domain:
    """The narrower domain, without tools. Raises NarrowingError with every problem found.

    `taken` are names of domains that there are.
    """
    problems = list(_name_faults(answer["domain"], taken))
    data = parent.file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data |= {"domain": answer["domain"], "title": answer["title"]}
    data |= {"description": answer["description"], "policy": [], "tools": []}
    seed = {name: list(rows) for name, rows in parent.seed.items()}
    rules = list(data.get("rules", ()))
    for fix in answer["fix"]:
        try:
            rules.append(_fixed(parent, fix, seed))
        except (ExpressionError, NarrowingError) as error:
            problems.append(f"fix of {fix['entity']}.{fix['field']}: {error}")
    problems += [
        f"only {len(seed[name])} rows of {name} are left; fix something else"
        for name in too_few(parent, seed)
    ]
    for field in answer["add_fields"]:
        try:
            _add_field(parent, field, data, seed)
        except (ExpressionError, EvaluationError, NarrowingError) as error:
            problems.append(f"add_fields {field['entity']}.{field['name']}: {error}")
    if not answer["fix"] and not answer["rules"]:
        problems.append("nothing is narrower: fix a field or add a rule")
    if problems:
        raise NarrowingError(problems)
    data |= {"seed": seed, "rules": [*rules, *answer["rules"]]}
    try:
        return Domain.of(data, origin="domain")
    except ConfigError as error:
        lines = [line.removeprefix("domain: ") for line in str(error).splitlines()]
        raise NarrowingError(lines) from None


def _name_faults(name: str, taken: set[str]) -> Iterator[str]:
    if name in taken:
        yield f"domain: {name!r} is taken; choose another name"
    if name[-1].isdigit():
        yield f"domain: {name!r} must not end in a digit"


def _fixed(
    parent: Domain, fix: NarrowingAnswer, seed: dict[str, list[EntityRow]]
) -> dict[str, str]:
    """Takes the other rows out of the seed; the rule that keeps them out."""
    name, field = fix["entity"], fix["field"]
    entity = parent.entities.get(name)
    if entity is None or field not in entity.fields:
        raise NarrowingError(["there is no such field"])
    if entity.fields[field].type not in ("enum", "boolean", "ref"):
        raise NarrowingError(["only an enum, a boolean or a ref can be fixed"])
    if field == entity.lifecycle_field:
        raise NarrowingError(["the status moves; fix another field"])
    literal = parse(fix["value"])
    if not isinstance(literal, Literal):
        raise NarrowingError([f"{fix['value']} is not a constant, such as 'urgent' or true"])
    seed |= rows_with(parent, seed, name, field, literal.value)
    word = re.sub(r"\W+", "_", str(literal.value)).strip("_").lower()
    return {
        "id": f"only_{field}_{word}"[:64],
        "entity": name,
        "that": f"{name}.{field} == {fix['value']}",
        "text": f"Here every {name.replace('_', ' ')} has {field.replace('_', ' ')} "
        f"{literal.value}.",
    }


def rows_with(
    parent: Domain, seed: Mapping[str, list[EntityRow]], name: str, field: str, value: Any
) -> dict[str, list[EntityRow]]:
    """The seed with only those rows of an entity whose field has the value. Rows that refer to
    rows that are gone go too, until none does."""
    seed = {**seed, name: [row for row in seed[name] if row[field] == value]}
    while True:
        keys = {n: {row[e.key] for row in seed[n]} for n, e in parent.entities.items()}
        changed = False
        for name, entity in parent.entities.items():
            refs = refs_of(entity)
            whole = [
                row
                for row in seed[name]
                if all(key in keys[to] for field, to in refs.items() for key in ids_in(row[field]))
            ]
            changed = changed or len(whole) < len(seed[name])
            seed[name] = whole
        if not changed:
            return seed


def too_few(parent: Domain, seed: Mapping[str, list[EntityRow]]) -> list[str]:
    """Entities with too few rows left to work with."""
    return [n for n, rows in seed.items() if len(rows) < min(LEAST_ROWS, len(parent.seed[n]))]


def _add_field(
    parent: Domain, field: NarrowingAnswer, data: dict[str, Any], seed: dict[str, list[EntityRow]]
) -> None:
    """The field in the entity, and its value in every row."""
    name = field["entity"]
    if name not in parent.entities:
        raise NarrowingError(["there is no such entity"])
    fields = data["entities"][name]["fields"]
    if field["name"] in fields:
        raise NarrowingError(["the entity has a field of that name"])
    own = ("type", "description", "values", "unit", "optional")
    fields[field["name"]] = {k: field[k] for k in own if field.get(k) not in (None, "", [])}
    values = values_in(parent, name, seed[name], field["value"])
    seed[name] = [
        row | {field["name"]: value} for row, value in zip(seed[name], values, strict=True)
    ]


def values_in(domain: Domain, entity: str, rows: Sequence[EntityRow], expression: str) -> list[Any]:
    """What an expression over a row, under its entity's name, is for each of the rows. Raises
    ExpressionError and EvaluationError."""
    entities = Entities.of(domain.file)
    scope = Scope({entity: (FIRST_FREE, entities.types[entity])}, entities.types)
    run = compile_expression(parse(expression), scope).run
    return [run([{}, domain.seed_state, MAX_STEPS, row]) for row in rows]
