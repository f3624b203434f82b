"""What may stand in the place of a node of an expression, to see whether anyone notices.

An exchange is grave where it takes a part away: if nothing changes, the part does nothing. It is a
probe where it moves a bound, a constant or a name: if nothing changes, no case came near enough.
Every class of nodes has its maker here, and one without is an error, not a gap.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tool_specs.language.domain_file import DomainFile, ParamSpec, ToolSpec
from tool_specs.language.expressions import (
    COMPARISONS,
    Access,
    Binary,
    Call,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    show,
    terms,
    walk,
)
from tool_specs.validation.trees import Site, TreePath, sites_of

TRUE, FALSE, NULL = Literal(True), Literal(False), Literal(None)

_CONSTANTS = (NULL, Literal(0), Literal("-"), FALSE, ListOf(()))
"""What takes over where nothing else of the place compiles: one of each kind of value."""

_BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_NAMING = frozenset({"lookup", "pick"})
"""Functions whose texts are names of entities and fields, which are no constants."""


class Exchange(NamedTuple):
    path: TreePath
    words: str
    alternatives: tuple[Node, ...]
    """For the node at `path`: the first that compiles is run."""
    grave: bool


@dataclass(frozen=True)
class Vocabulary:
    """What a tool of a domain names, and what it could have named instead."""

    file: DomainFile
    params: Mapping[str, ParamSpec]
    entities: Mapping[str, str]
    """Name -> entity of the row, or the rows, that it holds: bindings, and candidates of reads."""
    members: Mapping[str, tuple[str, ...]]
    """Member of an enum -> the others of the enums that have it."""

    @classmethod
    def of(cls, spec: ToolSpec, file: DomainFile, bound: Mapping[str, str]) -> "Vocabulary":
        members: dict[str, dict[str, None]] = {}
        enums = [f.values for entity in file.entities.values() for f in entity.fields.values()]
        for values in (*enums, *(p.values for p in spec.params.values())):
            for value in values:
                members.setdefault(value, {}).update(dict.fromkeys(v for v in values if v != value))
        entities = {name: name for name in file.entities} | dict(bound)
        others = {name: tuple(found) for name, found in members.items()}
        return cls(file, spec.params, entities, others)

    def entity(self, base: Node) -> str | None:
        """Of the row that the expression stands for, where its form tells."""
        match base:
            case Name(name=name):
                return self.entities.get(name)
            case Call(function="lookup", arguments=(Literal(value=str(name)), *_)):
                return name if name in self.file.entities else None
            case Access(base=inner, field=field):
                fields = self.file.entities[own].fields if (own := self.entity(inner)) else {}
                step = fields.get(field) or fields.get(f"{field}_id")
                return step.to if step is not None else None
        return None

    def kind(self, node: Node) -> str | None:
        """Type of the field or parameter that the expression reads, where its form tells."""
        if not isinstance(node, Access):
            return None
        if node.base == Name("args"):
            return self.params[node.field].type if node.field in self.params else None
        entity = self.entity(node.base)
        found = self.file.entities[entity].fields.get(node.field) if entity else None
        return found.type if found is not None else None

    def others(self, node: Access) -> tuple[str, ...]:
        """Names of the same kind that could stand in its place."""
        if node.base == Name("args"):
            own = self.params.get(node.field)
            kinds = {name: (p.type, p.ref, p.values) for name, p in self.params.items()}
        else:
            entity = self.entity(node.base)
            fields = self.file.entities[entity].fields if entity else {}
            own = fields.get(node.field)
            kinds = {name: (f.type, f.to, f.values) for name, f in fields.items()}
        if own is None:
            return ()
        return tuple(n for n in kinds if n != node.field and kinds[n] == kinds[node.field])


def exchanges_of(tree: Node, known: Vocabulary, *, condition: bool) -> Iterator[Exchange]:
    """Of every node of the tree. `condition`: the whole is one, as of a require or a filter."""
    for site in sites_of(tree):
        maker = MAKERS.get(type(site.node))
        if maker is None:
            raise TypeError(f"no mutants are made of {type(site.node).__name__}; add its maker")
        settled = _is_settled(site, condition=condition)
        for words, alternatives, grave in maker(site, known, settled):
            fitting = tuple(node for node in alternatives if node != site.node)
            if fitting:
                yield Exchange(site.path, words, fitting, grave)


_Made = Iterator[tuple[str, tuple[Node, ...], bool]]


def _is_settled(site: Site, *, condition: bool) -> bool:
    """A truth whose loss is tried one place further up: there it is left out, or a side taken."""
    if not site.above:
        return condition
    match site.above[0]:
        case Binary(operator="and" | "or") | Unary(operator="not"):
            return True
        case Call(function="if", arguments=(first, *_)):
            return first is site.node
    return False


def _without(node: Node) -> str:
    return f"without {show(node)!r}"


def _instead(new: Node, old: Node) -> str:
    return f"with {show(new)!r} in place of {show(old)!r}"


def _binary(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Binary)
    if node.operator not in COMPARISONS:
        for part, rest in ((node.left, node.right), (node.right, node.left)):
            if not (node.operator == "and" and _is_said_by(part, site)):
                yield _without(part), (rest, *_CONSTANTS), True
        return
    yield from _truths(node, settled)
    if bound := _BOUNDS.get(node.operator):
        moved = replace(node, operator=bound)
        yield _instead(moved, node), (moved,), False
    elif node.operator == "starts_with":
        moved = replace(node, operator="contains")
        yield _instead(moved, node), (moved,), False


def _is_said_by(part: Node, site: Site) -> bool:
    """Whether `part` is a test against null of what another term of the same `and` compares: no
    comparison with null holds, so that leaving the test out changes nothing (proved)."""
    match part:
        case Binary(operator="!=", left=tested, right=Literal(value=None)):
            pass
        case Binary(operator="!=", left=Literal(value=None), right=tested):
            pass
        case _:
            return False
    top: Node = site.node
    for above in site.above:
        if not (isinstance(above, Binary) and above.operator == "and"):
            break
        top = above
    return any(_fails_on_null(term, tested) for term in terms(top) if term is not part)


_PASSING_ON = frozenset({"date", "add_days", "add_minutes", "days_between", "minutes_between"})


def _fails_on_null(term: Node, tested: Node) -> bool:
    """A comparison that does not hold where `tested` is null."""
    if not isinstance(term, Binary) or term.operator in ("and", "or", "!=", "in"):
        return False
    for side, other in ((term.left, term.right), (term.right, term.left)):
        own = not any(isinstance(node, Access) or node == NULL for node in walk(other))
        if _hands_on(side, tested) and (own or term.operator != "=="):
            return True
    return False


def _hands_on(node: Node, tested: Node) -> bool:
    """Whether it is null where `tested` is."""
    if node == tested:
        return True
    if isinstance(node, Call) and node.function in _PASSING_ON:
        return any(_hands_on(argument, tested) for argument in node.arguments)
    return isinstance(node, Access) and _hands_on(node.base, tested)


def _truths(node: Node, settled: bool) -> _Made:
    """A truth that is an answer or is stored has to come out both ways."""
    if not settled:
        for truth in (TRUE, FALSE):
            yield _instead(truth, node), (truth,), True


def _unary(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Unary)
    if node.operator == "not":
        yield from _truths(node, settled)
    else:
        yield _instead(node.operand, node), (node.operand,), True


_ROWS = frozenset({"lookup", "first"})


def _reads_of(node: Node) -> bool:
    """Whether it reads fields of the row below it."""
    return isinstance(node, Access) or (isinstance(node, Call) and node.function == "pick")


_DROPPING = frozenset({"coalesce", "min", "max", "concat"})
"""Functions of any number of arguments: each of them can be left out."""


def _call(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Call)
    items = node.arguments
    if node.function == "now":
        later = Call("add_days", (node, Literal(1)))
        yield "a day later", (later,), False
    elif node.function == "if" and len(items) == 3:
        yield f"without its case {show(items[1])!r}", (items[2],), True
        yield f"without its case {show(items[2])!r}", (items[1],), True
    elif node.function in _DROPPING and len(items) > 1:
        for i, item in enumerate(items):
            rest = items[:i] + items[i + 1 :]
            left = rest[0] if len(rest) == 1 else replace(node, arguments=rest)
            yield f"{_without(item)} in {node.function}()", (left, *_CONSTANTS), True
    elif _changes_nothing(node, known) or _is_in_its_text(site, known):
        return  # proved, and no lie about anything
    elif node.function in _ROWS and site.above and _reads_of(site.above[0]):
        return  # examined with what is read of it
    elif node.function == "pick":
        yield _without(node), (items[0], *_CONSTANTS), True
    elif items:
        # a call that gives back what it takes is a habit and no lie: a probe and not grave
        own = items[:1] if node.function not in _NAMING else items[1:]
        yield f"without {node.function}()", (*own, *_CONSTANTS), False


def _changes_nothing(node: Call, known: Vocabulary) -> bool:
    """A conversion of what has the type already: the day of a date, a whole number rounded."""
    if node.function == "date":
        return known.kind(node.arguments[0]) == "date"
    return node.function == "round" and _is_whole(node.arguments[0], known)


def _is_in_its_text(site: Site, known: Vocabulary) -> bool:
    """A day that is taken of a date-time for the second time: `days_between` takes it itself, and
    the text of a date-time begins with it, so that `date(x) < d` is `x < d`, and `date(x) >= d` is
    `x >= d`."""
    assert isinstance(site.node, Call)
    if site.node.function != "date" or not site.above:
        return False
    if isinstance(test := site.above[0], Call):
        return test.function == "days_between"
    if not isinstance(test, Binary):
        return False
    left, right = test.left is site.node, test.right is site.node
    other = test.right if left else test.left
    day = known.kind(other) == "date" or (isinstance(other, Call) and other.function == "date")
    return day and ((left and test.operator in ("<", ">=")) or (right and test.operator in (">", "<=")))


_WHOLE = frozenset({"count", "days_between", "minutes_between"})


def _is_whole(node: Node, known: Vocabulary) -> bool:
    match node:
        case Literal(value=value):
            return type(value) is int
        case Access():
            return known.kind(node) == "integer"
        case Unary(operator="-", operand=operand):
            return _is_whole(operand, known)
        case Binary(operator="+" | "-" | "*", left=left, right=right):
            return _is_whole(left, known) and _is_whole(right, known)
        case Call(function="sum" | "min" | "max" | "coalesce", arguments=items):
            return all(_is_whole(item, known) for item in items)
        case Call(function=function):
            return function in _WHOLE
    return False


def _access(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Access)
    if node.base == Name("args"):
        spec = known.params.get(node.field)
        given = spec is not None and spec.optional and spec.default is None
        if given and not _null_test(site):
            yield f"without looking at {show(node)!r}", _CONSTANTS, True
    elif isinstance(node.base, Call) or (
        isinstance(node.base, Access) and known.entity(node.base) is not None
    ):
        yield f"without {show(node)!r}", _CONSTANTS, True
    if others := known.others(node):
        moved = tuple(replace(node, field=name) for name in others)
        yield f"with another in place of {show(node)!r}", (*moved, *_CONSTANTS), False


def _null_test(site: Site) -> bool:
    """Whether it only stands in a test for null, which is a term of its own."""
    match site.above:
        case (Binary(operator="==" | "!=") as test, *_):
            return NULL in (test.left, test.right)
    return False


def _name(site: Site, known: Vocabulary, settled: bool) -> _Made:
    assert isinstance(site.node, Name)
    # rows of a read, or of a loop, are examined with the statement that binds them
    if site.node.name not in known.entities and not any(isinstance(a, Access) for a in site.above[:1]):
        yield f"without {show(site.node)!r}", (ListOf(()), *_CONSTANTS), True


def _list(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, ListOf)
    for i, item in enumerate(node.items):
        rest = node.items[:i] + node.items[i + 1 :]
        yield f"{_without(item)} in the list", (replace(node, items=rest),), True


def _literal(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node, above = site.node, site.above[:1]
    assert isinstance(node, Literal)
    if any(isinstance(a, Call) and a.function in _NAMING for a in above):
        return
    value = node.value
    if isinstance(value, bool):
        moved: tuple[Node, ...] = (Literal(not value),)
    elif isinstance(value, int | float):
        rounding = [a for a in above if isinstance(a, Call) and a.function == "round"]
        if rounding and _changes_nothing(rounding[0], known):
            return
        moved = (Literal(value - 1), Literal(value + 1))
    elif isinstance(value, str):
        moved = (Literal(f"{value}~"), *map(Literal, known.members.get(value, ())))
    else:
        return  # null stands in tests and defaults, which are terms of their own
    yield f"with another constant in place of {show(node)}", moved, False


MAKERS: Mapping[type[Node], Callable[[Site, Vocabulary, bool], _Made]] = {
    Binary: _binary,
    Unary: _unary,
    Call: _call,
    Access: _access,
    Name: _name,
    ListOf: _list,
    Literal: _literal,
}
"""By class of node."""
