"""How true model-simulated tools were, of a dataset: the share of calls after which the state is
the interpreter's, by the number of fields that the interpreter changes.

Only tools that a program defines can be measured; what a model played without one is counted apart.
"""

from typing import Any

import duckdb

from synth.render.intervals import wilson

BUCKETS = ("0", "1", "2-3", "4+")


def bucket_of(changed_fields: int) -> str:
    if changed_fields < 2:
        return str(changed_fields)
    return "2-3" if changed_fields < 4 else "4+"


def state_accuracy(db: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """A row for each bucket that was met, then `all`, then `not measured`; none without any.

    `n` calls, of them `state` exact (95% interval from `low` to `high`) and `observation` equal,
    `repaired` before they counted, `failed` for want of a usable answer.
    """
    cursor = db.execute(_COUNTS)
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    rows.sort(key=lambda row: ([*BUCKETS, "all", "not measured"]).index(row["fields"]))
    for row in rows:
        exact = row["state"]
        row["low"], row["high"] = (None, None) if exact is None else wilson(exact, row["n"])
    return rows


_COUNTS = """
WITH named AS (
  SELECT *, CASE WHEN changed_fields IS NULL THEN 'not measured'
    WHEN changed_fields < 2 THEN changed_fields::VARCHAR
    WHEN changed_fields < 4 THEN '2-3' ELSE '4+' END AS fields FROM simulations
), counted AS (
  SELECT * FROM named UNION ALL BY NAME
  SELECT * REPLACE ('all' AS fields) FROM named WHERE changed_fields IS NOT NULL
)
SELECT fields, count(*)::BIGINT AS n,
  CASE WHEN fields = 'not measured' THEN NULL ELSE count(*) FILTER (state_match) END AS state,
  CASE WHEN fields = 'not measured' THEN NULL
    ELSE count(*) FILTER (observation_match) END AS observation,
  count(*) FILTER (repairs > 0)::BIGINT AS repaired,
  count(*) FILTER (failed)::BIGINT AS failed
FROM counted GROUP BY fields"""
