"""What the card of an export tells of its dataset: counts, models, prompts, licences, settings.

Most is asked of one connection, over the exported ids in its table `exported`. No path of this
machine, no address and no key gets in: of the runs' settings only those that say how the data was
made.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import duckdb

from records.model_names import OFFLINE_MODEL, todays
from records.settings import renamed_settings
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.tools.state_accuracy import state_accuracy
from synth.exports.decontaminated import decontamination_of, names_of
from synth.judging.judge_report import judge_report
from synth.pipeline.config import RunConfig
from synth.publish.decisions import decisions
from synth.publish.rows import rows_of
from synth.publish.summary import recovery_rates, user_fault_rates
from synth.render.yields import yields

_SETTINGS = (
    "name",
    "seed",
    "domains",
    "servers",
    "agents",
    "tasks",
    "rollouts",
    "judging",
    "curation",
)
_ROLE_SETTINGS = ("models", "temperature", "top_p", "max_tokens", "send_reasoning", "license")
"""Settings that say how rows were made; of those that name files the names are kept."""


def facts_of(dataset: Dataset, db: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    [totals] = rows_of(db, _TOTALS)
    settings = _settings(db)
    models = [
        row | {"terms": _terms(settings.values(), row["model"])} for row in rows_of(db, _MODELS)
    ]
    judged = judge_report(dataset, connected=db)
    return {
        "dataset": dataset.root.name,
        "offline_model": any(row["model"].startswith(OFFLINE_MODEL) for row in models),
        "totals": totals,
        "yields": yields(dataset),
        "recovery": recovery_rates(db),
        "user_faults": user_fault_rates(db),
        "judge": asdict(judged) | {"words": judged.words},
        "decisions": _decisions(db),
        "simulated": state_accuracy(db),
        "models": models,
        "prompts": rows_of(db, _PROMPTS),
        "worlds": rows_of(db, _ENVIRONMENTS),
        "languages": rows_of(db, _LANGUAGES),
        "licenses": rows_of(db, _LICENSES),
        "imported": rows_of(db, _IMPORTED),
        "decontamination": decontamination_of(db),
        "settings": settings,
        "roles": _roles(settings.values()),
        "versions": _versions(db),
    }


def _roles(settings: Iterable[Row]) -> list[Row]:
    """What each role was told; runs with the same settings tell it once."""
    told: list[Row] = []
    for config in settings:
        roles = [{"role": role, **values} for role, values in config["roles"].items()]
        told += [role for role in roles if role not in told]
    return told


def _terms(settings: Iterable[Row], model: str) -> str:
    """What the runs' settings say that the model's output may be used for."""
    stated = {
        values["license"]
        for config in settings
        for values in config["roles"].values()
        if values.get("license") and model in {one["name"] for one in values.get("models", ())}
    }
    return ", ".join(sorted(stated)) or "unknown"


def _decisions(db: duckdb.DuckDBPyConnection) -> Row:
    found = decisions(db)
    return {
        "thresholds": found.threshold_words,
        "scored_only": list(found.rule.config.scored_only),
        "decided_by": found.decided_by,
        "criteria": found.criteria,
        "rejected": found.rejected,
        "judged": found.judged,
        "self_judged": found.self_judged,
        "self_judged_words": found.self_judged_words,
    }


def _settings(db: duckdb.DuckDBPyConnection) -> dict[str, Row]:
    """By run: the settings that made the exported rows, without addresses, keys and paths."""
    found: dict[str, Row] = {}
    for row in rows_of(db, _CONFIGS):
        config = renamed_settings(RunConfig, json.loads(row["config"] or "{}"))
        kept = {name: config[name] for name in _SETTINGS if name in config}
        for name in ("domains", "servers"):
            kept[name] = names_of(kept.get(name, []))
        if evaluations := (kept.get("curation") or {}).get("decontamination"):
            named = evaluations | {"files": names_of(evaluations.get("files", []))}
            kept["curation"] = kept["curation"] | {"decontamination": named}
        kept["roles"] = {
            role: {name: values[name] for name in _ROLE_SETTINGS if name in values}
            | {"models": [m | {"name": todays(m["name"])} for m in values.get("models", ())]}
            for role, values in config.get("roles", {}).items()
        }
        found[row["run_id"]] = {"kind": row["kind"] or RunConfig.KIND, **kept}
    return found


def _versions(db: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Of the packages that made the data, as the newest invocation noted them."""
    noted = [json.loads(row["versions"] or "{}") for row in rows_of(db, _CONFIGS)]
    return {name: v for name, v in noted[-1].items() if v} if noted else {}


