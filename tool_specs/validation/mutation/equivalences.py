"""Exchanges that change nothing, by simple algebra: proved, and so neither tried nor blamed.

- a conversion of what has the type already: the day of a date, a whole number rounded;
- the day of a date-time that `days_between` takes itself, or whose text decides the comparison,
  or that is shown as a day;
- a fallback for null that refuses as null does;
- a test against null beside a comparison that does not hold for null, joined by `and`;
- a test for null beside a difference that holds for null, joined by `or`;
- what the elements of a list are, where they are only counted;
- the smaller or the larger of two, whichever of them is taken where they are equal;
- the bound of what is summed up, where that adds nothing;
- a guard against a value that the domain does not let occur (`needless_guards`, told as a hint).

What a limit settles, and the order of keys, is with the statement (`mutants.py`).
"""

import operator
from collections.abc import Callable
from typing import Any

from tool_specs.language.expressions import show, terms, walk
from tool_specs.language.syntax.nodes import Access, Binary, Call, Each, Literal, Name, Node
from tool_specs.validation.mutation.decimals import is_rounded_idly
from tool_specs.validation.mutation.trees import Site, TreePath, TreeStep
from tool_specs.validation.mutation.vocabulary import Vocabulary

NULL = Literal(None)


def is_idle_conversion(site: Site, known: Vocabulary) -> bool:
    """Whether the call at the site gives what it is given, or what does the same there."""
    assert isinstance(site.node, Call)
    known = known.within(site.above)
    return changes_nothing(site.node, known) or (
        site.node.function == "date"
        and (_is_in_its_text(site, known) or _is_shown_as_day(site) or is_below_choice(site, known))
    )


def implied_sides(site: Site, known: Vocabulary) -> list[TreePath]:
    """Paths of the sides of an `and` or `or` without which it is the same."""
    node = site.node
    if not isinstance(node, Binary) or node.operator not in ("and", "or"):
        return []
    sides = (("left", node.left, node.right), ("right", node.right, node.left))
    return [
        (*site.path, (name, None))
        for name, part, rest in sides
        if _is_said_by(part, site) or _is_said_again(part, rest, node, known)
    ]


def unseen_parts(site: Site) -> list[TreePath]:
    """What an element is of a list that is only counted: `exists([g for g in rows if c])`."""
    match site.node:
        case Call(function="exists" | "count", arguments=(Each(),)):
            return [(*site.path, ("arguments", 0), ("item", None))]
    return []


def is_choice_of_larger(site: Site) -> bool:
    """Whether the site is the comparison of `if(a < b, b, a)`, a test for null beside it or not:
    where both are equal, so is what is taken, and the bound belongs to either case."""
    node, above = site.node, site.above
    condition: Node = node
    match above[:1]:
        case (Binary(operator="and", left=test, right=right) as both,) if right is node:
            if _tested_for_null(test, "!=") is None:
                return False
            condition, above = both, above[1:]
    match node, above[:1]:
        case (
            Binary(operator="<" | "<=" | ">" | ">=", left=left, right=right),
            (Call(function="if", arguments=(first, *rest)),),
        ) if first is condition:
            return {show(part) for part in rest} == {show(left), show(right)}
    return False


def is_below_choice(site: Site, known: Vocabulary) -> bool:
    """Whether the site stands in the comparison of a choice of the larger of two days: a day or a
    time more on one side makes no difference where the other is whole days away."""
    for place, node in enumerate(site.above):
        if isinstance(node, Binary) and is_choice_of_larger(
            Site((), node, site.above[place + 1 :])
        ):
            return "date" in (known.kind(node.left), known.kind(node.right))
    return False


def is_bound_of_nothing(site: Site) -> bool:
    """Whether the site is the comparison of `sum([a - b for x in xs if a > b])`, other conditions
    beside it or not: what lies on the bound adds nothing."""
    condition, above = site.node, site.above
    while above and isinstance(above[0], Binary) and above[0].operator == "and":
        condition, above = above[0], above[1:]
    match site.node, above[:2]:
        case (
            Binary(operator="<" | "<=" | ">" | ">=", left=left, right=right),
            (Each(item=item, condition=asked), Call(function="sum")),
        ) if asked is condition:
            apart = {show(Binary("-", left, right)), show(Binary("-", right, left))}
            zero = right == Literal(0) and show(item) == show(left)
            return zero or show(item) in apart
    return False


def needless_guards(node: Node, known: Vocabulary) -> list[TreeStep]:
    """Steps to the parts of a call, or of an `and` or `or`, that guard against what the domain does
    not let occur: null in a field that is not optional, a number beyond the field's bounds."""
    match node:
        case Call(function="coalesce", arguments=(first, *rest)) if _is_stored(first, known):
            return [("arguments", i) for i in range(1, len(rest) + 1)]
        case Call(function="min" | "max" as name, arguments=(one, other)):
            pairs = ((0, one, other), (1, other, one))
            return [("arguments", i) for i, guard, x in pairs if _is_beyond(name, guard, x, known)]
        case Binary(operator="and" | "or" as joined, left=left, right=right):
            sign = "!=" if joined == "and" else "=="
            tested = (("left", left), ("right", right))
            return [
                (side, None)
                for side, part in tested
                if (x := _tested_for_null(part, sign)) is not None and known.is_there(x)
            ]
    return []


