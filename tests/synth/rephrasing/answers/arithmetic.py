"""Arithmetic: each answer found again."""

from fractions import Fraction

from tests.synth.rephrasing.recounting import only, solve

ARITHMETIC = {
    "arithmetic-en-01": lambda: sum([14] * 23) + sum([36] * 17),
    "arithmetic-en-02": lambda: Fraction(4, 10) + Fraction(27, 1000) / (1 - Fraction(1, 100)),
    "arithmetic-en-03": lambda: next(
        p
        for p in range(1, 1000)
        if Fraction(p) * Fraction(80, 100) * Fraction(85, 100) == Fraction(8160, 100)
    ),
    "arithmetic-en-04": lambda: Fraction(5, 12) + Fraction(7, 18) - Fraction(11, 36),
    "arithmetic-en-05": lambda: 1 / (Fraction(1, 6) + Fraction(1, 8) + Fraction(1, 12)),
    "arithmetic-en-06": lambda: Fraction(18 * 25000**2, 100_000**2),
    "arithmetic-en-07": lambda: Fraction(90 + 120) / (Fraction(90, 60) + Fraction(120, 80)),
    "arithmetic-en-08": lambda: solve(
        lambda w: Fraction(15, 100) * 12 - Fraction(9, 100) * (12 + w), range(100)
    ),
    "arithmetic-en-09": lambda: (15 * 60 + 17) - (9 * 60 + 42),
    "arithmetic-en-10": lambda: (
        max(Fraction(5, 7), Fraction(3, 4), Fraction(7, 10))
        - min(Fraction(5, 7), Fraction(3, 4), Fraction(7, 10))
    ),
    "arithmetic-de-01": lambda: Fraction(345 * 60, (13 * 60 + 12) - (8 * 60 + 47) - 35),
    "arithmetic-de-02": lambda: Fraction(2400) * Fraction(105, 100) ** 2 - 2400,
    "arithmetic-es-01": lambda: max(Fraction(840 * k, 14) for k in (3, 5, 6)),
    "arithmetic-es-02": lambda: Fraction(2) ** -3 + Fraction(4) ** -1 + 1,
    "arithmetic-fr-01": lambda: 1 / (Fraction(1, 12) - Fraction(1, 20)),
    "arithmetic-fr-02": lambda: 100 * (1 - Fraction(96, 100) * Fraction(95, 100)),
    "arithmetic-it-01": lambda: Fraction(40) * Fraction(160, 100) * Fraction(75, 100) - 40,
    "arithmetic-ja-01": lambda: only(
        Fraction(k, 11) for k in range(1, 300) if 6 * Fraction(k, 11) == 90 + Fraction(k, 22)
    ),
    "arithmetic-ja-02": lambda: 100 * (Fraction(5, 100) * 200 + Fraction(11, 100) * 100) / 300,
    "arithmetic-pl-01": lambda: solve(
        lambda d: d - Fraction(2, 5) * d - Fraction(3, 4) * Fraction(3, 5) * d - 9, range(1, 1000)
    ),
    "arithmetic-pt-01": lambda: Fraction(450 * 10, 6) + Fraction(270 * 10, 6),
    "arithmetic-ru-01": lambda: solve(lambda d: 8 * 15 - 8 * 5 - 10 * (d - 5), range(5, 100)),
    "arithmetic-ru-02": lambda: (Fraction(7, 8) - Fraction(5, 12)) / Fraction(11, 16),
    "arithmetic-zh-01": lambda: Fraction(360, 70 + 50) * 70 - Fraction(360, 70 + 50) * 50,
    "arithmetic-zh-02": lambda: solve(
        lambda m: (m - Fraction(3, 10) * m) * Fraction(5, 7) - 60, range(1, 1000)
    ),
}
