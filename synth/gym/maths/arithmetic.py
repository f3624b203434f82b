"""What an arithmetic expression is worth, exactly, and which numbers stand in it.

Nothing is ever evaluated as a program: an answer of a policy is untrusted text.
"""

import ast
from fractions import Fraction
from typing import NamedTuple

LONGEST_EXPRESSION = 300
"""Characters; a puzzle of six numbers needs about fifty."""


class Expression(NamedTuple):
    value: Fraction
    numbers: tuple[int, ...]
    """Every number that stands in it, in order."""


def expression(text: str) -> Expression | None:
    """An expression of whole numbers, `+ - * /` and parentheses. None for anything else, such as a
    power, a number with a sign of its own, or a quotient by zero."""
    text = (
        text.replace("\N{MULTIPLICATION SIGN}", "*")
        .replace("÷", "/")
        .replace("\N{MINUS SIGN}", "-")
    )
    if len(text) > LONGEST_EXPRESSION or not set(text) <= set("0123456789+-*/() "):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        numbers: list[int] = []
        return Expression(_value(tree, numbers), tuple(numbers))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, numbers: list[int]) -> Fraction:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            numbers.append(number)
            return Fraction(number)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _value(left, numbers), _value(right, numbers)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div():
                    return a / b
                case _:
                    pass
        case _:
            pass
    raise ValueError(f"{ast.dump(node)[:80]} is no sum, difference, product or quotient")
