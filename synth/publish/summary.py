"""What a dataset holds, in numbers: SQL over its views, one query a section of the report.

Everything is counted over the committed rows and the newest curation. Texts in the result come
from models and tools: whoever shows them makes them safe (synth.render.foreign_text, autoescape).
"""

from dataclasses import dataclass
from typing import Any

import duckdb

from records.model_names import OFFLINE_MODEL
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.injected_rates import injected_rates
from synth.episode.tools.state_accuracy import state_accuracy
from synth.judging.judge_rates import kappa
from synth.judging.judge_report import JudgeReport, judge_report
from synth.publish.decisions import Decisions, decisions
from synth.publish.pass_rates import pass_rates
from synth.publish.regrading import Regrading, regrading
from synth.publish.rows import rows_of
from synth.publish.spending import Spending, spending
from synth.render.clusters import ClusterFigure, cluster_figures
from synth.render.intervals import wilson
from synth.render.yields import yields

TOP_TOOLS = 20
"""Most used tools that are listed by name; the rest is counted."""


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    dataset: str
    """Name of the dataset's folder."""
    offline_model: bool
    """Some text was written by the offline model: its numbers say so wherever they stand."""
    totals: Row
    yields: list[Row]
    """A stage each: requested = kept + dropped + failed + pending; `reasons` counts the others."""
    outcomes: list[Row]
    terminations: list[Row]
    drops: list[Row]
    variants: list[Row]
    complexity: list[Row]
    """Declared complexity of the tasks against what was measured of them: `n`, and means of steps,
    dependencies between calls, hidden facts, policy rules and distractor tools; how many plans are
    the search's, how many tasks hold a user goal that is proved out of reach."""
    pass_rates: list[Row]
    """How often the agent passes tasks of a kind, what is surely hard first."""
    environments: list[Row]
    """A domain or MCP server each."""
    tools: list[Row]
    num_tools_called: int
    distributions: dict[str, list[Row]]
    """Of the accepted trajectories: messages, tool calls and user turns, as value and count."""
    errors: list[Row]
    recovery: list[Row]
    """Of the trajectories that met a kind of fault, those that recovered from all of that kind:
    `met`, `recovered`, `share`, `low` and `high` of its 95% interval, `passed` (code's verdict)."""
    injected: list[Row]
    """How often each injected outcome befell a call, of the calls that could have it."""
    user_faults: list[Row]
    """What simulated users did wrong by kind: `faults` that were sure, `doubts` that were not,
    `trajectories` that met a sure one and `share` of all, `ended` (those of them that ended as the
    user's error)."""
    spending: Spending
    """Tokens and cost by role and model, and requests that did not go well."""
    decisions: Decisions
    """By which rule and whose word trajectories were accepted, and what was rejected."""
    regrading: Regrading | None
    """What the newest grading decided otherwise than the one before it."""
    agreement: list[Row]
    """The judge against the code's checks by kind, where both decided the same criterion: in older
    gradings, and where the judge was asked about what code rejects."""
    judge: JudgeReport
    """The judge on perturbed negatives and against people's labels."""
    simulated: list[Row]
    """State accuracy of model-simulated tools, by number of fields that a call really changes."""
    notes: list[Row]
    """What runs counted besides failures, such as replay_drift."""
    cluster: list[ClusterFigure]
    """Claims, waits and failures of sandboxes on a cluster; empty where all were on this machine.
    """

    @property
    def label(self) -> str:
        """What quality figures carry where the offline model played: its name."""
        return "offline model" if self.offline_model else ""


