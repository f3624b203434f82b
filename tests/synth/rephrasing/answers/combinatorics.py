"""Combinatorics: each answer found again."""

from itertools import combinations, combinations_with_replacement, permutations, product

COMBINATORICS = {
    "combinatorics-en-01": lambda: sum(
        1 for q in combinations(range(13), 4) if sum(p < 7 for p in q) == 2
    ),
    "combinatorics-en-02": lambda: sum(1 for w in product("13579", repeat=5) if "7" in w),
    "combinatorics-en-03": lambda: sum("NN" not in "".join(w) for w in set(permutations("BANANA"))),
    "combinatorics-en-04": lambda: sum(
        1
        for n in range(11)
        for w in product((1, 2), repeat=n)
        if sum(w) == 10 and 6 in [sum(w[:i]) for i in range(n)]
    ),
    "combinatorics-en-05": lambda: sum(1 for a in range(5) for b in range(13) if 12 - a - b >= 0),
    "combinatorics-en-06": lambda: sum(
        1 for p in permutations(range(6)) if p[0] == 0 and p[3] == 1
    ),
    "combinatorics-en-07": lambda: sum((6 - w) * (5 - h) for w in range(1, 6) for h in range(1, 5)),
    "combinatorics-en-08": lambda: sum(
        "AAA" not in "".join(w) and "BBB" not in "".join(w) for w in product("AB", repeat=6)
    ),
    "combinatorics-en-09": lambda: sum(
        all((b - a) % 9 not in (1, 8) for a, b in combinations(t, 2))
        for t in combinations(range(9), 3)
    ),
    "combinatorics-de-01": lambda: sum(
        sorted(map(w.count, set(w))) == [1, 1, 2] for w in product(range(10), repeat=4)
    ),
    "combinatorics-es-01": lambda: sum(w[0] in "UIA" for w in permutations("MURCIA", 4)),
    "combinatorics-fr-01": lambda: sum(
        max(p.index(k) for k in range(3)) - min(p.index(k) for k in range(3)) == 2
        for p in permutations(range(7))
    ),
    "combinatorics-it-01": lambda: sum(1 for _ in combinations_with_replacement(range(8), 3)),
    "combinatorics-ja-01": lambda: sum(
        all(not (p[k] > 3 and p[k + 1] > 3) for k in range(6)) for p in permutations(range(7))
    ),
    "combinatorics-pl-01": lambda: sum(str(n)[0] < str(n)[1] < str(n)[2] for n in range(100, 1000)),
    "combinatorics-pt-01": lambda: sum(c < d for a, b, c, d in permutations(range(9), 4)),
    "combinatorics-ru-01": lambda: sum(len(set(w)) == 3 for w in product(range(3), repeat=5)),
    "combinatorics-zh-01": lambda: sum(
        p[0] != 0 and p[3] % 2 == 0 for p in permutations(range(5), 4)
    ),
}
