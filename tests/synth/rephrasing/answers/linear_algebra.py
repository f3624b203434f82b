"""Linear algebra: each answer found again."""

from fractions import Fraction
from itertools import product
from math import cos, radians, sqrt

from tests.synth.rephrasing.recounting import angle, det, iterate, only, rank, solve, times

LINEAR_ALGEBRA = {
    "linear_algebra-en-01": lambda: det([[2, 1, 3], [0, 4, 1], [5, 2, 6]]),
    "linear_algebra-en-02": lambda: {
        t for t in range(-30, 31) if det([[5 - t, 2], [4, 3 - t]]) == 0
    },
    "linear_algebra-en-03": lambda: solve(
        lambda t: det([[1, 2, 3], [2, -1, 1], [4, 3, t]]), range(-50, 51)
    ),
    "linear_algebra-en-04": lambda: next(
        ((a, b), (c, d))
        for a, b, c, d in product(range(-6, 7), repeat=4)
        if (3 * a + b, 5 * a + 2 * b, 3 * c + d, 5 * c + 2 * d) == (1, 0, 0, 1)
    ),
    "linear_algebra-en-05": lambda: sqrt(
        min(
            (x / 10 - 3) ** 2 + ((2 * x + 2 * z) / 10 - 6 + 1) ** 2 + (z / 10 - 4) ** 2
            for x in range(-50, 90)
            for z in range(-50, 90)
        )
    ),
    "linear_algebra-en-06": lambda: next(
        t
        for t in product(range(-9, 10), repeat=3)
        if (sum(t), t[0] - t[1] + 2 * t[2], 2 * t[0] + t[1] - t[2]) == (6, 5, 1)
    ),
    "linear_algebra-en-07": lambda: rank([[1, 2, 1, 0], [2, 4, 3, 1], [3, 6, 4, 1]]),
    "linear_algebra-en-08": lambda: next(
        (3 * s, 4 * s)
        for s in (Fraction(k, 25) for k in range(-100, 101))
        if (6 - 3 * s) * 3 + (2 - 4 * s) * 4 == 0
    ),
    "linear_algebra-en-09": lambda: only(
        (1 + 2 * t, 4 * t, 2 - 2 * t)
        for t in (Fraction(k, 4) for k in range(-99, 100))
        if (1 + 2 * t) + 4 * t + (2 - 2 * t) == 9
    ),
    "linear_algebra-en-10": lambda: sqrt(det([[9, 4], [4, 5]])),
    "linear_algebra-de-01": lambda: next(
        (t, t, t)
        for t in (Fraction(p, q) for q in range(1, 20) for p in range(1, 40))
        if det([[t - 1, t, t], [-1, 2, 0], [-1, 0, 3]]) == 0
    ),
    "linear_algebra-es-01": lambda: tuple(
        tuple(x - 3 * y for x, y in zip(p, q, strict=True))
        for p, q in zip(times([[1, 2], [0, 3]], [[1, 2], [0, 3]]), [[1, 2], [0, 3]], strict=True)
    ),
    "linear_algebra-fr-01": lambda: only(
        m for m in range(-50, 51) if rank([[m, 2], [6, 4]]) < rank([[m, 2, 3], [6, 4, 5]])
    ),
    "linear_algebra-it-01": lambda: solve(
        lambda k: sum(a * b for a, b in zip((k, 2, -1), (3, k, 5), strict=True)), range(-50, 51)
    ),
    "linear_algebra-ja-01": lambda: cos(
        radians(angle(3, 5, sqrt((1 - 4) ** 2 + 2**2 + (2 - 3) ** 2)))
    ),
    "linear_algebra-pl-01": lambda: sum(
        times([[2, 3], [1, 4]], [[2, 3], [1, 4]])[k][k] for k in range(2)
    ),
    "linear_algebra-pt-01": lambda: only(
        sqrt(x * x + y * y)
        for x, y in [(3 * Fraction(35 - 10, 25), 4 * Fraction(35 - 10, 25))]
        if 3 * x + 4 * y == 25
    ),
    "linear_algebra-ru-01": lambda: {
        a for a in range(1, 100) if det([[a, 2, 1], [0, 3, a], [1, 1, 2]]) == 9
    },
    "linear_algebra-zh-01": lambda: sum(
        map(sum, iterate(lambda m: times(m, [[1, 1], [0, 1]]), [[1, 1], [0, 1]], 9))
    ),
}
