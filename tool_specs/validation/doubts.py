"""Faults of a program that its text alone shows: defects, and doubts.

A doubt refuses nothing: it is kept with the tool, and shown to the judge of descriptions.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tool_specs.language.domain_file import DomainFile, ToolSpec
from tool_specs.language.expressions import parse, show, walk
from tool_specs.language.statements import Create, ForEach, Let, Read, Return, Update
from tool_specs.language.syntax.nodes import Access, Binary, Call, Literal, Name, Node
from tool_specs.validation.fuzzing import Defect
from tool_specs.validation.mutation.equivalences import needless_guards
from tool_specs.validation.mutation.mutants import expressions_of, row_entities
from tool_specs.validation.mutation.vocabulary import Vocabulary

_TOTALS = frozenset({"sum", "average", "count"})


class _Field(NamedTuple):
    row: str
    """Name under which the row is bound."""
    field: str


def told_by_text(spec: ToolSpec, file: DomainFile) -> Iterator[Defect]:
    """Defects that no run is needed for."""
    yield from _stale_results(spec)
    yield from _misnamed_results(spec, file)
    yield from _loose_alternatives(spec)


def _stale_results(spec: ToolSpec) -> Iterator[Defect]:
    """Results that have the name of a field, and hold what it was before the call updated it."""
    noted: dict[str, _Field] = {}
    stale: dict[str, _Field] = {}
    for statement in spec.semantics:
        if isinstance(statement, Let):
            match parse(statement.be):
                case Access(base=Name(name=row), field=field):
                    noted[statement.bind] = _Field(row, field)
        elif isinstance(statement, Update):
            stale |= {
                name: own
                for name, own in noted.items()
                if own.row == statement.target and own.field in statement.set
            }
        elif isinstance(statement, Return):
            for path, tree in _results(statement):
                own = stale.get(tree.name) if isinstance(tree, Name) else None
                if own is not None and path[-1:] == (own.field,):
                    words = (
                        f"the result {own.field} is {own.row}.{own.field} as it was before the "
                        f"update: return {own.row}.{own.field}, or give the former value a name "
                        "that says so"
                    )
                    yield Defect("stale_result", words)


def _misnamed_results(spec: ToolSpec, file: DomainFile) -> Iterator[Defect]:
    """Results whose name has the words of one field of a row, and that hold another of its type:
    `credit_left: account.spending_cap` where the account has `credit`."""
    rows = _rows(spec)
    for statement in spec.semantics:
        if not isinstance(statement, Return):
            continue
        for path, tree in _results(statement):
            match tree:
                case Access(base=Name(name=row), field=held) if path and row in rows:
                    fields = file.entities[rows[row]].fields
                    kind = fields[held].type if held in fields else None
                    same = [f for f in fields if fields[f].type == kind]
                    if meant := _meant(path[-1], held, same):
                        words = (
                            f"the result {path[-1]} holds {row}.{held}, and {rows[row]} has the "
                            f"field {meant}: return that one, or give the result another name"
                        )
                        yield Defect("misnamed_result", words)


def doubts_of(spec: ToolSpec, file: DomainFile) -> list[str]:
    """Sentences about what is often a fault and sometimes meant."""
    return [*_cut_totals(spec), *_needless_guards(spec, file)]


def _results(statement: Return) -> Iterator[tuple[tuple[str, ...], Node]]:
    for path, text in expressions_of(statement):
        yield path[1:], parse(text)


def _cut_totals(spec: ToolSpec) -> Iterator[str]:
    limited = {s.bind for s in spec.semantics if isinstance(s, Read) and s.limit is not None}
    for statement in spec.semantics:
        if not isinstance(statement, Return):
            continue
        for path, tree in _results(statement):
            for node in walk(tree):
                if isinstance(node, Call) and node.function in _TOTALS:
                    names = {n.name for n in walk(node) if isinstance(n, Name)} & limited
                    for name in sorted(names):
                        yield (
                            f"the result {'.'.join(path)} is a {node.function} of {name} alone, "
                            "which a limit cuts short"
                        )


def _needless_guards(spec: ToolSpec, file: DomainFile) -> Iterator[str]:
    known = Vocabulary.of(spec, file, row_entities(spec))
    for index, statement in enumerate(spec.semantics):
        for path, text in expressions_of(statement):
            for node in walk(parse(text)):
                for name, place in needless_guards(node, known):
                    value = getattr(node, name)
                    part = value if place is None else value[place]
                    yield (
                        f"needless guard: semantics[{index}].{'.'.join(path)} guards by "
                        f"{show(part)!r} against what the domain does not let occur"
                    )


def _meant(name: str, held: str, fields: list[str]) -> str | None:
    """The field that the name tells of: all its words are in the name, and none of what is held."""
    words = set(name.split("_"))
    if held == name or words & set(held.split("_")):
        return None
    return next((f for f in fields if f != held and set(f.split("_")) <= words), None)


def _rows(spec: ToolSpec) -> Mapping[str, str]:
    """Name of one row -> its entity."""
    found: dict[str, str] = {}
    many: dict[str, str] = {}
    for statement in spec.semantics:
        if isinstance(statement, Read):
            (many if statement.key is None else found)[statement.bind] = statement.entity
        elif isinstance(statement, Create) and statement.bind is not None:
            found[statement.bind] = statement.entity
        elif isinstance(statement, ForEach) and statement.over in many:
            found[statement.bind] = many[statement.over]
    return found


def _loose_alternatives(spec: ToolSpec) -> Iterator[Defect]:
    """`x == 'a' or x == 'b' and more`: `and` binds first, so that `more` is asked of 'b' alone.
    Parentheses say that this is meant."""
    for index, statement in enumerate(spec.semantics):
        for path, text in expressions_of(statement):
            for node in walk(parse(text)):
                match node:
                    case Binary(
                        operator="or",
                        left=Binary(operator="==", left=one, right=Literal()),
                        right=Binary(operator="and") as right,
                    ) if _first(right) == one and f"({show(right)})" not in text:
                        words = (
                            f"semantics[{index}].{'.'.join(path)}: `and` binds before `or`, so "
                            "more is asked of one alternative than of the other: put parentheses "
                            "around what belongs together"
                        )
                        yield Defect("loose_alternative", words)


def _first(node: Node) -> Node | None:
    """What the first of terms joined by `and` compares with a constant."""
    while isinstance(node, Binary) and node.operator == "and":
        node = node.left
    match node:
        case Binary(operator="==", left=left, right=Literal()):
            return left
    return None