_TOTALS = """
SELECT count(*) AS trajectories, count_if(accepted IS NOT TRUE) AS failed,
  count_if(list_contains(executed_by, 'elsewhere')) AS elsewhere,
  count(DISTINCT task_id) AS tasks,
  sum(num_messages)::BIGINT AS messages, sum(num_tool_calls)::BIGINT AS calls,
  median(num_messages) AS median_messages, median(num_tool_calls) AS median_calls,
  count(*) FILTER (num_user_turns > 1) AS several_user_turns,
  count(*) FILTER (num_recovered > 0) AS recovered
FROM exported JOIN trajectories USING (trajectory_id)"""

_FROM = "FROM exported JOIN trajectories USING (trajectory_id)"
_VERDICTS = """FROM (SELECT DISTINCT trajectory_id, checker_version
    FROM exported JOIN trajectories USING (trajectory_id) JOIN verdicts
      USING (trajectory_id, grading_id) WHERE checked_by = 'judge')"""

_MODELS = f"""
SELECT part, model, count(*) AS rows FROM (
  SELECT e.key AS part, e.value->>'$' AS model {_FROM}, json_each(models) AS e
  UNION ALL SELECT 'writer of tasks', k.model {_FROM} JOIN tasks AS k USING (task_id)
  UNION ALL SELECT 'writer of agents', a.model {_FROM} JOIN agents AS a USING (agent_id)
  UNION ALL SELECT 'writer of personas', p.model {_FROM} JOIN personas AS p USING (persona_id)
  UNION ALL SELECT 'judge', regexp_replace(checker_version, '@[^@]*$', '') {_VERDICTS}
) WHERE model IS NOT NULL GROUP BY ALL ORDER BY part, model"""

_PROMPTS = f"""
SELECT prompt, version, count(*) AS rows FROM (
  SELECT e.key AS prompt, e.value->>'$' AS version {_FROM}, json_each(prompt_versions) AS e
  UNION ALL SELECT 'tasks', k.prompt_version {_FROM} JOIN tasks AS k USING (task_id)
  UNION ALL SELECT 'agents', a.prompt_version {_FROM} JOIN agents AS a USING (agent_id)
  UNION ALL SELECT 'personas', p.prompt_version {_FROM} JOIN personas AS p USING (persona_id)
  UNION ALL SELECT 'judge', regexp_extract(checker_version, '@([^@]*)$', 1) {_VERDICTS}
) WHERE version IS NOT NULL GROUP BY ALL ORDER BY prompt, version"""

_ENVIRONMENTS = """
SELECT coalesce(t.server, d.name, t.domain_id, '?') AS name,
  CASE WHEN t.server IS NULL THEN coalesce(d.category, '?') ELSE 'MCP server' END AS kind,
  count(*) AS rows
FROM exported JOIN trajectories AS t USING (trajectory_id) LEFT JOIN domains AS d USING (domain_id)
GROUP BY ALL ORDER BY rows DESC, name"""

# users without a language were made before they had one
_LANGUAGES = """
SELECT CASE WHEN p.persona_id IS NULL THEN 'not known' ELSE coalesce(language, 'English') END
    AS language,
  count(*) AS rows
FROM exported JOIN trajectories USING (trajectory_id) LEFT JOIN personas AS p USING (persona_id)
GROUP BY ALL ORDER BY rows DESC, language"""

# an agent that the dataset does not hold counts as one tool
_LICENSES = """
WITH shown AS (SELECT DISTINCT agent_id FROM exported JOIN trajectories USING (trajectory_id)),
tools_shown AS (
  SELECT DISTINCT coalesce(nullif(t.license, ''), 'unknown') AS license, own.tool_id
  FROM (SELECT unnest(tool_ids) AS tool_id FROM shown JOIN agents USING (agent_id)) AS own
    LEFT JOIN tools AS t USING (tool_id)
  UNION ALL SELECT 'unknown', agent_id FROM shown ANTI JOIN agents USING (agent_id))
SELECT license, rows, coalesce(tools, 0) AS tools
FROM (SELECT license, count(*) AS rows
    FROM (SELECT unnest(tool_licenses) AS license FROM exported) GROUP BY ALL)
  LEFT JOIN (SELECT license, count(*) AS tools FROM tools_shown GROUP BY ALL) USING (license)
ORDER BY rows DESC, license"""

_IMPORTED = """
SELECT format, license, count(*) AS rows, list_sort(list_distinct(flatten(list(lacks)))) AS lacks
FROM exported JOIN imports USING (trajectory_id) GROUP BY ALL ORDER BY rows DESC, format, license"""

# joined with the view itself, DuckDB 2 makes a product of both
_CONFIGS = f"""
WITH made AS MATERIALIZED (
  SELECT trajectory_id, curation_id, run_id {_FROM})
SELECT run_id, kind, config, versions FROM runs
WHERE event = 'started' AND (run_id IN (SELECT run_id FROM made) OR run_id IN (
  SELECT c.run_id FROM curation AS c JOIN made USING (trajectory_id, curation_id)))
ORDER BY happened_at"""
"""Of the runs that made the trajectories, and of those that curated them last."""
