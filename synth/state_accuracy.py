"""How true model-simulated tools were, of a dataset: the share of calls after which the state is
the interpreter's, by the number of fields that the interpreter changes.

Only tools that a program defines can be measured; what a model played without one is counted apart.
"""

import math
from typing import Any

import duckdb

BUCKETS = ("0", "1", "2-3", "4+")


def bucket_of(changed_fields: int) -> str:
    if changed_fields < 2:
        return str(changed_fields)
    return "2-3" if changed_fields < 4 else "4+"


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a share k/n after Wilson; (0, 1) for nothing counted."""
    if n == 0:
        return 0.0, 1.0
    p = k / n
    middle = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def state_accuracy(db: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """A row for each bucket that was met, then `all`, then `not measured`; none without any."""
    cursor = db.execute(_COUNTS)
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    rows.sort(key=lambda row: ([*BUCKETS, "all", "not measured"]).index(row["fields"]))
    for row in rows:
        row["interval"] = wilson(row["state"], row["n"]) if row["state"] is not None else None
    return rows


_COUNTS = """
WITH named AS (
  SELECT *, CASE WHEN changed_fields IS NULL THEN 'not measured'
    WHEN changed_fields < 2 THEN changed_fields::VARCHAR
    WHEN changed_fields < 4 THEN '2-3' ELSE '4+' END AS fields FROM simulations
), both AS (
  SELECT * FROM named UNION ALL BY NAME
  SELECT * REPLACE ('all' AS fields) FROM named WHERE changed_fields IS NOT NULL
)
SELECT fields, count(*)::BIGINT AS n,
  CASE WHEN fields = 'not measured' THEN NULL ELSE count(*) FILTER (state_match) END AS state,
  CASE WHEN fields = 'not measured' THEN NULL
    ELSE count(*) FILTER (observation_match) END AS observation,
  count(*) FILTER (repairs > 0)::BIGINT AS repaired,
  count(*) FILTER (failed)::BIGINT AS failed
FROM both GROUP BY fields"""
