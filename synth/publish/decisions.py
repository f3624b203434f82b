"""How trajectories were decided: the rule, whose word it was, what was rejected and why.

Everything is counted over the newest curation. Texts come from models and configs: whoever shows
them makes them safe (synth.render.foreign_text, autoescape).
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb

from records.tables.schemas import Row
from synth.curation.deciding import IN_EVALUATION, PASSED_GRADING
from synth.judging.decision import DecisionConfig
from synth.publish.rows import rows_of
from synth.render.figures import percent
from synth.rubrics.criteria import JUDGED, Rubric

PARTIES = ("agent", "user", "simulator", "environment", "task", "endpoint", "undetermined")
"""Whom a rejection may go back to (`curation.attributed_to`)."""

FATES = (*PARTIES, "nobody", "not noted")
"""Nobody: duplicates, what exceeds a quota, lies outside the band or is in an evaluation.
Not noted: by curations of earlier versions."""


AT_A_TIME = 10_000
"""Trajectories whose verdicts one query looks at."""


class DecisionRule(NamedTuple):
    """Of the run that made the newest curation."""

    config: DecisionConfig
    patched_threshold: float | None
    """Of `judging.rubric`, which stands in for what the tasks' rubrics say."""

    def threshold(self, rubric: Mapping[str, Any]) -> float:
        """The score from which a trajectory of a task with this rubric is accepted."""
        if self.config.pass_threshold is not None:
            return self.config.pass_threshold
        if self.patched_threshold is not None:
            return self.patched_threshold
        return float(rubric.get("pass_threshold", Rubric.model_fields["pass_threshold"].default))


@dataclass(frozen=True, slots=True)
class Decisions:
    rule: DecisionRule
    thresholds: list[Row]
    """Scores from which trajectories are accepted: `threshold`, and `n` trajectories."""
    criteria: list[Row]
    """What was decided, by `name`: a kind of criterion, or the id of one that only a judge can
    tell. How often `code` and the `judge` decided it, how often it `passed`, whether it `decides`
    or is scored: yes, no or in part."""
    decided_by: list[Row]
    """`name`, `n` trajectories and those of them that are `accepted`."""
    judged: int
    """Trajectories that a judge looked at, as far as it is noted who it was."""
    self_judged: int
    """Those of them whose judge is the model that played the agent."""
    rejected: list[Row]
    """By `reason` and `criterion`: `n`, and one number for each of `FATES`."""
    parties: list[Row]
    """The rejected by whose failure it is: `name` and `n`, the agent first."""

    @property
    def code_alone(self) -> int:
        """Accepted trajectories that `sft` and exports leave out."""
        return sum(row["accepted"] for row in self.decided_by if row["name"] == "code")

    @property
    def self_judged_words(self) -> str:
        if not self.judged:
            return "Self-judged: not noted."
        share = percent(self.self_judged, self.judged)
        return f"Self-judged: {self.self_judged} of {self.judged} that a judge looked at ({share})."

    @property
    def threshold_words(self) -> str:
        return ", ".join(f"{row['threshold']:g} ({row['n']:,})" for row in self.thresholds) or "-"


def decisions(db: duckdb.DuckDBPyConnection) -> Decisions:
    rule = decision_rule(db)
    [judged] = rows_of(db, _JUDGED)
    rejected = rows_of(db, _REJECTED)
    parties = {party: sum(row[party] for row in rejected) for party in FATES}
    return Decisions(
        rule=rule,
        thresholds=_thresholds(db, rule),
        criteria=[_criterion(row, rule) for row in _criteria(db)],
        decided_by=rows_of(db, _DECIDED_BY),
        judged=judged["judged"],
        self_judged=judged["self_judged"],
        rejected=rejected,
        parties=[{"name": party, "n": n} for party, n in parties.items() if n],
    )


def decision_rule(db: duckdb.DuckDBPyConnection) -> DecisionRule:
    """As the newest run that curated was told."""
    found = db.execute(_RULE).fetchone()
    judging = (json.loads(found[0] or "{}").get("judging") or {}) if found else {}
    patch = judging.get("rubric") or {}
    return DecisionRule(
        DecisionConfig.model_validate(judging.get("decision") or {}), patch.get("pass_threshold")
    )


def _thresholds(db: duckdb.DuckDBPyConnection, rule: DecisionRule) -> list[Row]:
    counts: dict[float, int] = {}
    for row in rows_of(db, _RUBRICS):
        own = {} if row["pass_threshold"] is None else {"pass_threshold": row["pass_threshold"]}
        threshold = rule.threshold(own)
        counts[threshold] = counts.get(threshold, 0) + row["n"]
    return [{"threshold": threshold, "n": n} for threshold, n in sorted(counts.items())]