def _is_beyond(name: str, guard: Node, x: Node, known: Vocabulary) -> bool:
    """Whether the constant is never taken: `max(0, x)` of a field whose least value is 0."""
    least, most = known.bounds(x)
    bound = least if name == "max" else most
    value = guard.value if isinstance(guard, Literal) else None
    if not isinstance(value, int | float) or bound is None or not known.is_there(x):
        return False
    return value <= bound if name == "max" else value >= bound


def _is_stored(node: Node, known: Vocabulary) -> bool:
    """Whether the domain lets it never be null. A parameter that is never null is the tool's own
    doing: a second default beside its default is a fault, and no guard."""
    return known.is_there(node) and not _is_argument(node)


def _is_argument(node: Node) -> bool:
    return isinstance(node, Access) and node.base == Name("args")


def is_guard(node: Node, part: Node, known: Vocabulary) -> bool:
    """Whether a part of a call, or of an `and` or `or`, only matters for values that are rare, such
    as null and zero. That no state shows it alive refuses no tool."""
    match node:
        case Call(function="coalesce", arguments=(first, *_)):
            return part is not first and not (_is_argument(first) and known.is_there(first))
        case Call(function="min" | "max"):
            return isinstance(part, Literal)
        case Binary(operator="and"):
            return _tested_for_null(part, "!=") is not None
        case Binary(operator="or"):
            return _tested_for_null(part, "==") is not None
        case Call(function="if", arguments=(condition, *_)):
            return isinstance(condition, Binary) and any(
                side in (NULL, Literal(0)) for side in (condition.left, condition.right)
            )
    return False


def is_refusing_fallback(site: Site) -> bool:
    """Whether the site is `coalesce(x, c)` compared with a constant that `c` does not meet: null
    does not meet it either, so that the comparison is the same without the fallback."""
    match site.node, site.above[:1]:
        case (
            Call(function="coalesce", arguments=(_, Literal(value=fallback))) as node,
            (Binary(operator=sign, left=left, right=Literal(value=bound)),),
        ) if left is node and sign in _ORDERS:
            kinds = {type(fallback), type(bound)}
            return kinds <= {int, float} and not _ORDERS[sign](fallback, bound)
    return False


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def changes_nothing(node: Call, known: Vocabulary) -> bool:
    """A conversion of what has the type already: the day of a date, a whole number rounded."""
    if node.function == "date":
        return known.kind(node.arguments[0]) == "date"
    return node.function == "round" and is_rounded_idly(node, known)


def _is_in_its_text(site: Site, known: Vocabulary) -> bool:
    """A day that is taken of a date-time for the second time: `days_between` takes it itself, and
    the text of a date-time begins with it, so that `date(x) < d` is `x < d`, and `date(x) >= d` is
    `x >= d`."""
    side, above = site.node, site.above
    while above and _hands_day_on(above[0], side):
        side, above = above[0], above[1:]
    if not above:
        return False
    if isinstance(above[0], Call) and above[0].function == "days_between":
        return True
    if not isinstance(test := above[0], Binary):
        return False
    left, right = test.left is side, test.right is side
    day = known.kind(test.right if left else test.left) == "date"
    return day and (
        (left and test.operator in ("<", ">=")) or (right and test.operator in (">", "<="))
    )


def _hands_day_on(node: Node, part: Node) -> bool:
    """Whether it gives the part, whole days later or as one of its cases."""
    match node:
        case Call(function="add_days", arguments=(first, *_)):
            return first is part
        case Call(function="coalesce"):
            return True
        case Call(function="if", arguments=(condition, *_)):
            return condition is not part
    return False


def _is_shown_as_day(site: Site) -> bool:
    """A day that is written without its time anyway."""
    match site.above[:1]:
        case (Call(function="format", arguments=(_, Literal(value=str(form)))),):
            return "%H" not in form and "%M" not in form
    return False


def _is_said_by(part: Node, site: Site) -> bool:
    """Whether `part` is a test against null of what another term of the same `and` compares: no
    comparison with null holds, so that leaving the test out changes nothing (proved)."""
    tested, top = _tested_for_null(part, "!="), site.node
    if tested is None or not (isinstance(top, Binary) and top.operator == "and"):
        return False
    for above in site.above:
        if not (isinstance(above, Binary) and above.operator == "and"):
            break
        top = above
    return any(_fails_on_null(term, tested) for term in terms(top) if term is not part)


def _is_said_again(part: Node, rest: Node, node: Node, known: Vocabulary) -> bool:
    """`x == null or x != y` with a y that is never null: null differs from it anyway (proved)."""
    tested = _tested_for_null(part, "==")
    if not (isinstance(node, Binary) and node.operator == "or") or tested is None:
        return False
    match rest:
        case Binary(operator="!=", left=left, right=right) if tested in (left, right):
            return known.is_there(right if left == tested else left)
    return False


def _tested_for_null(node: Node, sign: str) -> Node | None:
    """What the comparison by `sign` tests against null."""
    if isinstance(node, Binary) and node.operator == sign and NULL in (node.left, node.right):
        return node.right if node.left == NULL else node.left
    return None


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
