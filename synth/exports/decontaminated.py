"""What a card tells of decontamination: against which evaluations, by what, with what result."""

import json
from collections.abc import Iterable
from pathlib import PurePath

import duckdb

from records.settings import renamed_settings
from records.tables.schemas import Row
from synth.curation.deciding import IN_EVALUATION
from synth.curation.settings.config import DecontaminationConfig
from synth.judging.config import GradeConfig
from synth.publish.rows import rows_of

_METHODS = {
    "ngrams": "runs of {words} words",
    "minhash": "3-grams of words (Jaccard from {near:g}, of tools from {near_tools:g})",
    "embedder": "vectors of an embedder (cosine from {cosine:g})",
}


def decontamination_of(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """A row for each run whose curation is the newest on some trajectory, the newest run first:
    the names of the evaluations' `files` (empty where it looked for none), how many `trajectories`
    it decided on, how many of them are `dropped` for what they share with an evaluation, by what it
    looked (`methods`), and what each method found in which file (`found`)."""
    told = []
    for run in rows_of(db, _CURATIONS, [IN_EVALUATION]):
        values = renamed_settings(GradeConfig, json.loads(run.pop("config") or "{}"))
        given = (values.get("curation") or {}).get("decontamination") or {}
        settings = DecontaminationConfig().model_dump() | given
        files = names_of(settings["files"])
        found = rows_of(db, _FOUND, [run["run_id"]]) if files else []
        asked = run.pop("asked_embedder") or any(row["method"] == "embedder" for row in found)
        used = [name for name in _METHODS if name != "embedder" or asked] if files else []
        methods = [_METHODS[name].format_map(settings) for name in used]
        told.append(run | {"files": files, "methods": methods, "found": found})
    return told


def names_of(paths: Iterable[str]) -> list[str]:
    """Of files, patterns and addresses what says nothing of where they lie."""
    return [PurePath(path).name for path in paths]


# joined with the view itself, DuckDB 2 makes a product of both: 6 GB for 1,000 trajectories
_NEWEST = """
WITH newest AS MATERIALIZED (SELECT trajectory_id, curation_id, drop_reason FROM trajectories)"""

_CURATIONS = f"""{_NEWEST}
SELECT c.run_id, any_value(r.config) AS config, count(*) AS trajectories,
  count_if(t.drop_reason = $1) AS dropped,
  c.run_id IN (SELECT run_id FROM llm_calls WHERE role = 'embedder') AS asked_embedder
FROM curation AS c JOIN newest AS t USING (trajectory_id, curation_id)
  LEFT JOIN (
    SELECT run_id, arg_max(config, happened_at) AS config, max(happened_at) AS happened_at
    FROM runs WHERE event = 'started' GROUP BY run_id) AS r ON r.run_id = c.run_id
GROUP BY c.run_id ORDER BY max(r.happened_at) DESC NULLS LAST, c.run_id"""

_FOUND = f"""{_NEWEST}
SELECT file, method, count(DISTINCT trajectory_id) AS trajectories
FROM contaminations JOIN newest USING (trajectory_id, curation_id)
WHERE contaminations.run_id = $1 GROUP BY ALL ORDER BY file, method"""
