"""Trees of formulas in a normal form: what is written differently and means the same is one tree.

A tree is a nested tuple: ("num", Fraction), ("sym", name), ("+", terms...), ("*", factors...),
("^", base, exponent), ("/", a, b), ("sub", base, index), ("fn", name, arguments...),
("chain", first, op, second, ...) and others for sets, tuples and matrices. Sums, products and sets
are flat and sorted, a - b is a + (-1) b, roots are powers, and an integer fraction in lowest terms
is the number. Nothing is worked out beyond that: 6/8 is not 3/4, and 2 + 3 is not 5.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

Tree = tuple[Any, ...]

MAX_BITS = 2_048
"""Of a numerator or denominator that is worked out; beyond it nothing is said about a value."""

MAX_FACTORIAL = 60
MAX_POWER = 64


def num(value: int | Fraction) -> Tree:
    return ("num", Fraction(value))


def add(terms: Iterable[Tree]) -> Tree:
    flat = [part for term in terms for part in (term[1:] if term[0] == "+" else (term,))]
    return flat[0] if len(flat) == 1 else ("+", *sorted(flat, key=repr))


def negated(tree: Tree) -> Tree:
    if tree[0] == "num":
        return num(-tree[1])
    if tree[0] == "+":
        return add(negated(term) for term in tree[1:])
    return multiply([num(-1), tree])


def multiply(factors: Iterable[Tree]) -> Tree:
    """Signs are drawn together; other numbers stay as they are."""
    flat = [part for f in factors for part in (f[1:] if f[0] == "*" else (f,))]
    sign = 1
    kept: list[Tree] = []
    for factor in flat:
        if factor[0] == "num" and factor[1] < 0:
            sign, factor = -sign, num(-factor[1])
        if factor != num(1):
            kept.append(factor)
    kept.sort(key=repr)
    if sign < 0:
        first = next((i for i, factor in enumerate(kept) if factor[0] == "num"), None)
        if first is None:
            kept.insert(0, num(-1))
        else:
            kept[first] = num(-kept[first][1])
    if len(kept) < 2:
        return kept[0] if kept else num(sign)
    return ("*", *kept)


def divide(a: Tree, b: Tree) -> Tree:
    whole = all(t[0] == "num" and t[1].denominator == 1 for t in (a, b))
    if whole and b[1] and math.gcd(int(a[1]), int(b[1])) == 1:
        return num(a[1] / b[1])
    if b[0] == "num" and b[1] < 0:
        return divide(negated(a), num(-b[1]))
    if a[0] == "num" and a[1] < 0:
        return negated(divide(num(-a[1]), b))
    if a[0] == "*" and a[1][0] == "num" and a[1][1] == -1:
        return negated(divide(multiply(a[2:]), b))
    if b[0] == "num" and b[1] and a[0] != "num":  # x/2 is half of x
        return multiply([num(1 / b[1]), a])
    return ("/", a, b)


def power(base: Tree, exponent: Tree) -> Tree:
    return base if exponent == num(1) else ("^", base, exponent)


def root(tree: Tree, degree: Tree) -> Tree:
    return power(tree, divide(num(1), degree))


def subtrees(tree: Tree) -> Iterator[Tree]:
    """Every part of it, itself first."""
    stack = [tree]
    while stack:
        here = stack.pop()
        yield here
        stack += [part for part in here[1:] if isinstance(part, tuple)]


def sides(tree: Tree) -> list[Tree]:
    return list(tree[1::2]) if tree[0] == "chain" else [tree]


MAX_SIDES = 12
"""Of a chain whose sides are compared each with each; of a longer one only neighbours are."""


def pairs(tree: Tree) -> list[Tree]:
    """The relations of a chain, those that follow through equality too, each in one direction."""
    if tree[0] != "chain":
        return []
    terms, signs = tree[1::2], tree[2::2]
    found = []
    for i in range(len(signs)):
        last = len(signs) if len(terms) <= MAX_SIDES else i + 1
        sign: str | None = None
        for j in range(i, last):
            sign = signs[j] if sign in (None, "=") else sign if signs[j] in ("=", sign) else "?"
            if sign == "?":
                break
            found.append(directed(terms[i], sign or "=", terms[j + 1]))
    return found


_SYMMETRIC = frozenset(["=", "!=", "~", "equiv", "cong", "sim", "perp", "parallel", "iff"])


def directed(a: Tree, sign: str, b: Tree) -> Tree:
    """One form of a relation: a > b is b < a, and a = b is b = a."""
    if sign in (">", ">=", "supset"):
        return directed(b, {">": "<", ">=": "<=", "supset": "subset"}[sign], a)
    if sign in _SYMMETRIC and repr(b) < repr(a):
        a, b = b, a
    return ("chain", a, sign, b)


def value_of(tree: Tree) -> Fraction | None:
    """What a closed tree comes to, exactly; None where it holds a symbol, has no rational value or
    would grow beyond the bounds."""
    kind = tree[0]
    if kind == "num":
        return tree[1]
    if kind not in ("+", "*", "/", "^", "fn"):
        return None
    arguments = [value_of(part) for part in tree[1:] if isinstance(part, tuple)]
    if any(value is None for value in arguments):
        return None
    value = _applied(kind, tree, [v for v in arguments if v is not None])
    return value if value is not None and _bits(value) <= MAX_BITS else None


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _applied(kind: str, tree: Tree, values: list[Fraction]) -> Fraction | None:
    if kind == "+":
        return sum(values, Fraction(0))
    if kind == "*":
        product = Fraction(1)
        for value in values:
            product *= value
            if _bits(product) > MAX_BITS:
                return None
        return product
    if kind == "/":
        return values[0] / values[1] if values[1] else None
    if kind == "^":
        return _power(*values)
    name = tree[1]
    if name == "!" and values[0].denominator == 1 and 0 <= values[0] <= MAX_FACTORIAL:
        return Fraction(math.factorial(int(values[0])))
    if name == "%":
        return values[0] / 100
    if name == "abs" and len(values) == 1:
        return abs(values[0])
    if name == "binom" and all(v.denominator == 1 and 0 <= v <= 200 for v in values):
        return Fraction(math.comb(int(values[0]), int(values[1])))
    return None


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator == 1 and abs(exponent) <= MAX_POWER:
        return base ** int(exponent) if _bits(base) <= 64 and (base or exponent > 0) else None
    if exponent.denominator == 2 and abs(exponent.numerator) <= 3 and base >= 0:
        up, down = math.isqrt(base.numerator), math.isqrt(base.denominator)
        if up * up == base.numerator and down * down == base.denominator and up:
            return Fraction(up, down) ** exponent.numerator
    return None
