"""The stored rows of an export, read in order and in little memory.

Rows are asked for a window at a time: a query sorts what it returns, so that whatever it returns is
in memory at once. The window's ids are told as a range, too, which DuckDB takes to the files and to
the decisions, so that it holds those of the window and not of the dataset.
"""

import json
from collections.abc import Collection, Iterator

import duckdb
import pyarrow as pa

from records.errors import ItemError
from records.tables.schemas import STR, Row
from records.tables.splits import SPLITS
from synth.exports.formats.columns import AS_STORED
from synth.exports.formats.form import ExportSource
from synth.judging.judge_report import JUDGE_MARK
from synth.rubrics.turns import what_is_wrong

WINDOW_ROWS = 2_000
"""Rows that one query returns: some 20 MB of conversations, which DuckDB holds several times."""

BATCH_ROWS = 500
"""Rows that are Python values at once."""


def note_exported(db: duckdb.DuckDBPyConnection, ids: Collection[str]) -> None:
    """Make the table `exported`, which the card is about: the trajectories in the files, with the
    licences of their tools."""
    db.register("exported_ids", pa.table({"trajectory_id": pa.array(sorted(ids), STR)}))
    db.execute(
        "CREATE TEMP TABLE exported AS SELECT trajectory_id, tool_licenses FROM exported_ids JOIN "
        "(SELECT trajectory_id, tool_licenses FROM chosen UNION ALL FROM failed) "
        "USING (trajectory_id)"
    )
    db.unregister("exported_ids")


def splits_of(db: duckdb.DuckDBPyConnection, source: ExportSource) -> list[str]:
    """Those in which the source has rows, weakest first; makes its table `picked`."""
    db.execute(f"CREATE OR REPLACE TEMP TABLE picked AS {_PICKED[source]}")
    found = {split for (split,) in db.execute("SELECT chosen_split FROM picked").fetchall()}
    return [split for split in SPLITS if split in found]


def rows_in(
    db: duckdb.DuckDBPyConnection, source: ExportSource, split: str, calibrated: list[str]
) -> Iterator[Row]:
    """The rows of a split that `splits_of` found for the same source, in order.

    ItemError for an accepted conversation that no trainer could take.
    """
    counted = db.execute("SELECT count(*) FROM picked WHERE chosen_split = $1", [split]).fetchall()
    for start in range(0, counted[0][0], WINDOW_ROWS):
        window = [split, start, start + WINDOW_ROWS]
        values = [*window, calibrated, *db.execute(_ID_RANGE, window).fetchall()[0]]
        # a relation, because rows of `execute` are copied once more on their way to Arrow
        stored = db.sql(_ROWS.format(**_MORE[source]), params=values)
        for batch in stored.to_arrow_reader(BATCH_ROWS):
            yield from map(_parsed, batch.to_pylist())


def _parsed(row: Row) -> Row:
    for name in ("messages", "rejected_messages"):
        if name in row:
            row[name] = json.loads(row[name] or "[]")
    if wrong := what_is_wrong(row["messages"]):
        if row["accepted"]:
            raise ItemError(
                "untrainable",
                f"trajectory {row['trajectory_id']} was accepted and {wrong}; nothing was exported",
            )
        row["wrong"] = wrong
    return row


_ONE_CONVERSATION = "t.parent_call_id IS NULL AND coalesce(t.session, 0) = 0"

_PICKED: dict[ExportSource, str] = {
    "conversations": "SELECT trajectory_id, chosen_split, place, tool_licenses FROM chosen",
    "tasks": f"""
SELECT trajectory_id, chosen_split, tool_licenses,
  row_number() OVER (PARTITION BY chosen_split ORDER BY trajectory_id) - 1 AS place
FROM (
  SELECT chosen.*, t.task_id FROM chosen JOIN trajectories AS t
    USING (trajectory_id)
  WHERE {_ONE_CONVERSATION}
  QUALIFY row_number() OVER (PARTITION BY t.task_id ORDER BY trajectory_id) = 1)""",
    "pairs": """
SELECT chosen.trajectory_id, chosen_split, tool_licenses, rejected_id,
  p.failed_criterion,
  row_number() OVER (PARTITION BY chosen_split ORDER BY chosen.trajectory_id) - 1 AS place
FROM preferences AS p JOIN chosen ON chosen.trajectory_id = p.chosen_id""",
    "attempts": f"""
SELECT trajectory_id, chosen_split, label, tool_licenses,
  row_number() OVER (PARTITION BY chosen_split ORDER BY trajectory_id) - 1 AS place
FROM (
  SELECT trajectory_id, t.split AS chosen_split, label, tool_licenses FROM (
    SELECT trajectory_id, tool_licenses, true AS label FROM chosen
    UNION ALL SELECT trajectory_id, tool_licenses, false FROM failed)
  JOIN trajectories AS t USING (trajectory_id)
  WHERE {_ONE_CONVERSATION}
    AND t.task_id NOT IN (SELECT task_id FROM trajectories WHERE session > 0))""",
}
"""Which trajectories a source has, with their split and place in it."""

_MORE: dict[ExportSource, dict[str, str]] = {
    "conversations": {"columns": "", "joins": ""},
    "tasks": {"columns": ", k.rubric, k.initial_state, k.seed AS task_seed, place", "joins": ""},
    "pairs": {
        "columns": ", rejected_id, picked.failed_criterion, worse.messages AS rejected_messages",
        "joins": "JOIN trajectories AS worse ON worse.trajectory_id = rejected_id",
    },
    "attempts": {"columns": ", label", "joins": ""},
}

_ID_RANGE = """
SELECT min(trajectory_id), max(trajectory_id) FROM picked
WHERE chosen_split = $1 AND place >= $2 AND place < $3"""

_ROWS = f"""
WITH shown AS MATERIALIZED (
  SELECT task_id, agent_id FROM trajectories WHERE trajectory_id BETWEEN $5 AND $6)
SELECT t.trajectory_id, t.split, t.messages, t.tools, t.train_turns, 1.0::DOUBLE AS weight,
  picked.tool_licenses, t.score, {JUDGE_MARK} AS judge_mark, t.decided_by, t.self_judged,
  d.name AS domain, d.category, k.complexity, t.agent_id, a.name AS agent_name, t.token_counts,
  t.accepted, {", ".join(f"t.{name}" for name in AS_STORED)}{{columns}}
FROM picked
JOIN trajectories AS t USING (trajectory_id)
{{joins}}
LEFT JOIN domains AS d ON d.domain_id = t.domain_id
LEFT JOIN (FROM tasks SEMI JOIN shown USING (task_id)) AS k ON k.task_id = t.task_id
LEFT JOIN (FROM agents SEMI JOIN shown USING (agent_id)) AS a ON a.agent_id = t.agent_id
WHERE t.trajectory_id BETWEEN $5 AND $6 AND chosen_split = $1 AND place >= $2 AND place < $3
ORDER BY place"""
