"""Bugs to inject: small changes of Python source, each of a kind that people really make.

A mutation is a change of text found through the syntax tree, so that layout and comments stay and
its undo is an exact replacement. Whether anything notices it, tests decide (`sandboxes.code.swe`).

This module runs in bare sandboxes, too: it imports nothing of ours.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

MutationOperator = Literal[
    "boundary", "comparison", "arithmetic", "logic", "off_by_one", "constant",
    "swapped_arguments", "dropped_branch", "dropped_negation", "removed_call",
]  # fmt: skip
OPERATORS: tuple[MutationOperator, ...] = get_args(MutationOperator)

BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPARISON = {
    "==": "!=", "!=": "==", "<": ">", ">": "<", "<=": ">=", ">=": "<=",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "/", "%": "//", "**": "*"}
LOGIC = {"and": "or", "or": "and"}


@dataclass(frozen=True, slots=True)
class Mutation:
    operator: MutationOperator
    path: str
    line: int
    """Of the first changed line, from 1."""
    start: int
    """Offset of the change in the original text."""
    old: str
    new: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


class Replacement(NamedTuple):
    """An edit by exact text that undoes a mutation."""

    old: str
    new: str


def undo(original: str, mutation: Mutation) -> Replacement:
    """The changed lines, with as many lines around them as single them out in the mutated text."""
    mutated = mutation.apply(original)
    before = original[: mutation.start].count("\n")
    after = original[mutation.start + len(mutation.old) :].count("\n")
    was, now = original.split("\n"), mutated.split("\n")
    # whole lines, so that what is replaced is never empty and reads as code
    for around in range(len(now)):
        low, high = max(0, before - around), max(0, after - around)
        found = "\n".join(now[low : len(now) - high])
        if found.strip() and mutated.count(found) == 1:
            return Replacement(found, "\n".join(was[low : len(was) - high]))
    return Replacement(mutated, original)


def mutations_of(path: str, text: str) -> tuple[Mutation, ...]:
    """Every mutation of a file, in the order of the text. Empty where it is not Python. Strangers'
    texts are given to it in a sandbox only (`sandboxes.code.mutation_search`)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    finder = _Finder(path, text)
    finder.walk(tree)
    found = [m for m in finder.found if m.old != m.new and _parses(m.apply(text))]
    return tuple(sorted(set(found), key=lambda m: (m.start, m.operator, m.new)))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    def __init__(self, path: str, text: str) -> None:
        self.path, self.text, self.found = path, text, list[Mutation]()
        lines = text.split("\n")
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.lines = lines

    def walk(self, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            for kind, make in _MAKERS.items():
                if isinstance(node, kind):
                    make(self, node)
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and isinstance(node, ast.stmt):
                    self.block(block)

    def offset(self, line: int, column: int) -> int:
        """`ast` counts columns in bytes of UTF-8."""
        text = self.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self.starts[line - 1] + column

    def begin(self, node: Any) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)

    def add(self, operator: MutationOperator, start: int, end: int, new: str) -> None:
        line = self.text.count("\n", 0, start) + 1
        old = self.text[start:end]
        self.found.append(Mutation(operator, self.path, line, start, old, new))

    def symbol(
        self, operator: MutationOperator, left: ast.AST, right: ast.AST, table: dict[str, str]
    ) -> None:
        """Replace the operator that stands alone between two operands."""
        start, end = self.end(left), self.begin(right)
        gap = self.text[start:end]
        core = gap.strip(" ()\n\\\t")
        new = table.get(re.sub(r"\s+", " ", core))
        if new is not None:
            at = start + gap.index(core)
            self.add(operator, at, at + len(core), new)

    def compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right in pairwise(operands):
            self.symbol("boundary", left, right, BOUNDARY)
            self.symbol("comparison", left, right, COMPARISON)

    def binary(self, node: ast.BinOp) -> None:
        texts = [o for o in (node.left, node.right) if _is_text(o)]
        if not texts:  # "%d items" % n and "a" + b would not run at all
            self.symbol("arithmetic", node.left, node.right, ARITHMETIC)

    def boolean(self, node: ast.BoolOp) -> None:
        for left, right in pairwise(node.values):
            self.symbol("logic", left, right, LOGIC)

    def unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add("dropped_negation", self.begin(node), self.begin(node.operand), "")

    def constant(self, node: ast.Constant) -> None:
        start, end, value = self.begin(node), self.end(node), node.value
        if isinstance(value, bool):
            self.add("constant", start, end, str(not value))
        elif isinstance(value, int) and self.text[start:end].isdigit():
            self.add("off_by_one", start, end, str(value + 1))
            if value:
                self.add("off_by_one", start, end, str(value - 1))
            if value > 2:
                self.add("constant", start, end, str(value * 10))

    def call(self, node: ast.Call) -> None:
        first, second, *_ = [*node.args, None, None]
        plain = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript)
        if isinstance(first, plain) and isinstance(second, plain):
            a = self.text[self.begin(first) : self.end(first)]
            b = self.text[self.begin(second) : self.end(second)]
            gap = self.text[self.end(first) : self.begin(second)]
            self.add("swapped_arguments", self.begin(first), self.end(second), f"{b}{gap}{a}")

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements that can go because others stay."""
        for statement in body if len(body) > 1 else ():
            start = self.starts[statement.lineno - 1]
            alone = self.text[start : self.begin(statement)].isspace()
            end = self.starts[statement.end_lineno or statement.lineno]
            if not alone:
                continue
            if isinstance(statement, ast.If) and not statement.orelse:
                self.add("dropped_branch", start, end, "")
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self.add("removed_call", start, end, "")


_MAKERS: dict[type[ast.AST], Callable[[_Finder, Any], None]] = {
    ast.Compare: _Finder.compare,
    ast.BinOp: _Finder.binary,
    ast.BoolOp: _Finder.boolean,
    ast.UnaryOp: _Finder.unary,
    ast.Constant: _Finder.constant,
    ast.Call: _Finder.call,
}


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def in_rounds(found: Sequence[Mutation], order: Callable[[list[Any]], None]) -> Iterator[Mutation]:
    """One of each operator in turn, `order` shuffling both, so that common kinds do not crowd
    out rare ones."""
    groups = {name: [m for m in found if m.operator == name] for name in OPERATORS}
    names = [name for name in OPERATORS if groups[name]]
    for group in groups.values():
        order(group)
    order(names)
    while names:
        for name in list(names):
            yield groups[name].pop()
            if not groups[name]:
                names.remove(name)
