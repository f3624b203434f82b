"""A tool with one part of its semantics taken out or exchanged, to see whether anyone notices.

Mutation testing of semantics: a precondition, an effect, a term or a bound whose absence changes
no result and no state does nothing, and a model trained on the tool would learn a lie about it.

A place is a part that is examined. It has one mutant, or several of which the first that compiles
is run; where none compiles, the place is told as unexamined. Messages of errors are not mutated.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from pydantic import BaseModel

from tool_specs.execution.statements import MAX_ROWS
from tool_specs.language.domain_file import DomainFile, FieldSpec, ToolSpec
from tool_specs.language.expressions import parse, show
from tool_specs.language.statements import (
    WRITING_OPS,
    AnyStatement,
    Create,
    Delete,
    ForEach,
    Let,
    Link,
    Read,
    Require,
    Return,
    Statement,
    Update,
    When,
    body_of,
    expression_text,
)
from tool_specs.language.syntax.nodes import Call, ListOf, Literal, Name, Node
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.validation.mutation.exchanges import exchanges_of
from tool_specs.validation.mutation.trees import sites_of, with_node
from tool_specs.validation.mutation.vocabulary import Vocabulary

MAX_PAIRS = 15
"""Pairs of writing statements of one tool."""


@dataclass(frozen=True)
class Mutant:
    spec: ToolSpec
    detached: frozenset[int] = frozenset()
    """Writing statements, and loops, that run on a copy of the state which is thrown away: what
    they bind stays, what they change is gone."""
    emptied: frozenset[int] = frozenset()
    """Loops that run over nothing, and reads that find no rows."""


class MutantPlace(NamedTuple):
    statement: int
    """Index of the statement, the first of two."""
    words: str
    """What is done there, such as `semantics[2] without 'args.day != null'`."""
    reason: str
    """dead_statement, dead_filter, dead_field or dead_term."""
    grave: bool
    """A part is taken away: the tool is refused where nothing changes. Else the place is listed."""
    mutants: tuple[Mutant, ...]


def places_of(spec: ToolSpec, file: DomainFile) -> Iterator[MutantPlace]:
    """Every place of the tool, in the order of its statements, then pairs of them."""
    maker = _Maker(spec, file)
    known = Vocabulary.of(spec, file, maker.rows)
    for index, statement in enumerate(spec.semantics):
        of_statement = STATEMENTS.get(type(statement))
        if of_statement is None:
            raise TypeError(f"no mutants are made of {type(statement).__name__}; add its maker")
        yield from of_statement(maker, index, statement)
        for path, text in expressions_of(statement):
            yield from maker.of_expression(index, path, text, known)
    yield from maker.pairs()


def expressions_of(statement: Statement) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path, text) of every expression of the statement: members that hold expressions by their
    declaration, and what hangs below them."""
    for name in type(statement).model_fields:
        if _holds_expressions(type(statement), name):
            yield from _texts((name,), getattr(statement, name))


def _holds_expressions(kind: type[BaseModel], name: str) -> bool:
    field = kind.model_fields[name]
    return "expression_text" in f"{field.annotation} {field.metadata}"