def summarise(dataset: Dataset) -> DatasetSummary:
    """All sections; empty ones for a dataset without trajectories. A trajectory is an episode:
    conversations of sub-agents count with the one that they are of."""
    with dataset.connect() as db:
        db.execute(_EPISODES)
        tools = _rows(db, _TOOLS)
        [totals] = _rows(db, _TOTALS)
        spent = spending(db, accepted=totals["accepted"])
        models = {model for (model,) in db.execute(_MODELS).fetchall()}
        return DatasetSummary(
            dataset=dataset.root.name,
            offline_model=any(model.startswith(OFFLINE_MODEL) for model in models if model),
            totals=_totals(db, totals, spent),
            yields=yields(dataset),
            outcomes=_rows(db, _count("outcome")),
            terminations=_rows(db, _count("termination_reason")),
            drops=_rows(db, _count("drop_reason", "accepted = false")),
            variants=_rows(db, _VARIANTS),
            complexity=_rows(db, _COMPLEXITY),
            pass_rates=pass_rates(db),
            environments=_rows(db, _ENVIRONMENTS),
            tools=tools[:TOP_TOOLS],
            num_tools_called=len(tools),
            distributions={
                name: _rows(db, _DISTRIBUTION.format(column=column))
                for name, column in _DISTRIBUTED.items()
            },
            errors=_rows(db, _ERRORS),
            recovery=recovery_rates(db),
            injected=injected_rates(dataset),
            user_faults=user_fault_rates(db),
            spending=spent,
            decisions=decisions(db),
            regrading=regrading(dataset, db),
            agreement=[_agreement(row) for row in _rows(db, _CONFUSION)],
            judge=judge_report(dataset),
            simulated=state_accuracy(db),
            notes=_rows(db, _NOTES),
            cluster=cluster_figures(db),
        )


