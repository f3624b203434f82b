"""What the judge of rewrites is tried with: kinds of changes, and the parts that they are tried on.

An item is one kind with a few parts, on which it is tried in turn until something is confirmed.
The parts of a kind are ranked by a draw of their own and taken in blocks that do not overlap, so an
item that is open is planned again as the same item, whatever else was tried since.
"""

import heapq
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from records.digest import digest
from records.tables.schemas import Row
from synth.engine.stages import Item
from synth.rephrasing.calibration.kinds import ORDER, PARAPHRASE, UNTOUCHED
from synth.rephrasing.writing.config import RephrasingTrialConfig
from synth.rephrasing.writing.part_checks import UNFAITHFUL
from synth.rephrasing.writing.parts import is_written

STAGE = "rephrasing-calibration"

STAGE_VERSION = 1
"""Raised when the same part would be tried otherwise."""

TRIED = "tried"
"""The outcome of an item that the judge was asked about."""

ATTEMPTS = 3
"""Parts at most on which one item is tried."""

LOOKED_AT = 4_000
"""Parts at most that are ranked for every kind: a large dataset has millions."""

SHORTEST_PART = 80
"""Characters of a rewritten part that has room for a change."""


class RewrittenPartId(NamedTuple):
    rephrasing_id: str
    part: int
    """Its number in the column `chunks`."""


class TrialParts(NamedTuple):
    """Parts of rewrites: of each sort the first `LOOKED_AT`, in an order that is drawn."""

    able: Sequence[RewrittenPartId]
    """Those that a model wrote, as long as a change needs."""
    unasked: Sequence[RewrittenPartId]
    """Those of them that no judge has been asked about."""
    num_judged: int
    """Parts that a judge has been asked about."""


class _FirstParts:
    """The first of many parts in a drawn order; few more than these are held."""

    def __init__(self) -> None:
        self._parts: list[RewrittenPartId] = []

    def add(self, part: RewrittenPartId) -> None:
        self._parts.append(part)
        if len(self._parts) >= 2 * LOOKED_AT:
            self._parts = self.drawn()

    def drawn(self) -> list[RewrittenPartId]:
        return _drawn("able", self._parts)


def parts_in(rewrites: Iterable[Row], verdicts: Mapping[RewrittenPartId, str]) -> TrialParts:
    """From rows of `rephrasings` with `rephrasing_id` and `chunks`; `verdicts`: what judges said of
    parts. One that a judge finds unfaithful is no part to change."""
    able, unasked, num_judged = _FirstParts(), _FirstParts(), 0
    for row in rewrites:
        for number, chunk in enumerate(row["chunks"]):
            part = RewrittenPartId(row["rephrasing_id"], number)
            said = verdicts.get(part)
            was_asked = said is not None or UNFAITHFUL in chunk.get("faults", ())
            num_judged += was_asked
            start, end = chunk["text"]
            has_room = is_written(chunk) and end - start >= SHORTEST_PART
            if has_room and said != UNFAITHFUL:
                able.add(part)
                if not was_asked:
                    unasked.add(part)
    return TrialParts(able.drawn(), unasked.drawn(), num_judged)


def num_perturbed(num_judged: int, config: RephrasingTrialConfig) -> int:
    """Changed parts to try, and as many controls."""
    if not num_judged or not config.share:
        return 0
    return min(max(math.ceil(num_judged * config.share), config.at_least), config.at_most)


def plan_trial(
    parts: TrialParts,
    before: Sequence[Row],
    *,
    trial_id: str,
    writer: str,
    config: RephrasingTrialConfig,
) -> list[Item]:
    """Items that this writer has made and those that are missing. `before`: rows of the trial, by
    any writer. What came to nothing is not tried anew by the writer that it came to nothing for."""
    wanted = num_perturbed(parts.num_judged, config)
    if not wanted:
        return []
    made = [row for row in before if row["writer_version"] == writer]
    closed = [r for r in before if r["outcome"] == TRIED or r["writer_version"] == writer]
    num_closed = Counter(row["perturbation"] for row in closed)
    left = _Left(parts, before)
    changed = list(_in_turn(left, num_closed, wanted))
    num = max(0, math.ceil(wanted / 2) - num_closed[UNTOUCHED])
    untouched = list(islice(left.blocks(UNTOUCHED), num))
    num = wanted - num_closed[UNTOUCHED] - len(untouched) - num_closed[PARAPHRASE]
    paraphrased = list(islice(left.blocks(PARAPHRASE), max(0, num)))
    fresh = [
        *changed,
        *((UNTOUCHED, block) for block in untouched),
        *((PARAPHRASE, block) for block in paraphrased),
    ]
    mine = [(row["perturbation"], row["candidates"]) for row in made]
    return [_item(trial_id, writer, sort, block) for sort, block in (*mine, *fresh)]


_Block = Sequence[RewrittenPartId]


class _Left:
    """The parts that each kind was not tried on."""

    def __init__(self, parts: TrialParts, before: Iterable[Row]) -> None:
        self._able, self._unasked = parts.able, parts.unasked
        self._taken: defaultdict[str, set[RewrittenPartId]] = defaultdict(set)
        for row in before:
            used = (RewrittenPartId(*one) for one in row["candidates"])
            self._taken[row["perturbation"]].update(used)

    def blocks(self, sort: str) -> Iterator[_Block]:
        """Whole blocks were taken before, so those that are left are what they were."""
        parts, size = (self._unasked, 1) if sort == UNTOUCHED else (self._able, ATTEMPTS)
        free = [part for part in _drawn(sort, parts) if part not in self._taken[sort]]
        for at in range(0, len(free), size):
            yield free[at : at + size]


def _in_turn(
    left: _Left, num_closed: Mapping[str, int], wanted: int
) -> Iterator[tuple[str, _Block]]:
    """A block of the kind that was tried least, again and again; the first of equals."""
    num = {sort: num_closed[sort] for sort in ORDER}
    able = {sort: left.blocks(sort) for sort in ORDER}
    missing = wanted - sum(num.values())
    while able and missing > 0:
        sort = min(able, key=lambda sort: num[sort])
        block = next(able[sort], None)
        if block is None:
            del able[sort]
            continue
        yield sort, block
        num[sort] += 1
        missing -= 1


def _item(trial_id: str, writer: str, sort: str, parts: _Block) -> Item:
    given = [list(part) for part in parts]
    item_id = digest(STAGE, STAGE_VERSION, trial_id, writer, sort, given)
    return Item(item_id, {"sort": sort, "parts": given})


def _drawn(purpose: str, parts: Iterable[RewrittenPartId]) -> list[RewrittenPartId]:
    """The first `LOOKED_AT` of them in an order that is drawn for the purpose."""

    def draw(part: RewrittenPartId) -> tuple[int, RewrittenPartId]:
        # cheap: a plan of a large dataset makes millions
        return zlib.crc32(f"{purpose} {part.rephrasing_id} {part.part}".encode()), part

    return heapq.nsmallest(LOOKED_AT, parts, key=draw)
