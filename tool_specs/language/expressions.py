"""The expression grammar of tool semantics: text to syntax tree and back.

    or      := and ("or" and)*                     and   := not ("and" not)*
    not     := "not" not | compare                 sum   := product (("+" | "-") product)*
    compare := sum (OP sum)?                       product := unary (("*" | "/") unary)*
    unary   := "-" unary | access                  access := atom ("." NAME)*
    atom    := NUMBER | TEXT | "true" | "false" | "null" | NAME | NAME "(" list ")"
             | "[" list "]" | "[" or "for" NAME "in" or ("if" or)? "]"
             | "{" NAME ":" or ("," NAME ":" or)* "}" | "(" or ")"
    OP      := "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "contains" | "starts_with"
             | "ends_with"

Bounded in length and depth, so that text from a model cannot exhaust the parser. What a tree
means, and its types, is in `evaluation.py`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

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
from tool_specs.language.syntax.tokens import COMPARISONS, ExpressionError, Token, tokens

MAX_CHARS = 2000
"""Length of one expression: three times the longest that anybody wrote."""

MAX_TOKENS = 400
"""Words, numbers and signs of one expression: bounds the depth of its tree, hence of recursion."""

MAX_DEPTH = 24
"""Nesting of parentheses, calls, lists and unary signs."""

MAX_CHAIN = 8
"""Names after one another, each behind a dot: `ticket.showing.film.title` has three."""

MAX_NUMBER = 2**53 - 1
"""Largest magnitude of a number: beyond it JSON readers disagree."""

_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        if len(self.tokens) > MAX_TOKENS:
            raise ExpressionError(
                f"{len(self.tokens)} words and signs, at most {MAX_TOKENS} are allowed", 0
            )
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def take(self, *texts: str) -> Token | None:
        """The next token if it is one of these symbols or keywords, consumed."""
        token = self.token
        if token.kind in ("symbol", "keyword") and token.text in texts:
            self.index += 1
            return token
        return None

    def expect(self, text: str, after: str) -> None:
        if not self.take(text):
            raise ExpressionError(
                f"expected {text!r} after {after}, found {self.token.text!r}", self.token.position
            )

    def nested(self, rule: Any) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", self.token.position)
        result = rule()
        self.depth -= 1
        return result

    def disjunction(self) -> Node:
        return self.chain(self.conjunction, "or")

    def conjunction(self) -> Node:
        return self.chain(self.negation, "and")

    def chain(self, operand: Any, *operators: str) -> Node:
        left = operand()
        while token := self.take(*operators):
            left = Binary(token.text, left, operand(), position=token.position)
        return left

    def negation(self) -> Node:
        if token := self.take("not"):
            return Unary("not", self.nested(self.negation), position=token.position)
        left = self.sum()
        if token := self.take(*COMPARISONS):
            left = Binary(token.text, left, self.sum(), position=token.position)
            if second := self.take(*COMPARISONS):
                raise ExpressionError(
                    "comparisons do not chain; join them with and", second.position
                )
        return left

    def sum(self) -> Node:
        return self.chain(self.product, "+", "-")

    def product(self) -> Node:
        return self.chain(self.unary, "*", "/")

    def unary(self) -> Node:
        if token := self.take("-"):
            operand = self.nested(self.unary)
            if isinstance(operand, Literal) and type(operand.value) in (int, float):
                return Literal(-operand.value, position=token.position)  # type: ignore[operator]
            return Unary("-", operand, position=token.position)
        node, length = self.atom(), 0
        while dot := self.take("."):
            length += 1
            if length > MAX_CHAIN:
                raise ExpressionError(f"over {MAX_CHAIN} dots in a row", dot.position)
            if self.token.kind not in ("name", "keyword"):
                raise ExpressionError(
                    f"expected a field name after '.', found {self.token.text!r}",
                    self.token.position,
                )
            node = Access(node, self.token.text, position=dot.position)
            self.index += 1
        return node

    def atom(self) -> Node:
        token = self.token
        if token.kind == "number":
            self.index += 1
            return Literal(_number(token), position=token.position)
        if token.kind == "text":
            self.index += 1
            value = re.sub(r"\\(.)", r"\1", token.text[1:-1])
            return Literal(value, position=token.position)
        if token.kind == "keyword" and token.text in _CONSTANTS:
            self.index += 1
            return Literal(_CONSTANTS[token.text], position=token.position)
        if token.kind == "name":
            self.index += 1
            if self.take("("):
                arguments = self.nested(lambda: self.items(")"))
                return Call(token.text, arguments, position=token.position)
            return Name(token.text, position=token.position)
        if self.take("["):
            return self.nested(lambda: self.listed(token.position))
        if self.take("{"):
            named = self.nested(self.members)
            return Record(tuple(named), tuple(named.values()), position=token.position)
        if self.take("("):
            inner = self.nested(self.disjunction)
            self.expect(")", "the expression in parentheses")
            return inner
        raise ExpressionError(
            "expected a value (number, 'text', true, false, null, a name, a call, [..], {..} or"
            f" (..)), found {token.text!r}",
            token.position,
        )

    def listed(self, position: int) -> Node:
        """What follows a bracket: items, or one item for each element of a list."""
        if self.take("]"):
            return ListOf((), position=position)
        first = self.disjunction()
        if not self.word("for"):
            items = (first, *self.items("]")) if self.take(",") else (first,)
            if len(items) == 1:
                self.expect("]", "the last item")
            return ListOf(items, position=position)
        name = self.name("a name after 'for'")
        self.expect("in", f"for {name}")
        source = self.disjunction()
        condition = self.disjunction() if self.word("if") else None
        self.expect("]", "the list that the items are made of")
        return Each(first, name, source, condition, position=position)

    def members(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        while True:
            position = self.token.position
            name = self.member_name()
            if name in found:
                raise ExpressionError(f"{name!r} stands twice", position)
            self.expect(":", f"the name {name}")
            found[name] = self.disjunction()
            if not self.take(","):
                self.expect("}", "the last member")
                return found

    def member_name(self) -> str:
        """As it is, or in quotes, as JSON has it."""
        token = self.token
        name = token.text[1:-1] if token.kind == "text" else token.text
        if token.kind not in ("name", "keyword", "text") or not re.fullmatch(_NAME, name):
            words = f"expected the name of a member, found {token.text}"
            raise ExpressionError(words, token.position)
        self.index += 1
        return name

    def word(self, text: str) -> bool:
        """A word that means something here alone, and is a name everywhere else."""
        if self.token.kind == "name" and self.token.text == text:
            self.index += 1
            return True
        return False

    def name(self, what: str) -> str:
        token = self.token
        if token.kind != "name":
            raise ExpressionError(f"expected {what}, found {token.text!r}", token.position)
        self.index += 1
        return token.text

    def items(self, closing: str) -> tuple[Node, ...]:
        if self.take(closing):
            return ()
        items = [self.disjunction()]
        while self.take(","):
            items.append(self.disjunction())
        self.expect(closing, "the last item")
        return tuple(items)


def _number(token: Token) -> int | float:
    value = float(token.text) if "." in token.text else int(token.text)
    if value > MAX_NUMBER:
        raise ExpressionError(f"number {token.text} is over {MAX_NUMBER}", token.position)
    return value


@lru_cache(maxsize=8192)
def parse(text: str) -> Node:
    """The syntax tree. Raises ExpressionError, and nothing else, for any other text.

    Trees are immutable and kept: a proof compiles the same expressions for every mutant.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"{len(text)} characters, at most {MAX_CHARS} are allowed", MAX_CHARS)
    parser = _Parser(text)
    tree = parser.disjunction()
    if parser.token.kind != "end":
        raise ExpressionError(
            f"expected an operator or the end, found {parser.token.text!r}", parser.token.position
        )
    return tree


