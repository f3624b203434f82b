"""What each world of a dataset yields: accepted trajectories, and those that change state twice.

    synth run configs/worlds.toml --dataset DATASET
    python -m benchmarks.world_yield DATASET [--least 3] [--changes 2]

A world counts when at least `--least` of its accepted trajectories are of solvable tasks and have
`--changes` calls of the agent that change state. What a job changes is no call's doing.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

from records.store.dataset import Dataset

QUERY = """
with changes as (
    select trajectory_id, count(*) as num_changes
    from tool_calls
    where actor = 'agent' and exists (
        select 1 from unnest(state_diff::json[]) as change(entry) where entry->>'job' is null
    )
    group by trajectory_id
)
select
    domains.category,
    domains.name,
    count(*) as made,
    count(*) filter (trajectories.accepted) as accepted,
    count(*) filter (
        trajectories.accepted and tasks.solvable and coalesce(num_changes, 0) >= ?
    ) as changing,
    round(avg(trajectories.num_tool_calls) filter (trajectories.accepted), 1) as calls
from trajectories
join tasks using (task_id)
join domains on domains.domain_id = trajectories.domain_id
left join changes using (trajectory_id)
group by all
order by changing, accepted, domains.name
"""


class WorldYield(NamedTuple):
    category: str
    name: str
    made: int
    accepted: int
    changing: int
    """Accepted, of solvable tasks, with as many changing calls as were asked for."""
    calls: float | None
    """On average, of accepted trajectories."""


def yields_of(dataset: Dataset, changes: int) -> list[WorldYield]:
    """One for each world that has a trajectory, the poorest first."""
    return [WorldYield(*row) for row in dataset.connect().execute(QUERY, [changes]).fetchall()]


def report(found: list[WorldYield], least: int, changes: int) -> str:
    lines = [f"{'world':<28} {'category':<32} made  accepted  {changes}+ changes  calls"]
    lines += [
        f"{w.name:<28} {w.category:<32} {w.made:>4}  {w.accepted:>8}  {w.changing:>10}"
        f"  {'' if w.calls is None else w.calls:>5}"
        for w in found
    ]
    made, accepted = sum(w.made for w in found), sum(w.accepted for w in found)
    some = sum(w.accepted >= least for w in found)
    enough = sum(w.changing >= least for w in found)
    lines += [
        f"{accepted} of {made} trajectories accepted in {len(found)} worlds",
        f"at least {least} accepted: {some} of {len(found)} worlds",
        f"at least {least} accepted with {changes} calls that change state: "
        f"{enough} of {len(found)} worlds",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--least", type=int, default=3, help="accepted trajectories a world needs")
    parser.add_argument("--changes", type=int, default=2, help="calls that change state in each")
    args = parser.parse_args()
    print(report(yields_of(Dataset.open(args.dataset), args.changes), args.least, args.changes))


if __name__ == "__main__":
    main()
