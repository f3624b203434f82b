"""Sequences: each answer found again."""

from fractions import Fraction
from itertools import count

from tests.synth.rephrasing.recounting import iterate, near, only, solve

SEQUENCES = {
    "sequences-en-01": lambda: (
        sum(1 + 5 * k for k in range(20)) if (1 + 5 * 2, 1 + 5 * 9) == (11, 46) else None
    ),
    "sequences-en-02": lambda: next(
        a
        for a in range(1, 200)
        for q in (Fraction(m, n) for m in range(1, 20) for n in range(1, 20))
        if a * q == 12 and a * q**3 == 27
    ),
    "sequences-en-03": lambda: iterate(lambda a: 3 * a - 2, 2, 5),
    "sequences-en-04": lambda: sum(Fraction(1, k * (k + 1)) for k in range(1, 51)),
    "sequences-en-05": lambda: sum(k if k % 2 else -k for k in range(1, 102)),
    "sequences-en-06": lambda: iterate(lambda p: (p[1], p[1] - p[0]), (1, 3), 99)[0],
    "sequences-en-07": lambda: 3 + 2 * sum(3 * 0.4**k for k in range(1, 200)),
    "sequences-en-08": lambda: near(lambda h: (3 - 5 * h + h * h) / (2 + 7 * h * h), 0),
    "sequences-en-09": lambda: only(
        a
        for a in range(-50, 51)
        for b in range(-50, 51)
        if iterate(lambda p: (p[1], sum(p)), (a, b), 3)[0] == 14
        and iterate(lambda p: (p[1], sum(p)), (a, b), 5)[0] == 37
    ),
    "sequences-de-01": lambda: next(2 * n - 1 for n in count(1) if sum(range(1, 2 * n, 2)) == 1369),
    "sequences-es-01": lambda: solve(
        lambda d: sum(5 + k * d for k in range(5)) - 65, range(-50, 51)
    ),
    "sequences-fr-01": lambda: iterate(lambda u: u / 2 + 3, 5.0, 200),
    "sequences-it-01": lambda: 4 + sum(2 * n + 1 for n in range(1, 15)),
    "sequences-ja-01": lambda: sum(sum(range(1, n + 1)) for n in range(1, 11)),
    "sequences-pl-01": lambda: next(n for n in count(1) if sum(7 + 4 * k for k in range(n)) == 297),
    "sequences-pt-01": lambda: solve(
        lambda a: sum(a * (-2) ** k for k in range(6)) + 63, range(-99, 100)
    ),
    "sequences-ru-01": lambda: only(
        8 * q * q
        for q in {Fraction(m, n) for n in range(1, 30) for m in range(1, n)}
        if 8 / (1 - q) == 12
    ),
    "sequences-zh-01": lambda: only(
        a + 9 * d
        for a in range(-50, 51)
        for d in range(1, 50)
        if 3 * a + 3 * d == 15 and a * (a + d) * (a + 2 * d) == 80
    ),
}
