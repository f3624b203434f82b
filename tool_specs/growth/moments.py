"""Dates of grown rows: those of a seed row moved together, so that durations and orders stay, and
none passes the domain's now: what is over stays over, and what is to come is still to come.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import inf
from random import Random
from typing import NamedTuple

from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import EntitySpec

FAR_DAYS = 400
"""From which distance to now a date moves on its own: a birthday, the maturity of a bond."""

PAST_DAYS, COMING_DAYS = 45, 7
"""Mean distance of what is over, and of what is to come, at least. What is still under way lies as
near as in the seed."""

_SATURDAY = 5
_FEWEST = 4
"""Values of the seed before a habit, such as no weekends, is believed."""


class Leeway(NamedTuple):
    """By how many days the near dates of a row may move, so that none passes now."""

    low: float
    high: float
    mean: float
    """Days that the near dates lie away from now, on average."""


class MomentMover:
    """Moves the dates of rows of one entity."""

    def __init__(self, entity: EntitySpec, rows: Sequence[EntityRow], now: str) -> None:
        self.fields = [n for n, f in entity.fields.items() if f.type in ("date", "datetime")]
        self._now = datetime.fromisoformat(now)
        moves = entity.lifecycle.moves if entity.lifecycle is not None else ()
        self._stamps = {move.stamp for move in moves}
        self._status = entity.lifecycle_field
        self._under_way = {status for move in moves for status in move.from_}
        values = {f: [r[f] for r in rows if r[f] is not None] for f in self.fields}
        self._workdays = {
            f for f, held in values.items() if len(held) >= _FEWEST and all(map(_is_workday, held))
        }
        times = {f: [v[11:16] for v in held if len(v) > 10] for f, held in values.items()}
        self._hours = {f: (min(t), max(t)) for f, t in times.items() if t}
        minutes = [int(t[3:5]) for held in times.values() for t in held]
        self._grain = next((g for g in (60, 30, 15, 10, 5) if not any(m % g for m in minutes)), 1)

    def reach(self, row: EntityRow) -> Leeway:
        low, high, gaps = -inf, inf, []
        for field in self.fields:
            gap = self._gap(row[field])
            if gap is None or abs(gap) > FAR_DAYS:
                continue
            gaps.append(abs(gap))
            room = abs(gap) - (1 if len(row[field]) > 10 and gap else 0)
            if self._is_past(field, row[field]):
                high = min(high, room)
            else:
                low = max(low, -room)
        return Leeway(low, high, sum(gaps) / len(gaps) if gaps else 0.0)

    def is_over(self, row: EntityRow) -> bool:
        """Whether nothing more happens to the row, as far as its status says it."""
        return self._status is None or row[self._status] not in self._under_way

    def days(self, row: EntityRow, rng: Random, reach: Leeway) -> int:
        """A move of the near dates: most rows lie near now, fewer the further away."""
        low, high, mean = reach
        if low == -inf and high == inf:
            return 0
        if low == -inf:
            least = PAST_DAYS if self.is_over(row) else 0.5
            days = int(high) - int(rng.expovariate(1 / max(least, mean)))
        elif high == inf:
            days = int(low) + int(rng.expovariate(1 / max(COMING_DAYS, mean)))
        else:
            days = rng.randint(int(min(low, high)), int(max(low, high)))
        for change in (0, -1, 1, -2, 2):
            if low <= days + change <= high and self._on_workdays(row, days + change):
                return days + change
        return days

    def moved(
        self, row: EntityRow, days: int, rng: Random, *, far: bool, minutes: bool
    ) -> dict[str, str]:
        """The dates of the row after the move. `far`: those far away move on their own; `minutes`:
        so does the time of day, all of them alike."""
        offset = self._grain * rng.randint(-120 // self._grain, 120 // self._grain)
        result: dict[str, str] = {}
        for field in self.fields:
            value = row[field]
            gap = self._gap(value)
            if gap is None:
                continue
            by = days
            if abs(gap) > FAR_DAYS and far:
                by = self._far(gap, rng)
            elif abs(gap) > FAR_DAYS:
                by = 0
            result[field] = moved_by(value, by)
        if minutes and offset:
            late = {f: _later(v, offset) for f, v in result.items() if len(v) > 10}
            if all(self._usual(f, v, result[f]) for f, v in late.items()):
                result |= late
        return result

    def _far(self, gap: int, rng: Random) -> int:
        by = int(rng.gauss(0.0, 0.25 * abs(gap)))
        near = FAR_DAYS // 2
        return max(by, near - gap) if gap > 0 else min(by, -near - gap)

    def _usual(self, field: str, value: str, before: str) -> bool:
        """On the same day, at an hour that the seed has, on the same side of now."""
        first, last = self._hours[field]
        now = self._now.isoformat()
        same_side = (value > now) == (before > now)
        return value[:10] == before[:10] and first <= value[11:16] <= last and same_side

    def _gap(self, value: str | None) -> int | None:
        """Days from now, negative in the past."""
        return None if value is None else (date.fromisoformat(value[:10]) - self._now.date()).days

    def _is_past(self, field: str, value: str) -> bool:
        """A day that is today is over where a step of the row's life was stamped with it."""
        now = self._now.isoformat()
        if len(value) > 10:
            return value <= now
        return value < now[:10] or (value == now[:10] and field in self._stamps)

    def _on_workdays(self, row: EntityRow, days: int) -> bool:
        moved = (moved_by(v, days) for f in self._workdays if (v := row[f]) is not None)
        return all(map(_is_workday, moved))


def moved_by(value: str, days: int) -> str:
    return (date.fromisoformat(value[:10]) + timedelta(days=days)).isoformat() + value[10:]


def _later(value: str, minutes: int) -> str:
    return (datetime.fromisoformat(value) + timedelta(minutes=minutes)).isoformat()


def _is_workday(value: str) -> bool:
    return date.fromisoformat(value[:10]).weekday() < _SATURDAY


def kept_orders(rows: Sequence[EntityRow], fields: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(earlier, later) of dates that stand in this order in every seed row that has both."""
    names = list(fields)
    found = []
    for first in names:
        for second in names:
            pairs = [(r[first], r[second]) for r in rows if r[first] and r[second]]
            if first != second and len(pairs) >= _FEWEST and all(map(_in_order, pairs)):
                found.append((first, second))
    return tuple(found)


def in_orders(row: Mapping[str, str | None], orders: Iterable[tuple[str, str]]) -> bool:
    pairs = ((row[first], row[second]) for first, second in orders)
    return all(a is None or b is None or _in_order((a, b)) for a, b in pairs)


def _in_order(pair: tuple[str, str]) -> bool:
    length = min(map(len, pair))
    return pair[0][:length] <= pair[1][:length]
