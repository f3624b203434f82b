"""A tool with one part of its semantics taken out or exchanged, to see whether anyone notices.

Mutation testing of semantics: a precondition, an effect or a filter whose absence changes no
result and no state does nothing, and a model trained on the tool would learn a lie about it.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from tool_specs.language.domain_file import DomainFile, ToolSpec
from tool_specs.language.expressions import parse, show, terms
from tool_specs.language.statements import (
    AnyStatement,
    Create,
    Delete,
    Link,
    Read,
    Require,
    Update,
)


class Mutant(NamedTuple):
    words: str
    """What was done, such as `semantics[2] without its precondition`."""
    reason: str
    spec: ToolSpec


def mutants_of(spec: ToolSpec, file: DomainFile) -> Iterator[Mutant]:
    """Every mutant; one that does not compile needs no running: the rest rests on that part."""
    rows = _row_entities(spec)
    for index, statement in enumerate(spec.semantics):
        place = f"semantics[{index}]"
        match statement:
            case Require():
                yield _without(spec, index, f"{place} (require {statement.error})")
            case Delete() | Link():
                yield _without(spec, index, f"{place} ({statement.op} {statement.target})")
            case Update():
                yield from _of_sets(spec, index, file, rows.get(statement.target))
            case Create():
                if statement.bind is None:
                    yield _without(spec, index, f"{place} (create {statement.entity})")
                yield from _of_sets(spec, index, file, statement.entity)
            case Read():
                yield _without(spec, index, f"{place} (read {statement.entity})")
                if statement.where is not None:
                    yield from _of_filter(spec, index, statement, statement.where)


def _of_sets(spec: ToolSpec, index: int, file: DomainFile, entity: str | None) -> Iterator[Mutant]:
    """Each entry left out, and the values of each two fields of one kind exchanged."""
    statement = spec.semantics[index]
    assert isinstance(statement, Update | Create)
    place, values = f"semantics[{index}].set", statement.set
    if isinstance(statement, Update) and len(values) == 1:
        yield _without(spec, index, f"{place}.{next(iter(values))}")
    else:
        for field in values:
            left = {name: text for name, text in values.items() if name != field}
            yield _with(spec, index, {"set": left}, f"without {place}.{field}", "dead_statement")
    for one, other in _pairs(values, file, entity):
        swapped = {**values, one: values[other], other: values[one]}
        words = f"with {place}.{one} and {other} exchanged"
        yield _with(spec, index, {"set": swapped}, words, "dead_field")


def _pairs(
    values: Mapping[str, str], file: DomainFile, entity: str | None
) -> Iterator[tuple[str, str]]:
    """Of fields whose values may be told apart only by running: of one kind, set differently."""
    if entity is None:
        return
    fields = file.entities[entity].fields
    for one, other in combinations(values, 2):
        kinds = [(fields[name].type, fields[name].to) for name in (one, other) if name in fields]
        if len(kinds) == 2 and kinds[0] == kinds[1] and kinds[0][0] != "enum":
            yield one, other


def _of_filter(spec: ToolSpec, index: int, statement: Read, text: str) -> Iterator[Mutant]:
    """Each term of a conjunction left out."""
    parts = terms(parse(text))
    for i, term in enumerate(parts):
        rest = [show(t) for j, t in enumerate(parts) if j != i]
        where = " and ".join(f"({t})" for t in rest) or "true"
        words = f"semantics[{index}].where without {show(term)!r}"
        yield _with(spec, index, {"where": where}, words, "dead_filter")


def _row_entities(spec: ToolSpec) -> dict[str, str]:
    """Binding -> entity of the row, or rows, that it holds."""
    found: dict[str, str] = {}
    for statement in spec.semantics:
        if isinstance(statement, Read | Create) and statement.bind is not None:
            found[statement.bind] = statement.entity
        elif statement.op == "for_each" and statement.over in found:
            found[statement.bind] = found[statement.over]
    return found


def _without(spec: ToolSpec, index: int, what: str) -> Mutant:
    left = [s for i, s in enumerate(spec.semantics) if i != index]
    return Mutant(f"without {what}", "dead_statement", _changed(spec, left))


def _with(spec: ToolSpec, index: int, update: dict[str, object], words: str, reason: str) -> Mutant:
    statements = list(spec.semantics)
    statements[index] = statements[index].model_copy(update=update)
    return Mutant(words, reason, _changed(spec, statements))


def _changed(spec: ToolSpec, semantics: list[AnyStatement]) -> ToolSpec:
    return spec.model_copy(update={"semantics": semantics})
