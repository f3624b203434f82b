"""How often the agent passes which tasks: pass rates by what a task is like, the hardest first.

An attempt passes where grading accepts it, whatever curation drops it for beside that. Attempts
that ended outside the agent's reach, those at tasks that count as faulty, and those that share
something with an evaluation measure nothing.
"""

import duckdb

from records.tables.schemas import Row
from synth.curation.deciding import FAULTY_TASK, IN_EVALUATION, PASSED_GRADING
from synth.episode.environment import OUTSIDE
from synth.publish.rows import rows_of
from synth.render.intervals import wilson


def pass_rates(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """By `dimension` and `value`: `tasks`, `attempts`, those that `passed`, `share`, `low` and
    `high` of its 95% interval. What is surely hard, by `high`, stands first; of a dimension with
    one value nothing is said."""
    found = []
    for dimension, expression in _DIMENSIONS.items():
        rows = rows_of(db, _RATES.format(value=expression))
        for row in rows if len(rows) > 1 else ():
            low, high = wilson(row["passed"], row["attempts"])
            share = row["passed"] / row["attempts"]
            found.append(
                {"dimension": dimension} | row | {"share": share, "low": low, "high": high}
            )
    return sorted(found, key=lambda row: (row["high"], row["dimension"], row["value"]))


_DIMENSIONS = {
    "variant": "t.variant",
    "form": """coalesce(nullif(array_to_string(list_sort(list_distinct(list_filter(
      json_extract_string(t.proof, '$.forms[*]'), lambda f: f != 'plain'))), ', '), ''),
      'plain')""",
    "calls of the plan": """CASE WHEN t.num_steps = 0 THEN 'none'
      WHEN t.num_steps < 3 THEN '1 or 2' WHEN t.num_steps < 5 THEN '3 or 4'
      WHEN t.num_steps < 9 THEN '5 to 8' ELSE '9 and more' END""",
    "told only when asked": """CASE WHEN coalesce(t.num_hidden, 0) = 0 THEN 'nothing'
      WHEN t.num_hidden < 3 THEN '1 or 2 facts' ELSE '3 facts and more' END""",
    "tools that the plan does not use": """CASE WHEN coalesce(t.num_distractors, 0) < 4
      THEN '0 to 3' WHEN t.num_distractors < 8 THEN '4 to 7' WHEN t.num_distractors < 16
      THEN '8 to 15' ELSE '16 and more' END""",
    "category": """coalesce(d.category, CASE WHEN t.server IS NULL THEN 'unknown'
      ELSE 'MCP server' END)""",
    "operator": "coalesce(t.operator, 'none')",
}
"""What is shown -> SQL over a task `t` and its domain `d`."""

_RATES = f"""
WITH attempts AS (
  SELECT {{value}} AS value, t.task_id AS task_id,
    a.accepted OR a.drop_reason IN {PASSED_GRADING} AS passed
  FROM trajectories AS a JOIN tasks AS t USING (task_id)
  LEFT JOIN domains AS d ON d.domain_id = t.domain_id
  WHERE a.accepted IS NOT NULL AND a.parent_call_id IS NULL AND coalesce(a.session, 0) = 0
    AND a.termination_reason NOT IN {tuple(sorted(OUTSIDE))}
    AND coalesce(a.drop_reason, '') NOT IN {(FAULTY_TASK, IN_EVALUATION)})
SELECT value, count(DISTINCT task_id) AS tasks, count(*) AS attempts,
  count(*) FILTER (passed) AS passed
FROM attempts WHERE value IS NOT NULL GROUP BY value ORDER BY value"""