_STRENGTH = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, 4)}
_STRENGTH |= {"+": 5, "-": 5, "*": 6, "/": 6}
_ATOM = 9


def show(node: Node) -> str:
    """Text that parses back to an equal tree, with no parentheses but the needed ones."""
    return _show(node, 0)


def _show(node: Node, outer: int) -> str:
    match node:
        case Literal(value=value):
            return _show_literal(value)
        case Name(name=name):
            return name
        case Access(base=base, field=name):
            return f"{_show(base, _ATOM)}.{name}"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(_show(a, 0) for a in arguments)})"
        case ListOf(items=items):
            return f"[{', '.join(_show(i, 0) for i in items)}]"
        case Each(item=item, name=name, source=source, condition=condition):
            rest = "" if condition is None else f" if {_show(condition, 0)}"
            return f"[{_show(item, 0)} for {name} in {_show(source, 0)}{rest}]"
        case Record(names=names, values=values):
            members = zip(names, values, strict=True)
            return "{" + ", ".join(f"{name}: {_show(value, 0)}" for name, value in members) + "}"
        case Unary(operator="not", operand=operand):
            text, strength = f"not {_show(operand, 3)}", 3
        case Unary(operand=operand):
            text, strength = f"-{_show(operand, 7)}", 7
        case Binary(operator=operator, left=left, right=right):
            strength = _STRENGTH[operator]
            # comparisons do not chain; the others group to the left
            left_text = _show(left, strength + (operator in COMPARISONS))
            text = f"{left_text} {operator} {_show(right, strength + 1)}"
        case _:
            raise TypeError(f"no expression: {node!r}")
    return f"({text})" if strength < outer else text