def _texts(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _texts((*path, name), member)
    elif value is not None:
        yield path, expression_text(value)


def _with_text(value: Any, path: Sequence[str], text: str) -> Any:
    if not path:
        return text
    return {**value, path[0]: _with_text(value[path[0]], path[1:], text)}


class _Maker:
    def __init__(self, spec: ToolSpec, file: DomainFile) -> None:
        self.spec, self.file, self.rows = spec, file, row_entities(spec)

    def of_expression(
        self, index: int, path: tuple[str, ...], text: str, known: Vocabulary
    ) -> Iterator[MutantPlace]:
        statement = self.spec.semantics[index]
        condition = (type(statement), path[0]) in CONDITIONS
        try:
            tree = parse(text)
        except ExpressionError:
            return  # an expression that does not parse never compiled
        if path[0] == "limit" and isinstance(statement, Read) and self.settles(index, tree):
            return
        if path[:1] == ("set",) and path[1:] == (self.step_field(index),):
            return  # the status of a step on the way, which the lifecycle asks for
        if isinstance(statement, ForEach) and not self.reads(index, statement.bind):
            return  # how often the body runs is examined with the loop; what with, nobody sees
        place = f"semantics[{index}].{'.'.join(path)}"
        reason = _REASONS.get(path[0], "dead_term")
        for exchange in exchanges_of(tree, known, condition=condition):
            mutants = []
            for new in exchange.alternatives:
                member = getattr(statement, path[0])
                changed = show(with_node(tree, exchange.path, new))
                changes = {path[0]: _with_text(member, path[1:], changed)}
                mutants.append(self.with_statement(index, changes))
            words = f"{place} {exchange.words}"
            yield MutantPlace(index, words, reason, exchange.grave, tuple(mutants))

    def step_field(self, index: int) -> str | None:
        """The status that the update sets and a later one of the same row sets again: a step of a
        lifecycle on the way to the next. What comes of it is the later status, and whether it is
        needed is the lifecycle's to say."""
        statement = self.spec.semantics[index]
        if not isinstance(statement, Update):
            return None
        later = [s for s in self.spec.semantics[index + 1 :] if isinstance(s, Update)]
        again = {f for s in later if s.target == statement.target for f in s.set}
        fields = {e.lifecycle_field for e in self.file.entities.values() if e.lifecycle} & again
        return next((field for field in statement.set if field in fields), None)

    def reads(self, index: int, name: str) -> bool:
        return _is_used(self.spec, index, name)

    def settles(self, index: int, limit: Node) -> bool:
        """Whether another limit does the same (proved): the read gives no more rows anyway, or
        none but the first is looked at."""
        statement = self.spec.semantics[index]
        assert isinstance(statement, Read)
        most = isinstance(limit, Literal) and type(limit.value) is int and limit.value >= MAX_ROWS
        return most or _only_first(self.spec, index, statement)

    def with_statement(self, index: int, update: Mapping[str, Any]) -> Mutant:
        statements = list(self.spec.semantics)
        statements[index] = statements[index].model_copy(update=dict(update))
        return Mutant(self._changed(statements))

    def without(self, index: int) -> Mutant:
        return Mutant(self._changed([s for i, s in enumerate(self.spec.semantics) if i != index]))

    def _changed(self, semantics: list[AnyStatement]) -> ToolSpec:
        return self.spec.model_copy(update={"semantics": semantics})

    def detached(self, *indices: int) -> Mutant:
        return Mutant(self.spec, detached=frozenset(indices))

    def emptied(self, index: int) -> Mutant:
        return Mutant(self.spec, emptied=frozenset((index,)))

    def body(self, index: int) -> list[int]:
        """Statements of the loop at `index`."""
        loop = self.spec.semantics[index]
        assert isinstance(loop, ForEach)
        below = list(enumerate(self.spec.semantics))[index + 1 :]
        return [i for i, _ in body_of(loop, below)]

    def pairs(self) -> Iterator[MutantPlace]:
        """Two statements that write, which may undo each other: both without their effect."""
        writing = [i for i, s in enumerate(self.spec.semantics) if s.op in WRITING_OPS]
        for one, other in list(combinations(writing, 2))[:MAX_PAIRS]:
            names = " and ".join(f"semantics[{i}] ({_told(self.spec, i)})" for i in (one, other))
            mutant = self.detached(one, other)
            yield MutantPlace(one, f"without {names} together", "dead_statement", True, (mutant,))


def _told(spec: ToolSpec, index: int) -> str:
    """The statement in two words."""
    statement = spec.semantics[index]
    for name in ("entity", "target", "bind", "error"):
        if isinstance(value := getattr(statement, name, None), str):
            return f"{statement.op} {value}"
    return statement.op


def _gone(maker: _Maker, index: int, *mutants: Mutant) -> MutantPlace:
    words = f"without semantics[{index}] ({_told(maker.spec, index)})"
    return MutantPlace(index, words, "dead_statement", True, mutants)


def _of_require(maker: _Maker, index: int, statement: Require) -> Iterator[MutantPlace]:
    words = f"without semantics[{index}] (require {statement.error})"
    true = maker.with_statement(index, {"that": "true"})  # alone in a loop it cannot be taken out
    yield MutantPlace(index, words, "dead_statement", True, (true,))


def _of_write(maker: _Maker, index: int, statement: Statement) -> Iterator[MutantPlace]:
    if not (isinstance(statement, Update) and set(statement.set) == {maker.step_field(index)}):
        yield _gone(maker, index, maker.detached(index))
    if isinstance(statement, Create | Update):
        yield from _of_sets(maker, index, statement)


def _of_sets(maker: _Maker, index: int, statement: Create | Update) -> Iterator[MutantPlace]:
    """Each entry left out, and the values of each two fields of one kind exchanged."""
    place, values = f"semantics[{index}].set", statement.set
    step = maker.step_field(index)
    for field in values if len(values) > 1 else ():
        if field == step:
            continue
        left = {name: text for name, text in values.items() if name != field}
        mutants = [maker.with_statement(index, {"set": left})]
        if isinstance(statement, Create):  # a field that a row needs is given another value
            others = _other_values(maker.file.entities[statement.entity].fields.get(field))
            mutants += [
                maker.with_statement(index, {"set": {**left, field: show(other)}})
                for other in others
                if show(other) != values[field]
            ]
        words = f"without {place}.{field}"
        yield MutantPlace(index, words, "dead_statement", True, tuple(mutants))
    for one, other in _pairs(values, maker.file, _entity_of(maker, statement)):
        swapped = {**values, one: values[other], other: values[one]}
        words = f"with {place}.{one} and {other} exchanged"
        mutant = maker.with_statement(index, {"set": swapped})
        yield MutantPlace(index, words, "dead_field", True, (mutant,))


def _other_values(field: FieldSpec | None) -> list[Node]:
    """Constants of which one is sure to fit the field's type."""
    if field is None:
        return []
    members = list(map(Literal, field.values))
    day = [Literal("2000-01-01"), Literal("2000-01-01T00:00:00")]
    plain = [Literal(v) for v in (0, 1, False, True, "-")]
    return [*members, *plain, *day, ListOf(()), ListOf((Literal("-"),))]


def _entity_of(maker: _Maker, statement: Create | Update) -> str | None:
    return statement.entity if isinstance(statement, Create) else maker.rows.get(statement.target)


def _pairs(
    values: Mapping[str, str], file: DomainFile, entity: str | None
) -> Iterator[tuple[str, str]]:
    """Of fields whose values may be told apart only by running: of one kind, set differently."""
    if entity is None:
        return
    fields = file.entities[entity].fields
    for one, other in combinations(values, 2):
        kinds = [(fields[name].type, fields[name].to) for name in (one, other) if name in fields]
        same = values[one] == values[other]  # proved: to exchange them is to change nothing
        if len(kinds) == 2 and kinds[0] == kinds[1] and kinds[0][0] != "enum" and not same:
            yield one, other


def _of_read(maker: _Maker, index: int, statement: Read) -> Iterator[MutantPlace]:
    if statement.key is not None:
        # what rests on the row is examined where it stands; a row that nothing uses can go
        if not _is_used(maker.spec, index, statement.bind):
            yield _gone(maker, index, maker.without(index))
        return
    yield _gone(maker, index, maker.without(index), maker.emptied(index))
    if statement.where is not None:
        words = f"semantics[{index}].where without {statement.where!r}"
        mutant = maker.with_statement(index, {"where": "true"})
        if " and " not in statement.where:  # else term by term
            yield MutantPlace(index, words, "dead_filter", True, (mutant,))
    entity = maker.file.entities.get(statement.entity)
    for i, key in enumerate(statement.order_by):
        rest = statement.order_by[:i] + statement.order_by[i + 1 :]
        turned = key.removeprefix("-") if key.startswith("-") else f"-{key}"
        other = (*statement.order_by[:i], turned, *statement.order_by[i + 1 :])
        changes = [(f"with {turned!r}", other)]
        if entity is None or key != entity.key:  # rows come in the order of their keys (proved)
            changes.append((f"without {key!r}", rest))
        for words, keys in changes:
            mutant = maker.with_statement(index, {"order_by": keys})
            place = f"semantics[{index}].order_by {words}"
            yield MutantPlace(index, place, "dead_order", turned not in keys, (mutant,))
    for name in ("limit", "cursor"):
        if getattr(statement, name) is not None and not _only_first(maker.spec, index, statement):
            mutant = maker.with_statement(index, {name: None})
            words = f"semantics[{index}] without its {name}"
            yield MutantPlace(index, words, "dead_limit", False, (mutant,))


def _only_first(spec: ToolSpec, index: int, read: Read) -> bool:
    """Whether first() and exists() alone look at the rows: any limit then does the same (proved),
    and costs less."""
    uses = [
        site
        for statement in spec.semantics[index + 1 :]
        for _, text in expressions_of(statement)
        for site in sites_of(parse(text))
        if site.node == Name(read.bind)
    ]
    return all(
        site.above and isinstance(site.above[0], Call) and site.above[0].function in _FIRST_ONLY
        for site in uses
    ) and not any(s.op == "for_each" and s.over == read.bind for s in spec.semantics)


_FIRST_ONLY = frozenset({"first", "exists"})


def _is_used(spec: ToolSpec, index: int, name: str) -> bool:
    """Whether a later statement mentions the binding."""
    later = spec.semantics[index + 1 :]
    texts = " ".join(
        str(s.model_dump(by_alias=True, exclude_defaults=True, exclude={"inside"})) for s in later
    )
    return name in re.findall(r"\w+", texts)


def _of_loop(maker: _Maker, index: int, statement: ForEach) -> Iterator[MutantPlace]:
    writes = any(maker.spec.semantics[i].op in WRITING_OPS for i in maker.body(index))
    empty = maker.emptied(index)
    yield _gone(maker, index, maker.detached(index) if writes else empty)


def _of_when(maker: _Maker, index: int, statement: When) -> Iterator[MutantPlace]:
    yield _gone(maker, index, maker.with_statement(index, {"that": "false"}))
    words = f"semantics[{index}].that without {statement.that!r}"
    mutant = maker.with_statement(index, {"that": "true"})
    yield MutantPlace(index, words, "dead_term", True, (mutant,))


def _of_value(maker: _Maker, index: int, statement: Let | Return) -> Iterator[MutantPlace]:
    """Nothing but its expressions: what a tool gives a name or answers, it has to read."""
    return iter(())


CONDITIONS = {(Require, "that"), (Read, "where"), (When, "that")}
"""Members that are conditions: without one, the statement lets everything through."""

_REASONS = {"where": "dead_filter", "limit": "dead_limit", "value": "dead_field"}

STATEMENTS: Mapping[type[Statement], Callable[[_Maker, int, Any], Iterator[MutantPlace]]] = {
    Require: _of_require,
    Create: _of_write,
    Update: _of_write,
    Delete: _of_write,
    Link: _of_write,
    Read: _of_read,
    ForEach: _of_loop,
    When: _of_when,
    Let: _of_value,
    Return: _of_value,
}
"""By class of statement; what its expressions hold comes on top."""


def row_entities(spec: ToolSpec) -> dict[str, str]:
    """Binding -> entity of the row, or rows, that it holds."""
    found: dict[str, str] = {}
    for statement in spec.semantics:
        if isinstance(statement, Read | Create) and statement.bind is not None:
            found[statement.bind] = statement.entity
        elif isinstance(statement, ForEach) and statement.over in found:
            found[statement.bind] = found[statement.over]
    return found