def _criteria(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """What decides first. Some trajectories at a time: to find the verdict that counts, DuckDB
    holds every verdict that it looks at: 300 MB for 100,000 trajectories."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for first, last in db.execute(_RANGES, [AT_A_TIME]).fetchall():
        for row in rows_of(db, _CRITERIA, [first, last]):
            found.setdefault((row.pop("name"), row.pop("kind")), Counter()).update(row)
    rows = [{"name": name, "kind": kind, **counts} for (name, kind), counts in found.items()]
    return sorted(rows, key=lambda r: (not r["mandatory"], r["kind"] == JUDGED, r["name"]))


def _criterion(row: Row, rule: DecisionRule) -> Row:
    aside = not {row["kind"], row["name"]}.isdisjoint(rule.config.scored_only)
    deciding = 0 if aside else row["mandatory"]
    in_part = "in part" if deciding else "no, scored"
    return row | {"decides": "yes" if deciding == row["n"] else in_part}


# joined with the view itself, DuckDB 2 makes a product of both: 3 GB for 5,000 trajectories
_RULE = """
WITH newest AS MATERIALIZED (SELECT trajectory_id, curation_id FROM trajectories)
SELECT config FROM runs WHERE event = 'started' AND run_id IN (
  SELECT c.run_id FROM curation AS c JOIN newest USING (trajectory_id, curation_id))
ORDER BY happened_at DESC LIMIT 1"""

_RUBRICS = """
SELECT json_extract(rubric, '$.pass_threshold')::DOUBLE AS pass_threshold, count(*) AS n
FROM trajectories JOIN tasks USING (task_id)
WHERE accepted IS NOT NULL AND parent_call_id IS NULL AND coalesce(session, 0) = 0
GROUP BY ALL ORDER BY ALL"""

# 'code' comes before 'judge', so of a criterion code's verdict counts where it has one. Joined with
# the view itself, DuckDB 2 makes a product of both for this condition: 20 GB for 87,000 verdicts
_CRITERIA = f"""
WITH decided AS MATERIALIZED (
  SELECT trajectory_id, grading_id, decided_by FROM trajectories
  WHERE trajectory_id BETWEEN $1 AND $2)
SELECT CASE WHEN kind = '{JUDGED}' THEN criterion_id ELSE kind END AS name, kind, count(*) AS n,
  count(*) FILTER (checked_by = 'code') AS code, count(*) FILTER (checked_by = 'judge') AS judge,
  count(*) FILTER (passed) AS passed, count(*) FILTER (mandatory) AS mandatory
FROM (
  SELECT criterion_id, v.kind, checked_by, mandatory, passed
  FROM verdicts AS v JOIN decided USING (trajectory_id, grading_id)
  WHERE passed IS NOT NULL AND v.trajectory_id BETWEEN $1 AND $2
    AND (checked_by = 'code' OR (checked_by = 'judge' AND decided_by IS DISTINCT FROM 'code'))
  QUALIFY row_number() OVER (PARTITION BY trajectory_id, criterion_id ORDER BY checked_by) = 1)
GROUP BY name, kind"""

_RANGES = """
SELECT min(trajectory_id), max(trajectory_id)
FROM (SELECT trajectory_id, row_number() OVER (ORDER BY trajectory_id) - 1 AS place
  FROM trajectories)
GROUP BY place // $1 ORDER BY ALL"""
"""Of ids, with so many trajectories in each."""

_DECIDED_BY = """
SELECT coalesce(decided_by, 'not noted') AS name, count(*) AS n,
  count(*) FILTER (accepted) AS accepted
FROM trajectories
WHERE accepted IS NOT NULL AND parent_call_id IS NULL AND coalesce(session, 0) = 0
GROUP BY ALL ORDER BY n DESC, name"""

_JUDGED = """
SELECT count(*) AS judged, count(*) FILTER (self_judged) AS self_judged
FROM trajectories
WHERE parent_call_id IS NULL AND coalesce(session, 0) = 0 AND judge_status IS NOT NULL
  AND self_judged IS NOT NULL"""

NO_FAILURE = (*PASSED_GRADING, IN_EVALUATION)
"""Drop reasons that are nobody's failure."""

_REJECTED = f"""
SELECT drop_reason AS reason, coalesce(failed_criterion, '') AS criterion, count(*) AS n,
  {", ".join(f"count(*) FILTER (attributed_to = '{party}') AS {party}" for party in PARTIES)},
  count(*) FILTER (attributed_to IS NULL AND drop_reason IN {NO_FAILURE}) AS nobody,
  count(*) FILTER (attributed_to IS NULL AND drop_reason NOT IN {NO_FAILURE}) AS "not noted"
FROM trajectories
WHERE accepted = false AND parent_call_id IS NULL AND coalesce(session, 0) = 0
GROUP BY ALL ORDER BY n DESC, reason, criterion"""