def _show_literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return format(value, "f") if isinstance(value, float) and "e" in repr(value) else repr(value)


def names_in(node: Node) -> frozenset[str]:
    """Names that the expression reads: `args` and bindings, not fields, functions or its own."""
    own = {n.name for n in walk(node) if isinstance(n, Each)}
    return frozenset(n.name for n in walk(node) if isinstance(n, Name)) - own


def children_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Access(base=base):
            return (base,)
        case Call(arguments=items) | ListOf(items=items):
            return items
        case Each(item=item, source=source, condition=condition):
            return (source, item) if condition is None else (source, item, condition)
        case Record(values=values):
            return values
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return left, right
    return ()


def rebuilt(node: Node, children: Sequence[Node]) -> Node:
    """The node with other children in the order of `children_of`; itself if they are the same."""
    if all(new is old for new, old in zip(children, children_of(node), strict=True)):
        return node
    match node:
        case Access():
            return replace(node, base=children[0])
        case Call():
            return replace(node, arguments=tuple(children))
        case ListOf():
            return replace(node, items=tuple(children))
        case Each():
            source, item, *rest = children
            return replace(node, source=source, item=item, condition=rest[0] if rest else None)
        case Record():
            return replace(node, values=tuple(children))
        case Unary():
            return replace(node, operand=children[0])
        case Binary():
            return replace(node, left=children[0], right=children[1])
    raise TypeError(f"no expression with children: {node!r}")


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    for child in children_of(node):
        yield from walk(child)


def terms(node: Node) -> list[Node]:
    """The terms that a condition joins by `and`."""
    if isinstance(node, Binary) and node.operator == "and":
        return terms(node.left) + terms(node.right)
    return [node]


class Template(NamedTuple):
    """A message with `{expression}` parts: texts and trees in turn."""

    parts: tuple[str | Node, ...]


def parse_template(text: str) -> Template:
    """Read `Order {order.order_id} is {order.status}.`; a brace has no other meaning."""
    parts: list[str | Node] = []
    position = 0
    while (start := text.find("{", position)) >= 0:
        end = text.find("}", start)
        if end < 0:
            raise ExpressionError("'{' without '}'", start)
        if start > position:
            parts.append(text[position:start])
        parts.append(parse(text[start + 1 : end]))
        position = end + 1
    if position < len(text):
        parts.append(text[position:])
    return Template(tuple(parts))
