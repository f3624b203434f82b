"""What became of every item: requested = kept + dropped + failed + pending."""

import json
from collections import Counter

from records.store.dataset import Dataset
from records.tables.schemas import Row


def yields(dataset: Dataset) -> list[Row]:
    """Every item that any run planned or made, by stage in the order of the first commit.

    From the commit files, where the newest status of an item counts, and the plans.
    """
    stages = dict.fromkeys(dataset.stages())
    planned: dict[str, set[str]] = {}
    for path in sorted(dataset.root.glob("plans/*/*.json")):
        for shard in json.loads(path.read_text()):
            planned.setdefault(path.stem, set()).update(shard)
    found = []
    for stage in [*stages, *sorted(planned.keys() - stages.keys())]:
        statuses = dataset.item_statuses(stage)
        pending = len(planned.get(stage, set()) - statuses.keys())
        counts = Counter(status.status for status in statuses.values())
        reasons = Counter(s.reason for s in statuses.values() if s.reason)
        found.append(
            {
                "stage": stage,
                "requested": len(statuses) + pending,
                "kept": counts["kept"],
                "dropped": counts["dropped"],
                "failed": counts["failed"],
                "pending": pending,
                "reasons": reasons.most_common(),
            }
        )
    return found
