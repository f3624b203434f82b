"""What became of every item: requested = kept + dropped + failed + pending."""

import json
import threading
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from records.store.dataset import WINDOW, Dataset, ItemStatus
from records.tables.schemas import Row


def yields(dataset: Dataset) -> list[Row]:
    """Every item that any run planned or made, by stage in the order of the first commit.

    From the commit files, where the newest status of an item counts, and the plans. `reasons` are
    of all that was not kept, of what was tried in vain and is pending as well; `example` quotes one
    item.
    """
    return YieldCounts(dataset).rows()


class YieldCounts:
    """The yields of a dataset that somebody looks at again and again while it is being written:
    each commit is read once. Threads may share it."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._lock = threading.Lock()
        self._up_to = 0
        self._made: dict[str, _NewestStatuses] = {}

    def rows(self) -> list[Row]:
        """As `yields`, with what was committed since the last call."""
        with self._lock:
            return self._rows()

    def _rows(self) -> list[Row]:
        newest = len(self._dataset.commits())  # first: what comes meanwhile is read again, not lost
        stages = dict.fromkeys(self._dataset.stages())
        for stage in stages:
            made = self._made.setdefault(stage, _NewestStatuses())
            for items in self._dataset.items_of(stage, after=self._up_to):
                made.add(items)
        self._up_to = newest
        planned: dict[str, list[Path]] = {}
        for path in sorted(self._dataset.root.glob("plans/*/*.json")):
            planned.setdefault(path.stem.partition(WINDOW)[0], []).append(path)
        nothing = _NewestStatuses()
        return [
            _yield(stage, self._made.get(stage, nothing), planned.get(stage, []))
            for stage in [*stages, *sorted(planned.keys() - stages.keys())]
        ]


def _yield(stage: str, made: "_NewestStatuses", plans: Iterable[Path]) -> Row:
    counts = made.counts()
    by_status: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for (status, reason), number in counts.items():
        by_status[status] += number
        reasons.update({reason: number} if reason else {})
    left = made.not_in(plans)
    return {
        "stage": stage,
        "requested": by_status.total() + left,
        "kept": by_status["kept"],
        "dropped": by_status["dropped"],
        "failed": by_status["failed"],
        "pending": by_status["pending"] + left,
        "reasons": reasons.most_common(),
        "example": made.example(),
    }


class _NewestStatuses:
    """What became of each item, in 12 bytes an item, since a stage may have millions; words are
    kept of those in trouble."""

    def __init__(self) -> None:
        self._digests, self._codes = array("q"), array("i")
        self._code_of: dict[tuple[str, str | None], int] = {}
        self._words: dict[str, ItemStatus] = {}

    def add(self, items: Mapping[str, ItemStatus]) -> None:
        """What a commit says, later than those before it."""
        for item, status in items.items():
            what = status.status, status.reason
            self._digests.append(hash(item))
            self._codes.append(self._code_of.setdefault(what, len(self._code_of)))
            if status.status in ("failed", "pending") and status.detail:
                self._words[item] = status
            else:
                self._words.pop(item, None)

    def counts(self) -> dict[tuple[str, str | None], int]:
        """(status, reason) -> items of which it is the newest, in the order of items."""
        digests = np.asarray(self._digests, np.int64)[::-1]
        _, last = np.unique(digests, return_index=True)
        newest = np.asarray(self._codes, np.int32)[::-1][last]
        numbers = np.bincount(newest, minlength=len(self._code_of))
        return {what: int(numbers[code]) for what, code in self._code_of.items() if numbers[code]}

    def not_in(self, plans: Iterable[Path]) -> int:
        """How many items of the plans no commit names."""
        wanted = array("q")
        for path in plans:
            wanted.extend(hash(i) for shard in json.loads(path.read_text()) for i in shard)
        planned = np.asarray(wanted, np.int64)
        return len(np.setdiff1d(planned, np.asarray(self._digests, np.int64)))

    def example(self) -> str:
        """One item's words about what most often failed, or kept items pending; foreign text."""
        if not self._words:
            return ""
        [(worst, _)] = Counter(s.reason for s in self._words.values()).most_common(1)
        return next(f"{s.reason}: {s.detail}" for s in self._words.values() if s.reason == worst)
