"""What became of every item: requested = kept + dropped + failed + pending."""

import json
from collections import Counter
from collections.abc import Iterable

from records.store.dataset import Dataset, ItemStatus
from records.tables.schemas import Row


def yields(dataset: Dataset) -> list[Row]:
    """Every item that any run planned or made, by stage in the order of the first commit.

    From the commit files, where the newest status of an item counts, and the plans. `reasons` are
    of all that was not kept, of what was tried in vain and is pending as well; `example` quotes one
    item.
    """
    stages = dict.fromkeys(dataset.stages())
    planned: dict[str, set[str]] = {}
    for path in sorted(dataset.root.glob("plans/*/*.json")):
        for shard in json.loads(path.read_text()):
            planned.setdefault(path.stem, set()).update(shard)
    found = []
    for stage in [*stages, *sorted(planned.keys() - stages.keys())]:
        statuses: dict[str, ItemStatus] = {}
        for items in dataset.items_of(stage):
            statuses.update(items)
        counts = Counter(status.status for status in statuses.values())
        pending = counts["pending"] + len(planned.get(stage, set()) - statuses.keys())
        reasons = Counter(s.reason for s in statuses.values() if s.reason)
        found.append(
            {
                "stage": stage,
                "requested": len(statuses) + pending - counts["pending"],
                "kept": counts["kept"],
                "dropped": counts["dropped"],
                "failed": counts["failed"],
                "pending": pending,
                "reasons": reasons.most_common(),
                "example": _example(statuses.values()),
            }
        )
    return found


def _example(statuses: Iterable[ItemStatus]) -> str:
    """One item's words about what most often failed, or kept items pending; foreign text."""
    troubled = [s for s in statuses if s.status in ("failed", "pending") and s.detail]
    if not troubled:
        return ""
    [(worst, _)] = Counter(s.reason for s in troubled).most_common(1)
    return next(f"{s.reason}: {s.detail}" for s in troubled if s.reason == worst)
