"""Geometry: each answer found again."""

from fractions import Fraction
from math import isqrt, pi, radians, sin, sqrt

from tests.synth.rephrasing.recounting import angle, area, det, only, shoelace, solve

GEOMETRY = {
    "geometry-en-01": lambda: Fraction(20 + 21 - isqrt(20**2 + 21**2), 2),
    "geometry-en-02": lambda: 2 * Fraction(8 * 15, isqrt(8**2 + 15**2)),
    "geometry-en-03": lambda: (
        area(lambda t: 2 * pi * t * sqrt(1 + (12 / 5) ** 2), 0, 5)
        + area(lambda t: 2 * pi * t, 0, 5)
    ),
    "geometry-en-04": lambda: shoelace((1, 2), (7, 4), (3, 10)),
    "geometry-en-05": lambda: 2 * sqrt(9 * 4),
    "geometry-en-06": lambda: solve(lambda d: d * d + 36 - 100, range(11)),
    "geometry-en-07": lambda: Fraction(540 * 7, sum((4, 5, 5, 6, 7))),
    "geometry-en-08": lambda: 216 - abs(Fraction(det([[3, 0, 0], [0, 3, 0], [0, 0, 3]]), 6)),
    "geometry-en-09": lambda: sqrt(6.5**2 - 2.5**2) - sqrt(6.5**2 - 3.3**2),
    "geometry-en-10": lambda: only(
        Fraction(k, 3)
        for k in range(-90, 91)
        if (Fraction(k, 3) - 2) * 1 + (0 - 7) * Fraction(1, 3) == 0
    ),
    "geometry-en-11": lambda: angle(7, 8, 13),
    "geometry-en-12": lambda: {
        y for y in range(-99, 100) if (0 - 2) * (0 - 8) + (y - 1) * (y - 9) == 0
    },
    "geometry-en-13": lambda: only(n for n in range(3, 1000) if Fraction(180 * (n - 2), n) == 156),
    "geometry-de-01": lambda: next(2 * pi * r * 6 for r in range(1, 100) if r * r * 6 == 96),
    "geometry-de-02": lambda: shoelace(
        (0, 0), (22, 0), (16, isqrt(10**2 - 6**2)), (6, isqrt(10**2 - 6**2))
    ),
    "geometry-es-01": lambda: shoelace((5, 0), (0, 5), (-5, 0), (0, -5)),
    "geometry-es-02": lambda: 14 * Fraction(12, 21),
    "geometry-fr-01": lambda: sum(0.5 * 16 * sin(pi / 3) for _ in range(6)),
    "geometry-fr-02": lambda: isqrt(18 * (18 - 10) * (18 - 13) * (18 - 13)),
    "geometry-it-01": lambda: 15 * (6 + 8 + isqrt(36 + 64)) + 2 * shoelace((0, 0), (6, 0), (0, 8)),
    "geometry-it-02": lambda: area(lambda t: 0.5 * 81, 0, radians(80)),
    "geometry-ja-01": lambda: isqrt(21 * (21 - 13) * (21 - 14) * (21 - 15)),
    "geometry-ja-02": lambda: area(lambda z: pi * (6 * z / 8) ** 2, 0, 8),
    "geometry-pl-01": lambda: next(2 * (7 + b) for b in range(1, 100) if 7 * 7 + b * b == 625),
    "geometry-pl-02": lambda: 100 + 4 * Fraction(10 * isqrt(12**2 + 5**2), 2),
    "geometry-pt-01": lambda: 7 * 10 * sin(radians(30)),
    "geometry-pt-02": lambda: area(lambda z: pi * (9 - z * z), -3, 3),
    "geometry-ru-01": lambda: shoelace(
        (0, 0), (13, 0), (4, only(h for h in range(1, 50) if (16 + h * h) + (81 + h * h) == 169))
    ),
    "geometry-ru-02": lambda: only(
        2 * 3 * k * 4 * k for k in range(1, 100) if (3 * k) ** 2 + (4 * k) ** 2 == 625
    ),
    "geometry-zh-01": lambda: Fraction(360 - 2 * 110, 2),
    "geometry-zh-02": lambda: sqrt(sum(k * k for k in (3, 4, 12))),
}
