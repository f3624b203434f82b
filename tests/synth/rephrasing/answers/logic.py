"""Logic: each answer found again."""

from itertools import combinations, permutations, product
from math import factorial

from tests.synth.rephrasing.recounting import only

LOGIC = {
    "logic-en-01": lambda: only(
        3 - sum(t)
        for t in product((0, 1), repeat=3)
        if t[0] == (t[0] != t[1]) and t[1] == (not t[2]) and t[2] == (t[0] == t[1])
    ),
    "logic-en-02": lambda: sum(1 for p, q, r in product((0, 1), repeat=3) if p <= q and q <= r),
    "logic-en-03": lambda: next(b for b in range(20) if (24 - b) + (19 - b) + b + 7 == 40),
    "logic-en-04": lambda: only(
        p[2]
        for p in permutations((1, 2, 3, 4))
        if all(p[i] != i + 1 for i in range(4)) and p[0] % 2 == 0 and p[1] > 2 and p[3] == 3
    ),
    "logic-en-05": lambda: sum(1 for w in product((0, 1), repeat=8) if (w[0] or w[1]) and not w[7]),
    "logic-en-06": lambda: sum(k * factorial(k) for k in range(1, 7)),
    "logic-en-07": lambda: sum((n % 2 == 0 and n > 10) or n % 9 == 0 for n in range(1, 31)),
    "logic-en-08": lambda: sum(len(set(w)) == 3 for w in product("abc", repeat=4)),
    "logic-de-01": lambda: only(
        z for r, s, t, z in permutations((1, 2, 3, 4)) if r != 1 and t > r + 1 and s in (2, 3)
    ),
    "logic-es-01": lambda: sum((a, b) != (0, 1) for a, b in combinations(range(12), 2)),
    "logic-fr-01": lambda: only(
        d
        for d in range(31)
        for b in range(31)
        for c in range(31)
        if d + b == 11 and c + b == 9 and d + b + c == 18
    ),
    "logic-it-01": lambda: only(
        p.index(3) + 1
        for p in permutations((1, 2, 3))
        if [p[0] == 1, p[1] != 1, p[2] != 3].count(True) == 1
    ),
    "logic-ja-01": lambda: sum(n % 4 != 0 or n % 3 == 0 for n in range(1, 101)),
    "logic-pl-01": lambda: sum(
        (p or q) and (not p or r) and (not q or s)
        for p, q, r, s in product((False, True), repeat=4)
    ),
    "logic-pt-01": lambda: only(25 - 5 - b for b in range(13) if 14 + 12 - b == 25 - 5),
    "logic-ru-01": lambda: only(
        {
            p.index("T") + 1
            for p in permutations("TLR")
            if p[0] != "T"
            and p[2] != "T"
            and (p[0] != "L" or p[1] != "L")
            and (p[1] != "T" or p[2] == "R")
        }
    ),
    "logic-zh-01": lambda: only(k for k in (1, 2, 3) if [k == 1, k != 2, k != 1].count(True) == 1),
}
