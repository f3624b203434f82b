"""Which rows have grown from which seed row, and whom a new row refers to among them."""

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Any

from tool_specs.growth.baskets import Rows


class Kin:
    """Rows by the seed row that they were grown from, the seed row among them."""

    def __init__(self, seed: Rows, rows: Rows, rng: Random) -> None:
        """`rows` holds all that has grown so far, and grows on."""
        self._rows = rows
        self._by_value: dict[tuple[str, str], tuple[int, dict[Any, list[str]]]] = {}
        self._kin: dict[str, dict[str, list[str]]] = {
            name: {key: [key] for key in rows} for name, rows in seed.items()
        }
        self._all: dict[str, list[str]] = {name: list(rows) for name, rows in seed.items()}
        self._pattern: dict[str, dict[str, str]] = {n: {k: k for k in r} for n, r in seed.items()}
        self._days: dict[str, dict[str, int]] = {name: {} for name in seed}
        self._rng = rng

    def add(self, name: str, key: str, pattern: str, days: int) -> None:
        self._kin[name][pattern].append(key)
        self._all[name].append(key)
        self._pattern[name][key] = pattern
        self._days[name][key] = days

    def close(self, name: str) -> None:
        """The entity is complete: from here on, some of its rows are referred to more often than
        others, in an order that has nothing to do with their age."""
        for keys in self._kin[name].values():
            self._rng.shuffle(keys)
        self._rng.shuffle(self._all[name])

    def _with(self, name: str, field: str) -> dict[Any, list[str]]:
        """Keys by the value of a field, and by that with the seed row, those of new rows added."""
        size, found = self._by_value.get((name, field), (0, {}))
        rows = self._rows[name]
        if size < len(rows):
            for key, row in islice(rows.items(), size, None):
                found.setdefault(row[field], []).append(key)
                found.setdefault((row[field], self._pattern[name][key]), []).append(key)
            self._by_value[name, field] = len(rows), found
        return found

    def moved_by(self, name: str, key: str) -> int:
        return self._days[name].get(key, 0)

    def sibling(self, name: str, like: str) -> str:
        """A row grown from the same seed row, whichever."""
        return self.of(name, like, self._rng, anyone=False, evenly=False)

    def of(
        self,
        name: str,
        like: str,
        rng: Random,
        *,
        anyone: bool,
        evenly: bool,
        agreed: Sequence[tuple[str, Any]] = (),
    ) -> str:
        """A row grown from the same seed row as `like`, or anyone, which has the values agreed on
        wherever there is one. Unless `evenly`, the first tenth of the rows gets about half of the
        references, as customers do orders."""
        pattern = self._pattern[name].get(like)
        if pattern is None:
            return like
        keys = self._all[name] if anyone else self._kin[name][pattern]
        for field, value in agreed:
            by_value = self._with(name, field)
            keys = by_value.get((value, pattern)) or by_value.get(value) or keys
        draw = rng.random()
        return keys[int(len(keys) * (draw if evenly else draw**3.3))]
