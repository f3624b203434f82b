"""Calculus: each answer found again."""

from fractions import Fraction
from math import cos, e, exp, log, pi, sin, sqrt

from tests.synth.rephrasing.recounting import area, near, runge, slope

CALCULUS = {
    "calculus-en-01": lambda: slope(lambda x: x * x * exp(3 * x)),
    "calculus-en-02": lambda: area(lambda x: 3 * x * x - 4 * x + 5, 0, 2),
    "calculus-en-03": lambda: max(x * (120 - 2 * x) for x in range(61)),
    "calculus-en-04": lambda: near(lambda x: (x * x - 9) / (x * x - 5 * x + 6), 3),
    "calculus-en-05": lambda: near(lambda x: (1 - cos(4 * x)) / x**2, 0),
    "calculus-en-06": lambda: area(lambda x: max(0, 2 * x + 3 - x * x), -1, 3),
    "calculus-en-07": lambda: area(lambda x: x * log(x), 1, e),
    "calculus-en-08": lambda: min(x / 100 + 1600 / x for x in range(1, 5000)),
    "calculus-en-09": lambda: slope(lambda x: (-x + sqrt(28 - 3 * x * x)) / 2)(1),
    "calculus-en-10": lambda: sum(n / 3**n for n in range(1, 80)),
    "calculus-en-11": lambda: -slope(lambda t: 200 - 24 * t + t * t / 2)(8),
    "calculus-en-12": lambda: lambda x: runge(lambda y: 2 * y, 5.0, x),
    "calculus-en-13": lambda: 1 / near(lambda h: 2 / (1 + h), 0),
    "calculus-en-14": lambda: area(lambda x: x * exp(-2 * x), 0, 40, 40_000),
    "calculus-de-01": lambda: next(
        (x, x**3 - 6 * x * x + 5 * x + 4)
        for x in range(-20, 21)
        if abs(slope(slope(lambda t: t**3 - 6 * t * t + 5 * t + 4))(x)) < 1e-4
    ),
    "calculus-es-01": lambda: max(k / 100 * exp(-k / 200) for k in range(1000)),
    "calculus-fr-01": lambda: area(lambda x: x * exp(x), 0, 1),
    "calculus-fr-02": lambda: lambda x: slope(lambda t: log(2 * t - 1))(1) * (x - 1),
    "calculus-it-01": lambda: exp(2 * near(lambda h: log(1 + 3 * h) / h, 0)),
    "calculus-it-02": lambda: area(lambda x: sin(x) ** 2, 0, pi),
    "calculus-ja-01": lambda: max(
        Fraction(k, 10) ** 3 - 12 * Fraction(k, 10) + 1 for k in range(-30, 20)
    ),
    "calculus-ja-02": lambda: area(lambda t: 2 * t * t, 0, 3),
    "calculus-pl-01": lambda: near(lambda x: (sqrt(x + 4) - 2) / x, 0),
    "calculus-pl-02": lambda: max(
        Fraction(k, 100) ** 3 - 3 * Fraction(k, 100) for k in range(-200, 301)
    ),
    "calculus-pt-01": lambda: slope(lambda x: x / (x * x + 1)),
    "calculus-pt-02": lambda: area(lambda x: x**-0.5, 1, 4),
    "calculus-ru-01": lambda: slope(lambda x: sin(3 * x) ** 2),
    "calculus-ru-02": lambda: area(lambda t: 6 * t - t * t, 0, 6),
    "calculus-zh-01": lambda: lambda x: slope(lambda t: t**3 - 4 * t)(2) * (x - 2),
    "calculus-zh-02": lambda: area(lambda x: 2 * x / (x * x + 1), 0, 1),
}