def recovery_rates(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """As `DatasetSummary.recovery`: by what an agent may recover from, over all trajectories."""
    found = []
    for row in _rows(db, _RECOVERY):
        low, high = wilson(row["recovered"], row["met"])
        found.append(row | {"share": row["recovered"] / row["met"], "low": low, "high": high})
    return found


def user_fault_rates(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """As `DatasetSummary.user_faults`."""
    [(n,)] = db.execute("SELECT count(*) FROM trajectories").fetchall()
    return [row | {"share": row["trajectories"] / n} for row in _rows(db, _USER_FAULTS)]


def _agreement(row: Row) -> Row:
    passed, failed = row["both"] + row["code_only"], row["judge_only"] + row["neither"]
    return row | {
        "n": passed + failed,
        "tpr": row["both"] / passed if passed else None,
        "tnr": row["neither"] / failed if failed else None,
        "kappa": kappa(row["both"], row["judge_only"], row["code_only"], row["neither"]),
    }


def _totals(db: duckdb.DuckDBPyConnection, totals: Row, spent: Spending) -> Row:
    [elapsed] = _rows(db, _ELAPSED)
    hours, accepted = (elapsed["seconds"] or 0.0) / 3600, totals["accepted"]
    return totals | {
        "hours": hours,
        "cost_usd": spent.cost_usd,
        "tokens": spent.tokens,
        "cost_per_accepted": spent.cost_usd / accepted if accepted else None,
        "accepted_per_hour": accepted / hours if hours else None,
    }


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    return [{name: _plain(value) for name, value in row.items()} for row in rows_of(db, query)]


def _plain(value: Any) -> Any:
    """Sums of integers come as 128 bit numbers; whole ones are integers again."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _count(column: str, condition: str = "true") -> str:
    return (
        f"SELECT {column} AS name, count(*) AS n FROM trajectories "
        f"WHERE {condition} AND {column} IS NOT NULL GROUP BY ALL ORDER BY n DESC, name"
    )


# the name is found before that of the whole view; an episode's counts are those of all its sessions
_COUNTS = (
    "num_messages",
    "num_turns",
    "num_user_turns",
    "num_tool_calls",
    "num_errors",
    "num_recovered",
)
_EPISODES = f"""
CREATE TEMP VIEW trajectories AS
SELECT t.* REPLACE ({", ".join(f"w.{count} AS {count}" for count in _COUNTS)})
FROM memory.main.trajectories AS t JOIN (
  SELECT coalesce(episode_id, trajectory_id) AS trajectory_id,
    {", ".join(f"sum({count})::INTEGER AS {count}" for count in _COUNTS)}
  FROM memory.main.trajectories WHERE parent_call_id IS NULL GROUP BY ALL) AS w
  ON w.trajectory_id = t.trajectory_id
WHERE t.parent_call_id IS NULL AND coalesce(t.session, 0) = 0"""

_TOTALS = """
SELECT count(*) AS trajectories,
  count(*) FILTER (accepted) AS accepted,
  count(*) FILTER (accepted IS NOT NULL) AS curated,
  median(num_messages) FILTER (accepted) AS median_messages,
  median(num_tool_calls) FILTER (accepted) AS median_calls,
  count(*) FILTER (accepted AND num_user_turns > 1) AS several_turns,
  count(*) FILTER (accepted AND num_recovered > 0) AS recovered,
  count(*) FILTER (accepted AND split != 'train') AS held_out,
  count(*) FILTER (accepted AND server IS NOT NULL) AS on_servers,
  count(DISTINCT coalesce(server, domain_id)) FILTER (accepted) AS worlds,
  any_value(calling.turns) AS calling_turns, any_value(calling.several) AS several_calls
FROM trajectories, (
  SELECT count(*) AS turns, count(*) FILTER (calls > 1) AS several
  FROM (SELECT count(*) AS calls FROM tool_calls AS c JOIN trajectories AS t USING (trajectory_id)
        WHERE t.accepted AND c.actor = 'agent' AND c.parent_call_id IS NULL
        GROUP BY trajectory_id, c.turn)) AS calling"""

# an invocation that has not ended, or was killed, lasted at least until its last model call
_ELAPSED = """
SELECT sum(seconds) AS seconds FROM (
  SELECT date_diff('millisecond', min(happened_at), max(happened_at)) / 1000.0 AS seconds
  FROM (SELECT invocation_id, happened_at FROM runs
        UNION ALL SELECT invocation_id, max(started_at) FROM llm_calls GROUP BY invocation_id)
  GROUP BY invocation_id)"""

_MODELS = """
SELECT DISTINCT model FROM llm_calls
UNION SELECT DISTINCT unnest(json_extract_string(models, '$.*')) FROM trajectories
UNION SELECT DISTINCT model FROM tasks
UNION SELECT DISTINCT model FROM agents"""

_VARIANTS = """
SELECT variant AS name, count(*) AS n, count(*) FILTER (accepted) AS accepted
FROM trajectories WHERE variant IS NOT NULL GROUP BY ALL ORDER BY n DESC, name"""

_COMPLEXITY = """
SELECT complexity AS name, count(*) AS n, avg(num_steps) AS steps,
  avg(num_dependencies) AS dependencies, avg(num_hidden) AS hidden, avg(num_rules) AS rules,
  avg(num_distractors) AS distractors,
  count(*) FILTER (json_extract_string(proof, '$.plan') = 'search') AS searched,
  count(*) FILTER (json_exists(proof, '$.out_of_reach')) AS out_of_reach
FROM tasks GROUP BY ALL ORDER BY avg(num_steps), name"""

_ENVIRONMENTS = """
SELECT coalesce(t.server, d.name, t.domain_id, t.variant, '?') AS name,
  any_value(CASE WHEN t.server IS NULL THEN d.category ELSE 'MCP server' END) AS category,
  coalesce(any_value(d.split), CASE WHEN bool_and(t.split = 'heldout_domain')
    THEN 'heldout_domain' ELSE 'train' END) AS split,
  count(*) AS n, count(*) FILTER (accepted) AS accepted,
  median(num_messages) AS messages, median(num_tool_calls) AS calls,
  sum(num_errors) AS errors
FROM trajectories AS t LEFT JOIN domains AS d USING (domain_id)
GROUP BY ALL ORDER BY accepted DESC, n DESC, name"""

_TOOLS = """
SELECT name, count(*) AS n, count(DISTINCT trajectory_id) AS trajectories,
  count(*) FILTER (is_error) AS errors,
  coalesce(string_agg(DISTINCT executed_by, ', ' ORDER BY executed_by), 'nothing') AS executed_by
FROM tool_calls GROUP BY ALL ORDER BY n DESC, name"""

_DISTRIBUTED = {
    "Messages": "num_messages",
    "Tool calls": "num_tool_calls",
    "User turns": "num_user_turns",
}
_DISTRIBUTION = """
SELECT {column} AS value, count(*) AS n FROM trajectories
WHERE accepted GROUP BY ALL ORDER BY value"""

_ERRORS = """
SELECT kind, injected, count(*) AS n, count(DISTINCT trajectory_id) AS trajectories,
  count(*) FILTER (is_error) AS errors,
  count(*) FILTER (is_error AND recovered) AS recovered
FROM (
  SELECT trajectory_id, is_error, injected_outcome IS NOT NULL AS injected,
    coalesce(injected_outcome, error_code, 'error') AS kind,
    coalesce(recovered, false) AS recovered
  FROM tool_calls WHERE actor = 'agent')
WHERE is_error OR injected GROUP BY ALL ORDER BY injected DESC, n DESC, kind"""

_RECOVERY = """
SELECT kind, count(*) AS met, count(*) FILTER (recovered) AS recovered,
  sum(calls)::BIGINT AS calls, count(*) FILTER (passed) AS passed
FROM (
  SELECT trajectory_id, count(*) AS calls, bool_and(tool_calls.recovered) AS recovered,
    any_value(outcome) = 'passed' AS passed,
    CASE WHEN injected_outcome IS NOT NULL THEN injected_outcome
      WHEN error_code IN ('invalid_arguments', 'unknown_tool', 'too_many_calls') THEN 'wrong form'
      ELSE 'a tool''s own error' END AS kind
  FROM tool_calls JOIN trajectories USING (trajectory_id)
  WHERE tool_calls.recovered IS NOT NULL GROUP BY trajectory_id, kind)
GROUP BY kind ORDER BY kind"""

_USER_FAULTS = """
SELECT kind, count(*) FILTER (sure) AS faults, count(*) FILTER (NOT sure) AS doubts,
  count(DISTINCT trajectory_id) FILTER (sure) AS trajectories,
  count(DISTINCT trajectory_id) FILTER (sure AND termination_reason = 'user_error') AS ended
FROM (
  SELECT trajectory_id, termination_reason, fault->>'$.kind' AS kind,
    coalesce(fault->>'$.is_sure', 'true') = 'true' AS sure
  FROM (SELECT trajectory_id, termination_reason, unnest(CAST(user_faults AS JSON[])) AS fault
    FROM trajectories))
GROUP BY kind ORDER BY faults DESC, doubts DESC, kind"""

_CONFUSION = """
SELECT kind,
  count(*) FILTER (code AND judge) AS both,
  count(*) FILTER (NOT code AND judge) AS judge_only,
  count(*) FILTER (code AND NOT judge) AS code_only,
  count(*) FILTER (NOT code AND NOT judge) AS neither
FROM (
  -- by groups: DuckDB's join of the table with itself takes gigabytes for 6,000 trajectories
  SELECT any_value(kind) FILTER (checked_by = 'code') AS kind,
    any_value(passed) FILTER (checked_by = 'code') AS code,
    any_value(passed) FILTER (checked_by = 'judge') AS judge
  FROM verdicts SEMI JOIN trajectories USING (grading_id, trajectory_id)
  GROUP BY grading_id, trajectory_id, criterion_id)
WHERE code IS NOT NULL AND judge IS NOT NULL
GROUP BY ALL ORDER BY kind"""

_NOTES = """
SELECT stage, name, sum(count)::BIGINT AS n FROM timings
WHERE name != 'shard' AND name NOT LIKE 'sandboxes:%' AND name NOT LIKE 'cluster:%'
GROUP BY ALL HAVING n > 0 ORDER BY stage, name"""
