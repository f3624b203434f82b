"""Algebra: each answer found again."""

from fractions import Fraction
from math import log, sqrt

from tests.synth.rephrasing.recounting import bisect, iterate, only, solve, span

ALGEBRA = {
    "algebra-en-01": lambda: solve(lambda x: 3 * (2 * x - 5) - 4 * (x + 1) - 7, range(-50, 51)),
    "algebra-en-02": lambda: span(lambda x: x * x - 3 * x - 28 <= 0),
    "algebra-en-03": lambda: next(a * (17 - a) for a in range(18) if a * a + (17 - a) ** 2 == 157),
    "algebra-en-04": lambda: solve(
        lambda x: 1 if x < 4 else 2 * x + 7 - (x - 4) ** 2, range(-3, 200)
    ),
    "algebra-en-05": lambda: solve(lambda w: (w + 3) * (w + 8) - w * (w + 5) - 78, range(100)),
    "algebra-en-06": lambda: next(
        (x, y)
        for x in range(-30, 31)
        for y in range(-30, 31)
        if 4 * x + 3 * y == 11 and 6 * x - 5 * y == 45
    ),
    "algebra-en-07": lambda: {x for x in range(-40, 41) if x**4 - 13 * x**2 + 36 == 0},
    "algebra-en-08": lambda: next(
        x for x in range(7, 500) if abs(log(x, 2) + log(x - 6, 2) - 4) < 1e-12
    ),
    "algebra-en-09": lambda: next(
        10 - 5 for k in range(-50, 51) if 25 - 5 * (k + 2) + 4 * k - 7 == 0 and k + 2 == 10
    ),
    "algebra-en-10": lambda: lambda x: (x * x - 4) / (x * x + x - 6),
    "algebra-en-11": lambda: {x for x in range(-50, 51) if x**3 - 2 * x * x - 5 * x + 6 == 0},
    "algebra-en-12": lambda: {a for a in range(-60, 61) if a * a == 36},
    "algebra-en-13": lambda: (lambda z: (z.real, z.imag))((5 + 10j) / (2 - 1j)),
    "algebra-en-14": lambda: iterate(
        lambda s: (s[0][1:], s[0][0] + s[1] * -1), ((1, 0, 0, 0, 0, -3, 0, 0, 0, 4, 1), 0), 11
    )[1],
    "algebra-de-01": lambda: {
        Fraction(k, 2)
        for k in range(-99, 100)
        if 2 * Fraction(k, 2) ** 2 - 7 * Fraction(k, 2) - 15 == 0
    },
    "algebra-de-02": lambda: {
        x for x in range(-20, 21) if Fraction(4) ** x - 6 * Fraction(2) ** x + 8 == 0
    },
    "algebra-es-01": lambda: solve(lambda h: 4 * h + 6 - (3 * (h + 6) - 2), range(100)),
    "algebra-es-02": lambda: min(
        Fraction(k, 10)
        for k in range(-500, 501)
        if k != -20 and (Fraction(k, 10) - 1) / (Fraction(k, 10) + 2) >= 2
    ),
    "algebra-fr-01": lambda: {
        Fraction(k, 3)
        for k in range(-300, 301)
        if abs(2 * Fraction(k, 3) - 3) == Fraction(k, 3) + 6
    },
    "algebra-fr-02": lambda: {a for a in range(-100, 101) if a * (9 - a) == 14},
    "algebra-it-01": lambda: {
        bisect(lambda x: 6 * (x + 1) - 4 * (x - 1) - (x * x - 1), *ends)
        for ends in ((-10, 0), (2, 10))
    },
    "algebra-it-02": lambda: next(n + 4 for n in range(0, 200, 2) if n + (n + 2) + (n + 4) == 138),
    "algebra-ja-01": lambda: only(
        k for k in range(-99, 100) if min(x * x - 8 * x + k for x in range(-50, 51)) == -3
    ),
    "algebra-ja-02": lambda: sum(2 * (x - 1) < 5 * x + 7 <= 3 * x + 15 for x in range(-99, 100)),
    "algebra-pl-01": lambda: {x for x in range(-100, 101) if x * x - 2 * x - 24 == 0},
    "algebra-pl-02": lambda: solve(lambda x: (x + 1) ** 2 - (x - 2) * (x + 7), range(-99, 100)),
    "algebra-pt-01": lambda: solve(lambda x: Fraction(5) ** (2 * x - 1) - 125, range(-20, 21)),
    "algebra-pt-02": lambda: max(
        -2 * Fraction(k, 4) ** 2 + 12 * Fraction(k, 4) - 7 for k in range(-400, 401)
    ),
    "algebra-ru-01": lambda: only(
        x for x in range(-100, 101) if x != 2 and Fraction(2 * x + 3, x - 2) == 3
    ),
    "algebra-ru-02": lambda: sum(abs(x) for x in range(-100, 101) if x * x - 6 * abs(x) + 5 == 0),
    "algebra-zh-01": lambda: only(
        (x, 11 - x) for x in range(-100, 101) if x * (11 - x) == 24 and x > 11 - x
    ),
    "algebra-zh-02": lambda: (2 + sqrt(3)) ** 3 + (2 + sqrt(3)) ** -3,
}
