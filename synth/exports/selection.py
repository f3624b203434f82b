"""Which trajectories are exported, decided before any conversation is read.

A row is exported when it was accepted, by a judge's word beside code's (what code alone accepted
needs a flag), may be trained on (held-out rows need a flag, and get splits of their own) and shows
only tools of known licence (others need a flag). The rest is counted by reason.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import STR, STRS
from records.tables.splits import SPLITS
from synth.judging.judge_report import calibrated_gradings

UNKNOWN = "unknown"
"""Licence of a tool that states none."""


@dataclass
class Selection:
    ids: dict[str, list[str]] = field(default_factory=dict)
    """Trajectory ids by split, in the order in which they are written; no split is empty."""
    licenses: dict[str, list[str]] = field(default_factory=dict)
    """Of each chosen or failed trajectory: the licences of the tools that it shows, sorted."""
    failed: list[str] = field(default_factory=list)
    """Of rejected trajectories those that nothing but the agent's own failure keeps out."""
    left_out: Counter[str] = field(default_factory=Counter)
    calibrated: list[str] = field(default_factory=list)
    """Gradings whose judge may be called calibrated."""

    def table(self) -> pa.Table:
        """Of the chosen: id, split, place within it, licences of tools."""
        chosen = [(i, split, at) for split, ids in self.ids.items() for at, i in enumerate(ids)]
        return pa.table(
            {
                "trajectory_id": pa.array([i for i, _, _ in chosen], STR),
                "chosen_split": pa.array([split for _, split, _ in chosen], STR),
                "place": pa.array([at for _, _, at in chosen], pa.int64()),
                "tool_licenses": pa.array([self.licenses[i] for i, _, _ in chosen], STRS),
            }
        )

    def failed_table(self) -> pa.Table:
        """Of the failed: id, licences of tools."""
        return pa.table(
            {
                "trajectory_id": pa.array(self.failed, STR),
                "tool_licenses": pa.array([self.licenses[i] for i in self.failed], STRS),
            }
        )


def select(
    dataset: Dataset,
    db: duckdb.DuckDBPyConnection,
    *,
    include_heldout: bool,
    include_unknown_license: bool,
    include_code_alone: bool,
) -> Selection:
    """Every trajectory of the dataset, which `db` is connected to, chosen or counted by the reason
    why it is not. A curation that did not note whose word decided leaves nothing out for that."""
    license_of = dict(db.execute("SELECT tool_id, license FROM tools").fetchall())
    tools_of = dict(db.execute("SELECT agent_id, tool_ids FROM agents").fetchall())
    rows = db.execute(_TRAJECTORIES).fetchall()
    selection = Selection({split: [] for split in SPLITS}, calibrated=calibrated_gradings(dataset))
    for trajectory_id, split, agent_id, accepted, decided_by, attributed_to, license in rows:
        # of an agent that the dataset does not hold nobody knows the tools
        tools = {i: license_of.get(i) or UNKNOWN for i in tools_of.get(agent_id, [f"? {agent_id}"])}
        kept_out = None
        if decided_by == "code" and accepted and not include_code_alone:
            kept_out = "code_alone"
        elif split != "train" and not include_heldout:
            kept_out = "held_out"
        elif UNKNOWN in (license, *tools.values()) and not include_unknown_license:
            kept_out = "unknown_license"
        if not accepted:
            selection.left_out["not_accepted"] += 1
            if accepted is False and attributed_to == "agent" and kept_out is None:
                selection.failed.append(trajectory_id)
        elif kept_out:
            selection.left_out[kept_out] += 1
            continue
        else:
            selection.ids[split].append(trajectory_id)
        selection.licenses[trajectory_id] = sorted(set(tools.values()))
    selection.ids = {split: ids for split, ids in selection.ids.items() if ids}
    if not selection.ids:
        raise ConfigError(nothing_left("trajectory", dataset, selection.left_out))
    return selection


_TRAJECTORIES = """
SELECT trajectory_id, split, agent_id, accepted, decided_by, attributed_to, i.license
FROM trajectories LEFT JOIN (
  SELECT trajectory_id, min(license) AS license FROM imports GROUP BY trajectory_id) AS i
  USING (trajectory_id)
ORDER BY trajectory_id"""

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
