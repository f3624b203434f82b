"""Two curations of one dataset compared: how many of each reason, and which rows changed.

Both are in the table `curation`; nothing is decided again.
"""

from typing import NamedTuple

from records.errors import ConfigError
from records.store.dataset import Dataset

KEPT = "kept"
"""What stands for no drop reason."""

NOT_THERE = "not there"
"""Of a trajectory that only one of the curations looked at."""

NAMED = 10
"""Curations that an error names."""


class ReasonCount(NamedTuple):
    reason: str
    first: int
    second: int


class ChangedRow(NamedTuple):
    trajectory_id: str
    first: str
    """Drop reason, `kept` or `not there`."""
    second: str
    loss_changed: bool
    """Whether other messages carry loss."""


class Comparison(NamedTuple):
    first: str
    second: str
    """Whole ids of the curations."""
    reasons: list[ReasonCount]
    """The most frequent first."""
    changed: list[ChangedRow]
    """By id."""


def compare_curations(dataset: Dataset, first: str, second: str) -> Comparison:
    """`first` and `second`: ids, or enough of their beginnings to be the only ones. ConfigError for
    one that is not there."""
    known = list(
        dict.fromkeys(one for _, ids in dataset.column("curation", "curation_id") for one in ids)
    )
    a, b = (_whole(dataset, known, one) for one in (first, second))
    with dataset.connect() as db:
        reasons = db.execute(_REASONS, [a, b]).fetchall()
        changed = db.execute(_CHANGED, [a, b]).fetchall()
    return Comparison(
        a, b, [ReasonCount(*row) for row in reasons], [ChangedRow(*row) for row in changed]
    )


def _whole(dataset: Dataset, known: list[str], beginning: str) -> str:
    found = [one for one in known if one.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    what = "is no curation" if not found else f"begins {len(found)} curations"
    newest = ", ".join(known[-NAMED:]) or "none"
    raise ConfigError(
        f"{beginning!r} {what} of {dataset.root}; it has, the newest last: {newest} "
        '(synth sql "select curation_id, count(*), count_if(accepted) from curation group by all")'
    )


_BOTH = f"""
SELECT trajectory_id,
  CASE WHEN one.curation_id IS NULL THEN '{NOT_THERE}'
    ELSE coalesce(one.drop_reason, '{KEPT}') END AS first,
  CASE WHEN other.curation_id IS NULL THEN '{NOT_THERE}'
    ELSE coalesce(other.drop_reason, '{KEPT}') END AS second,
  one.train_turns IS DISTINCT FROM other.train_turns
    AND one.curation_id IS NOT NULL AND other.curation_id IS NOT NULL AS loss_changed
FROM (SELECT * FROM curation WHERE curation_id = $1) AS one
FULL JOIN (SELECT * FROM curation WHERE curation_id = $2) AS other USING (trajectory_id)"""

_CHANGED = f"""
SELECT * FROM ({_BOTH}) WHERE first != second OR loss_changed ORDER BY trajectory_id"""

_REASONS = f"""
SELECT reason, count(*) FILTER (side = 1) AS first, count(*) FILTER (side = 2) AS second
FROM (SELECT unnest([first, second]) AS reason, unnest([1, 2]) AS side FROM ({_BOTH}))
GROUP BY ALL ORDER BY greatest(first, second) DESC, reason"""
