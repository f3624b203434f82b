"""Number theory: each answer found again."""

from itertools import count
from math import factorial, gcd, isqrt

from tests.synth.rephrasing.recounting import only, prime

NUMBER_THEORY = {
    "number_theory-en-01": lambda: 7**2026 % 10,
    "number_theory-en-02": lambda: max(
        d for d in range(1, 1072) if 1617 % d == 0 and 1071 % d == 0
    ),
    "number_theory-en-03": lambda: sum(
        1 for d in range(1, 10801) if 10800 % d == 0 and isqrt(d) ** 2 == d
    ),
    "number_theory-en-04": lambda: next(n for n in count(1) if n % 7 == 3 and n % 11 == 5),
    "number_theory-en-05": lambda: max(
        p for p in range(2, 3**8) if (3**8 - 1) % p == 0 and prime(p)
    ),
    "number_theory-en-06": lambda: max(n for n in range(1, 5000) if (n * n + 40) % (n + 4) == 0),
    "number_theory-en-07": lambda: only(
        int(s)
        for s in map(str, range(1000))
        if set(s) <= set("0123456") and int(s, 7) == int("1011011", 2)
    ),
    "number_theory-en-08": lambda: sum(1 for n in range(1, 301) if n % 4 and n % 6),
    "number_theory-en-09": lambda: max(
        (x, y) for x in range(1, 63) for y in range(1, 63) if 5 * x + 7 * y == 62
    ),
    "number_theory-en-10": lambda: only(d for d in range(10) if int(f"31{d}4728") % 9 == 0),
    "number_theory-de-01": lambda: 2**100 % 11,
    "number_theory-es-01": lambda: max(
        n for n in range(100, 1000) if not (n % 8 or n % 9 or n % 10)
    ),
    "number_theory-fr-01": lambda: next(n for n in count(1) if isqrt(360 * n) ** 2 == 360 * n),
    "number_theory-it-01": lambda: sum(756 % d == 0 for d in range(1, 757)),
    "number_theory-ja-01": lambda: sum(
        n for n in range(1, 10000) if isqrt(n) ** 2 == n and isqrt(n + 12) ** 2 == n + 12
    ),
    "number_theory-pl-01": lambda: next(
        n for n in count(4) if n % 4 == n % 5 == n % 6 == 3 and n % 7 == 0
    ),
    "number_theory-pt-01": lambda: gcd(*[n**3 - n for n in range(2, 200)]),
    "number_theory-ru-01": lambda: len(str(factorial(60))) - len(str(factorial(60)).rstrip("0")),
    "number_theory-zh-01": lambda: pow(3, 50, 13),
}
