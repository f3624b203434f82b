"""What a formula of the problem set is worth: a small reader of LaTeX, for tests only.

Numbers are exact fractions as long as nothing forces floats. A formula with variables gives a value
once they are filled in; anything beyond the grammar is a ValueError.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

_TOKEN = re.compile(
    r"\s+|(?P<number>\d+(?:\.\d+)?)|(?P<command>\\[a-zA-Z]+)|(?P<letter>[a-zA-Z])|(?P<sign>.)"
)
_SPACING = re.compile(r"\\[,;! ]|\\(?:left|right|quad)\b|\\mathrm\{[^}]*\}(?:\^\{?\d\}?)?|\\[%$]")
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "\\sin": math.sin,
    "\\cos": math.cos,
    "\\tan": math.tan,
    "\\ln": math.log,
    "\\arctan": math.atan,
}
_OTHER_RELATION = re.compile(r"\\(?:neq|leq|geq|approx|equiv)|[<>]")
Number = Fraction | float


def value(text: str, **letters: Number) -> Any:
    """A number; a tuple for `(a, b)`, `[a, b]` and matrices; a frozenset for `\\{a, b\\}`.

    Semicolons separate, too, where commas are decimal.
    """
    if matrix := re.fullmatch(r"\\begin\{pmatrix\}(.*)\\end\{pmatrix\}", text.strip(), re.DOTALL):
        rows = matrix[1].split("\\\\")
        return tuple(tuple(value(cell, **letters) for cell in row.split("&")) for row in rows)
    text = _SPACING.sub(" ", text).replace("{,}", ".").strip()
    if text.startswith("\\{") and text.endswith("\\}"):
        return frozenset(value(part, **letters) for part in _parts(text[2:-2]))
    if text[0] in "([" and text[-1] in ")]" and len(parts := _parts(text[1:-1])) > 1:
        return tuple(value(part, **letters) for part in parts)
    return _Reader(text, letters).whole()


def sides(text: str) -> list[str]:
    """The formulas that a chain of equations says to be equal."""
    return [] if _OTHER_RELATION.search(text) else text.split("=")


def letters_of(text: str) -> set[str]:
    """The variables of a formula, `e` not counted."""
    bare = re.sub(r"\\[a-zA-Z]+", " ", _SPACING.sub(" ", text))
    return set(re.findall(r"[a-zA-Z]", bare)) - {"e"}


def _parts(text: str) -> list[str]:
    """Cut at commas or semicolons that stand in no bracket."""
    mark = ";" if ";" in text else ","
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1 and abs(exponent) < 5000:
        return base ** int(exponent)
    return float(base) ** float(exponent)


def root(number: Number, degree: int = 2) -> Number:
    if isinstance(number, Fraction) and number.denominator == 1:
        near = round(float(number) ** (1 / degree)) if number >= 0 else 0
        if near**degree == number:
            return Fraction(near)
    return float(number) ** (1 / degree)


class _Reader:
    def __init__(self, text: str, letters: Mapping[str, Number]) -> None:
        self.tokens = [m[0] for m in _TOKEN.finditer(text) if m[0].strip()]
        self.letters, self.at = letters, 0

    def whole(self) -> Number:
        found = self.total()
        if self.at < len(self.tokens):
            raise ValueError(f"unread: {self.tokens[self.at :]}")
        return found

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise ValueError(f"expected {wanted or 'more'}, got {token!r}")
        self.at += 1
        return token

    def total(self) -> Number:
        found = self.term()
        while self.peek() in ("+", "-"):
            found = found + self.term() if self.take() == "+" else found - self.term()
        return found

    def term(self) -> Number:
        if self.peek() in ("-", "+"):
            return -self.term() if self.take() == "-" else self.term()
        found = self.factor()
        while token := self.peek():
            if token in ("\\cdot", "\\times"):
                self.take()
                found = found * self.signed()
            elif token in ("/", "\\div", ":"):
                self.take()
                found = found / self.signed()
            elif token in ("(", "[") or token[0].isalnum() or token[0] == "\\":
                found = found * self.factor()
            else:
                break
        return found

    def signed(self) -> Number:
        return -self.signed() if self.peek() == "-" and self.take() else self.factor()

    def factor(self) -> Number:
        found = self.atom()
        while self.peek() in ("!", "^"):
            if self.take() == "!":
                found = Fraction(math.factorial(int(found)))
            else:
                found = power(found, self.argument())
        return found

    def argument(self) -> Number:
        if self.peek() == "{":
            return self.group("{", "}")
        if self.peek()[0].isdigit():  # 2^10 means a one and then a zero
            digits = self.take()
            if len(digits) > 1:
                self.at -= 1
                self.tokens[self.at] = digits[1:]
            return Fraction(digits[0])
        return self.atom()

    def group(self, left: str, right: str) -> Number:
        self.take(left)
        found = self.total()
        self.take(right)
        return found

    def atom(self) -> Number:
        token = self.peek()
        if token in ("(", "[", "{"):
            return self.group(token, {"(": ")", "[": "]", "{": "}"}[token])
        self.take()
        if token[0].isdigit():
            return Fraction(token)
        if token == "\\frac":
            return self.argument() / self.argument()
        if token == "\\binom":
            return Fraction(math.comb(int(self.argument()), int(self.argument())))
        if token == "\\sqrt":
            degree = int(self.group("[", "]")) if self.peek() == "[" else 2
            return root(self.argument(), degree)
        if token == "\\log":
            self.take("_")
            base = self.argument()
            return math.log(self.argument()) / math.log(base)
        if token in _FUNCTIONS:
            grade = self.argument() if self.peek() == "^" and self.take() else Fraction(1)
            return power(_FUNCTIONS[token](self.argument()), grade)
        if token in ("\\pi", "e"):
            return math.pi if token == "\\pi" else math.e
        if token in self.letters:
            return self.letters[token]
        raise ValueError(f"no value for {token!r}")
