"""Probability: each answer found again."""

from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb

from tests.synth.rephrasing.recounting import area, chance, prime

PROBABILITY = {
    "probability-en-01": lambda: chance(lambda a, b: max(a, b) == 4, range(1, 7), range(1, 7)),
    "probability-en-02": lambda: Fraction(
        sum((a < 5) == (b < 5) for a, b in combinations(range(12), 2)), 66
    ),
    "probability-en-03": lambda: (
        Fraction(1, 100)
        * Fraction(95, 100)
        / (Fraction(1, 100) * Fraction(95, 100) + Fraction(99, 100) * Fraction(2, 100))
    ),
    "probability-en-04": lambda: sum(
        Fraction(2, 3) ** sum(w) * Fraction(1, 3) ** (4 - sum(w))
        for w in product((0, 1), repeat=4)
        if sum(w) == 2
    ),
    "probability-en-05": lambda: Fraction(
        sum(min(d) for d in combinations(range(1, 10), 3)), comb(9, 3)
    ),
    "probability-en-06": lambda: (
        Fraction(1, 6) * 1 + Fraction(5, 6) * Fraction(1, 6) * 2 + Fraction(25, 36) * 3
    ),
    "probability-en-07": lambda: chance(
        lambda a, i: ("RRRWW"[a] + "RWWWW")[i] == "R", range(5), range(6)
    ),
    "probability-en-08": lambda: area(lambda x: max(0.0, 0.5 - x), 0, 0.5),
    "probability-en-09": lambda: Fraction(
        sum(all(b != a + 1 for a, b in pairwise(p)) for p in permutations(range(5))), 120
    ),
    "probability-en-10": lambda: sum(
        p * (x - 2) ** 2 for x, p in ((1, Fraction(1, 2)), (2, Fraction(1, 3)), (5, Fraction(1, 6)))
    ),
    "probability-de-01": lambda: chance(lambda n: prime(n) or n % 5 == 0, range(1, 21)),
    "probability-es-01": lambda: chance(lambda *c: sum(c[:3]) == sum(c[3:]), *[(0, 1)] * 6),
    "probability-fr-01": lambda: chance(lambda a, b: a + b >= 6, range(1, 5), range(1, 5)),
    "probability-it-01": lambda: chance(lambda *p: 0 in p, range(10), range(10), range(10)),
    "probability-ja-01": lambda: chance(lambda a, b: a * b % 6 == 0, range(1, 7), range(1, 7)),
    "probability-pl-01": lambda: chance(lambda *d: len(set(d)) == 3, *[range(1, 7)] * 3),
    "probability-pt-01": lambda: Fraction(
        sum(a > 2 and b > 2 for a, b in combinations(range(10), 2)), comb(10, 2)
    ),
    "probability-ru-01": lambda: chance(
        lambda *s: sum(k < 4 for k in s) == 2, range(5), range(5), range(5)
    ),
    "probability-zh-01": lambda: Fraction(
        sum(a != b for a, b in combinations("RRYYYGGGGG", 2)), 45
    ),
}
