"""Curation of rows at hand, as the stage does it with those of a dataset."""

from collections import defaultdict
from collections.abc import Iterable

from records.tables.schemas import Row
from synth.curation.candidates import candidate_of
from synth.curation.deciding import CurationRules, decide_all
from synth.curation.settings.config import CurationConfig


def curate(
    *,
    grading_id: str,
    trajectories: Iterable[Row],
    tool_calls: Iterable[Row],
    verdicts: Iterable[Row],
    tasks: Iterable[Row],
    config: CurationConfig = CurationConfig(),
) -> list[Row]:
    """One `curation` row for each trajectory, sorted by id.

    Left out are those that this grading has yet to judge; `verdicts` hold one grading only.
    """
    calls, graded = _by_trajectory(tool_calls), _by_trajectory(verdicts)
    task_of = {task["task_id"]: task for task in tasks}
    candidates = (
        candidate_of(
            t, calls[t["trajectory_id"]], graded[t["trajectory_id"]], task_of[t["task_id"]]
        )
        for t in trajectories
    )
    return decide_all((c for c in candidates if c), CurationRules(grading_id, config))


def _by_trajectory(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["trajectory_id"]].append(row)
    return groups
