"""Which trajectories are exported, decided before any conversation is read.

A row is exported when it was accepted, by a judge's word beside code's (what code alone accepted
needs a flag), may be trained on (held-out rows need a flag, and get splits of their own) and shows
only tools of known licence (others need a flag). The rest is counted by reason.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import duckdb

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.judging.judge_report import calibrated_gradings

UNKNOWN = "unknown"
"""Licence of a tool that states none."""


class Selection(NamedTuple):
    num_chosen: int
    left_out: Counter[str]
    """Trajectories that are not chosen, by reason."""
    calibrated: list[str]
    """Gradings whose judge may be called calibrated."""


def select(
    dataset: Dataset,
    db: duckdb.DuckDBPyConnection,
    *,
    include_heldout: bool,
    include_unknown_license: bool,
    include_code_alone: bool,
) -> Selection:
    """Every trajectory of the dataset, which `db` is connected to, chosen or counted by the reason
    why it is not. A curation that did not note whose word decided leaves nothing out for that.

    Makes two tables, since ids of a hundred thousand would fill the memory: `chosen` with the split
    and the place within it of each, and `failed`, the rejected that nothing but the agent's own
    failure keeps out; both with the licences of the tools that a trajectory shows, sorted.
    """
    allowed = [include_code_alone, include_heldout, include_unknown_license]
    db.execute(f"CREATE TEMP TABLE looked_at AS {_LOOKED_AT}", allowed)
    db.execute(f"CREATE TEMP TABLE chosen AS {_CHOSEN}")
    db.execute(f"CREATE TEMP TABLE failed AS {_FAILED}")
    left_out = Counter(dict(db.execute(_LEFT_OUT).fetchall()))
    [(num_chosen,)] = db.execute("SELECT count(*) FROM chosen").fetchall()
    db.execute("DROP TABLE looked_at")
    if not num_chosen:
        raise ConfigError(nothing_left("trajectory", dataset, left_out))
    return Selection(num_chosen, left_out, calibrated_gradings(db))


# of an agent that the dataset does not hold nobody knows the tools
_LOOKED_AT = f"""
WITH licenses AS (
  SELECT agent_id, list_sort(list_distinct(list(
    coalesce(nullif(license, ''), '{UNKNOWN}')))) AS tool_licenses
  FROM (SELECT agent_id, unnest(tool_ids) AS tool_id FROM agents) LEFT JOIN tools USING (tool_id)
  GROUP BY agent_id),
imported AS (SELECT trajectory_id, min(license) AS license FROM imports GROUP BY trajectory_id),
shown AS (
  SELECT trajectory_id, split, accepted, decided_by, attributed_to, imported.license,
    CASE WHEN known.agent_id IS NULL THEN ['{UNKNOWN}']
      ELSE coalesce(tool_licenses, []) END AS tool_licenses
  FROM trajectories LEFT JOIN imported USING (trajectory_id)
    LEFT JOIN (SELECT agent_id FROM agents) AS known USING (agent_id)
    LEFT JOIN licenses USING (agent_id))
SELECT trajectory_id, split, tool_licenses, accepted, attributed_to,
  CASE WHEN decided_by = 'code' AND accepted AND NOT $1 THEN 'code_alone'
    WHEN split IS NULL OR (split != 'train' AND NOT $2) THEN 'held_out'
    WHEN (license = '{UNKNOWN}' OR list_contains(tool_licenses, '{UNKNOWN}')) AND NOT $3
      THEN 'unknown_license' END AS kept_out
FROM shown"""

_CHOSEN = """
SELECT trajectory_id, split AS chosen_split, tool_licenses,
  row_number() OVER (PARTITION BY split ORDER BY trajectory_id) - 1 AS place
FROM looked_at WHERE accepted AND kept_out IS NULL"""

_FAILED = """
SELECT trajectory_id, tool_licenses FROM looked_at
WHERE accepted = false AND attributed_to = 'agent' AND kept_out IS NULL"""

_LEFT_OUT = """
SELECT CASE WHEN accepted IS NOT TRUE THEN 'not_accepted' ELSE kept_out END AS reason, count(*)
FROM looked_at WHERE reason IS NOT NULL GROUP BY reason ORDER BY min(trajectory_id)"""

_LET_IN = {
    "flagged": "--include-flagged",
    "code_alone": "--include-code-alone",
    "held_out": "--include-heldout",
    "unknown_license": "--include-unknown-license",
}
"""Reason for which a row is left out -> the option that lets it in."""


def nothing_left(what: str, dataset: Dataset, left_out: Mapping[str, int]) -> str:
    """The error where no `what` of a dataset is left to export, with the options that would help;
    `left_out`: how many by reason."""
    counts = ", ".join(f"{n} {reason}" for reason, n in left_out.items()) or "there is none"
    advice = [option for reason, option in _LET_IN.items() if reason in left_out]
    return f"no {what} of {dataset.root} can be exported: {counts}" + (
        f"; to let some in, add {' or '.join(advice)}" if advice else ""
    )
