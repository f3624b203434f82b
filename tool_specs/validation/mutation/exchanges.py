"""What may stand in the place of a node of an expression, to see whether anyone notices.

An exchange is grave where it takes a part away: if nothing changes, the part does nothing. It is a
probe where it moves a bound, a constant or a name: if nothing changes, no case came near enough.
Every class of nodes has its maker here, and one without is an error, not a gap.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from tool_specs.language.expressions import show
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    Each,
    ListOf,
    Literal,
    Name,
    Node,
    Record,
    Unary,
)
from tool_specs.language.syntax.tokens import COMPARISONS
from tool_specs.validation.mutation.equivalences import (
    NULL,
    changes_nothing,
    implied_sides,
    is_below_choice,
    is_bound_of_nothing,
    is_choice_of_larger,
    is_guard,
    is_idle_conversion,
    is_refusing_fallback,
    needless_guards,
    unseen_parts,
)
from tool_specs.validation.mutation.trees import Site, TreePath, sites_of
from tool_specs.validation.mutation.vocabulary import Vocabulary

TRUE, FALSE = Literal(True), Literal(False)

_CONSTANTS = (NULL, Literal(0), Literal("-"), FALSE, ListOf(()))
"""What takes over where nothing else of the place compiles: one of each kind of value."""

_BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_NAMING = frozenset({"lookup", "pick"})
"""Functions whose texts are names of entities and fields, which are no constants."""


_ANOTHER_MONTH = 40
"""Days after which the month of a date has another name, and mostly the day as well."""

_LARGE = 1000
"""A factor from here on is moved by a tenth: its neighbour differs by less than people round."""

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


class NodeExchange(NamedTuple):
    path: TreePath
    words: str
    alternatives: tuple[Node, ...]
    """For the node at `path`: the first that compiles is run."""
    grave: bool


def exchanges_of(tree: Node, known: Vocabulary, *, condition: bool) -> Iterator[NodeExchange]:
    """Of every node of the tree. `condition`: the whole is one, as of a require or a filter."""
    needless: list[TreePath] = []
    for site in sites_of(tree):
        if any(site.path[: len(path)] == path for path in needless):
            continue  # whatever stands there, the whole is the same
        needless += implied_sides(site, known) + unseen_parts(site)
        needless += [(*site.path, step) for step in needless_guards(site.node, known)]
        maker = MAKERS.get(type(site.node))
        if maker is None:
            raise TypeError(f"no mutants are made of {type(site.node).__name__}; add its maker")
        settled = _is_settled(site, condition=condition)
        for words, alternatives, grave in maker(site, known, settled):
            fitting = tuple(node for node in alternatives if node != site.node)
            if fitting:
                yield NodeExchange(site.path, words, fitting, grave)


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
        case Each(condition=kept):
            return kept is site.node
    return False


def _without(node: Node) -> str:
    return f"without {show(node)!r}"


def _instead(new: Node, old: Node) -> str:
    return f"with {show(new)!r} in place of {show(old)!r}"


def _binary(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Binary)
    if node.operator not in COMPARISONS:
        needless = implied_sides(site, known)
        needless += [(*site.path, step) for step in needless_guards(node, known)]
        sides = (("left", node.left, node.right), ("right", node.right, node.left))
        for name, part, rest in sides:
            if (*site.path, (name, None)) not in needless:
                yield _without(part), (rest, *_CONSTANTS), not is_guard(node, part, known)
        return
    yield from _truths(node, settled)
    if is_choice_of_larger(site) or is_bound_of_nothing(site):
        return
    if bound := _BOUNDS.get(node.operator):
        moved = replace(node, operator=bound)
        yield _instead(moved, node), (moved,), False
    elif node.operator == "starts_with":
        moved = replace(node, operator="contains")
        yield _instead(moved, node), (moved,), False


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
        if is_below_choice(site, known):
            return
        of_month = any(isinstance(a, Call) and a.function == "format" for a in site.above)
        days = _ANOTHER_MONTH if of_month else 1
        later = Call("add_days", (node, Literal(days)))
        yield f"{days} days later" if of_month else "a day later", (later,), False
    elif node.function == "if" and len(items) == 3:
        grave = not is_guard(node, items[0], known)
        yield f"without its case {show(items[1])!r}", (items[2],), grave
        yield f"without its case {show(items[2])!r}", (items[1],), grave
    elif node.function in _DROPPING and len(items) > 1:
        needless = needless_guards(node, known)
        for i, item in enumerate(items):
            if (i and is_refusing_fallback(site)) or ("arguments", i) in needless:
                continue
            rest = items[:i] + items[i + 1 :]
            left = rest[0] if len(rest) == 1 else replace(node, arguments=rest)
            grave = not is_guard(node, item, known)
            yield f"{_without(item)} in {show(node)!r}", (left, *_CONSTANTS), grave
    elif is_idle_conversion(site, known):
        return  # proved, and no lie about anything
    elif node.function in _ROWS and any(map(_reads_of, site.above[:1])):
        return  # examined with what is read of it
    elif node.function == "pick":
        words = f"{_without(node)}, which names all fields that are looked at,"
        yield words, (*items[:1], *_CONSTANTS), True
    else:
        # a call that gives back what it takes is a habit and no lie: a probe and not grave
        own = items[node.function in _NAMING :][:1]
        yield f"without {node.function}()", (*own, *_CONSTANTS), False


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
    if site.node.name not in known.entities and not any(
        isinstance(a, Access) for a in site.above[:1]
    ):
        yield f"without {show(site.node)!r}", (ListOf(()), *_CONSTANTS), True


def _list(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, ListOf)
    for i, item in enumerate(node.items):
        rest = node.items[:i] + node.items[i + 1 :]
        yield f"{_without(item)} in the list", (replace(node, items=rest),), True


def _each(site: Site, known: Vocabulary, settled: bool) -> _Made:
    node = site.node
    assert isinstance(node, Each)
    yield _without(node), (ListOf(()), *_CONSTANTS), True
    if node.condition is not None:
        yield f"without its 'if {show(node.condition)}'", (replace(node, condition=None),), True


def _record(site: Site, known: Vocabulary, settled: bool) -> _Made:
    """Nothing of its own: the values of its members are places."""
    return iter(())


def _is_factor(site: Site) -> bool:
    return any(isinstance(a, Binary) and a.operator in ("*", "/") for a in site.above[:1])


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
        if rounding and changes_nothing(rounding[0], known):
            return
        if _is_factor(site) and abs(value) >= _LARGE:
            moved = (Literal(value + value / 10),)
        else:
            moved = (Literal(value - 1), Literal(value + 1))
    elif isinstance(value, str) and (found := _TIME_OF_DAY.fullmatch(value)):
        minute = (int(found[1]) * 60 + int(found[2]) + 1) % 1440
        moved = (Literal(f"{minute // 60:02}:{minute % 60:02}"),)
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
    Each: _each,
    Record: _record,
    Literal: _literal,
}
"""By class of node."""
