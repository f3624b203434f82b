"""What a later grading made of the same trajectories: accepted before and after, and why.

Curations stay beside each other, so the newest is compared with the newest one of another grading,
over the trajectories that both looked at.
"""

from dataclasses import dataclass

import duckdb

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.publish.rows import rows_of

_STAGE = "curation"


@dataclass(frozen=True, slots=True)
class Regrading:
    earlier: Row
    """`grading_id`, `judge` (its models), `n` trajectories that both curations looked at,
    `accepted` of them."""
    later: Row
    changes: list[Row]
    """`before` and `after` (accepted or rejected, with the reason), `n`, `criterion` that is not
    passed now, and of one trajectory of them (`example`) the `evidence` for that."""
    only_later: int
    """Trajectories that the earlier curation did not look at."""


def regrading(dataset: Dataset, db: duckdb.DuckDBPyConnection) -> Regrading | None:
    """None where there is only one grading. `db`: the dataset's views."""
    curations = list(dataset.item_statuses(_STAGE))  # as they were first committed
    grading_of = dict(db.execute(_GRADINGS).fetchall())
    curations = [i for i in curations if i in grading_of]
    if not curations:
        return None
    later = curations[-1]
    others = [i for i in curations if grading_of[i] != grading_of[later]]
    if not others:
        return None
    return compared_curations(db, others[-1], later)


def compared_curations(db: duckdb.DuckDBPyConnection, earlier: str, later: str) -> Regrading:
    """Two curations by their ids, over the trajectories that both looked at."""
    grading_of, pair = dict(db.execute(_GRADINGS).fetchall()), [earlier, later]
    [counts] = rows_of(db, _COUNTS, pair)
    return Regrading(
        earlier=_side(db, grading_of[earlier], counts, "before"),
        later=_side(db, grading_of[later], counts, "after"),
        changes=rows_of(db, _CHANGES, pair),
        only_later=counts["only_later"],
    )


def _side(db: duckdb.DuckDBPyConnection, grading_id: str, counts: Row, side: str) -> Row:
    models = [model for (model,) in db.execute(_JUDGES, [grading_id]).fetchall()]
    return {
        "grading_id": grading_id,
        "judge": ", ".join(models) or "none was asked",
        "n": counts["n"],
        "accepted": counts[side],
    }


_GRADINGS = "SELECT DISTINCT curation_id, grading_id FROM curation"

_JUDGES = """
SELECT DISTINCT coalesce(regexp_replace(checker_version, '@[^@]*$', ''), 'not noted') AS model
FROM verdicts
WHERE grading_id = $1 AND checked_by = 'judge' ORDER BY model"""

_COUNTS = """
SELECT count(*) FILTER (b.curation_id IS NOT NULL) AS n,
  count(*) FILTER (b.accepted) AS before,
  count(*) FILTER (b.curation_id IS NOT NULL AND a.accepted) AS after,
  count(*) FILTER (b.curation_id IS NULL) AS only_later
FROM curation AS a LEFT JOIN (SELECT * FROM curation WHERE curation_id = $1) AS b
  USING (trajectory_id)
WHERE a.curation_id = $2"""

_CHANGES = """
WITH pairs AS (
  SELECT CASE WHEN b.accepted THEN 'accepted' ELSE 'rejected: ' || b.drop_reason END AS before,
    CASE WHEN a.accepted THEN 'accepted' ELSE 'rejected: ' || a.drop_reason END AS after,
    CASE WHEN a.accepted THEN '' ELSE coalesce(a.failed_criterion, '') END AS criterion,
    count(*) AS n, min(trajectory_id) AS example, any_value(a.grading_id) AS grading_id,
    b.accepted != a.accepted AS turned
  FROM curation AS b JOIN curation AS a USING (trajectory_id)
  WHERE b.curation_id = $1 AND a.curation_id = $2 GROUP BY ALL)
SELECT before, after, criterion, n, example, coalesce((
    SELECT evidence FROM verdicts AS v
    WHERE v.grading_id = pairs.grading_id AND v.trajectory_id = example
      AND v.criterion_id = pairs.criterion AND v.passed = false
      AND v.checked_by IN ('code', 'judge')
    ORDER BY v.checked_by LIMIT 1), '') AS evidence
FROM pairs ORDER BY turned DESC, n DESC, before, after, criterion"""
