"""Ways to find an answer again without the reasoning of its solution: search, sums, differences."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Matrix = Sequence[Sequence[Any]]
Curve = Callable[[float], float]


def only(found: Iterable[Any]) -> Any:
    """The one member; ValueError where there are none or several."""
    (single,) = found
    return single


def solve(equation: Callable[[int], Any], among: Iterable[int]) -> int:
    """The only one of the numbers at which the left side minus the right side is zero."""
    return only(x for x in among if equation(x) == 0)


def span(holds: Callable[[Fraction], bool]) -> tuple[Fraction, Fraction]:
    """First and last tenth in [-50, 50] at which a condition holds; in between it must hold too."""
    points = [x for k in range(-500, 501) if holds(x := Fraction(k, 10))]
    assert len(points) == (points[-1] - points[0]) * 10 + 1
    return points[0], points[-1]


def chance(holds: Callable[..., bool], *draws: Sequence[Any]) -> Fraction:
    """The share of equally likely combinations for which a condition holds."""
    results = [bool(holds(*combination)) for combination in product(*draws)]
    return Fraction(sum(results), len(results))


def near(curve: Curve, x: float, h: float = 1e-3) -> float:
    """The limit at a point, from both sides, extrapolated."""
    wide, narrow = ((curve(x + d) + curve(x - d)) / 2 for d in (h, h / 2))
    return (4 * narrow - wide) / 3


def slope(curve: Curve, h: float = 1e-3) -> Curve:
    """The derivative by extrapolated differences."""

    def difference(x: float, d: float) -> float:
        return (curve(x + d) - curve(x - d)) / (2 * d)

    return lambda x: (4 * difference(x, h / 2) - difference(x, h)) / 3


def area(curve: Curve, low: float, high: float, panels: int = 4000) -> float:
    """The integral by Simpson's rule."""
    step = (high - low) / panels
    inner = sum((4 if k % 2 else 2) * curve(low + k * step) for k in range(1, panels))
    return step / 3 * (curve(low) + inner + curve(high))


def runge(rate: Curve, start: float, x: float, steps: int = 500) -> float:
    """y(x) for y' = rate(y), y(0) = start, by the classical method of Runge and Kutta."""
    y, h = start, x / steps
    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + h * k1 / 2)
        k3 = rate(y + h * k2 / 2)
        k4 = rate(y + h * k3)
        y += h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return y


def iterate(step: Callable[[Any], Any], start: Any, times: int) -> Any:
    for _ in range(times):
        start = step(start)
    return start


def det(m: Matrix) -> Any:
    """By expansion along the first row."""
    if len(m) == 1:
        return m[0][0]
    minors = ([[*row[:k], *row[k + 1 :]] for row in m[1:]] for k in range(len(m)))
    return sum((-1) ** k * m[0][k] * det(minor) for k, minor in enumerate(minors))


def rank(m: Matrix) -> int:
    """By elimination over the fractions."""
    rows, found = [[Fraction(cell) for cell in row] for row in m], 0
    for column in range(len(rows[0])):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column] / rows[found][column]
            pairs = zip(rows[r], rows[found], strict=True)
            rows[r] = [mine - factor * its for mine, its in pairs]
        found += 1
    return found


def times(a: Matrix, b: Matrix) -> tuple[tuple[Any, ...], ...]:
    """The product of two matrices."""
    columns = list(zip(*b, strict=True))
    return tuple(
        tuple(sum(x * y for x, y in zip(row, column, strict=True)) for column in columns)
        for row in a
    )


def shoelace(*corners: tuple[int, int]) -> Fraction:
    """The area of a polygon."""
    turned = [*corners[1:], corners[0]]
    return abs(
        Fraction(sum(x * v - u * y for (x, y), (u, v) in zip(corners, turned, strict=True)), 2)
    )


def angle(a: float, b: float, c: float) -> float:
    """Degrees of the angle opposite the side c."""
    return math.degrees(math.acos((a * a + b * b - c * c) / (2 * a * b)))


def prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def bisect(curve: Curve, low: float, high: float) -> float:
    """The zero between two points at which the curve has different signs."""
    for _ in range(200):
        middle = (low + high) / 2
        if (curve(low) > 0) == (curve(middle) > 0):
            low = middle
        else:
            high = middle
    return low
