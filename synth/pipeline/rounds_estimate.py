"""What rounds of harder and easier tasks will take, from the tasks that a pilot has measured."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from records.tables.schemas import Row
from synth.engine.run import Run
from synth.judging.stages import GradingStage
from synth.pipeline.config import RunConfig
from synth.pipeline.difficulty import DerivationStage, DifficultyStage
from synth.pipeline.estimated_usage import NOTHING, EstimatedUsage, StageRole, Units, sum_of
from synth.tasks.difficulty import DERIVATION, plan_derivations
from synth.tasks.operators import TOOLS_ALONE

TASKS = "tasks"


class RoundsEstimate(NamedTuple):
    tasks: float
    """Derived ones, of all rounds."""
    usage: Units


def rounds_of(
    run: Run[RunConfig], tasks: Units, paid: Mapping[str, dict[StageRole, EstimatedUsage]]
) -> RoundsEstimate | None:
    """What the derived tasks take: their words, attempts and verdicts. `tasks`: those that the run
    is planned with; `paid`: usage by item.

    A derived task takes what a task of the pilot takes, without its words where an operator keeps
    them. As many are expected as the pilot's own pass rates call for; the interval holds that there
    is none, and that every task gets one in every round. None for a run without rounds.
    """
    config = run.config.difficulty
    if not config.rounds or not tasks.known:
        return None
    made = None if tasks.left else _made(run, paid)
    if made is not None:
        return made
    share, worded = _derived_share(run, tasks)
    expected = sum(tasks.planned * share**number for number in range(1, config.rounds + 1))
    most = tasks.planned * config.rounds
    usage = _of_a_task(tasks, worded)
    half = max(expected, most - expected)
    units = Units(
        1,
        {"rounds": {place: used.times(expected) for place, used in usage.items()}},
        {place: used.times(half) for place, used in usage.items()},
    )
    return RoundsEstimate(expected, units)


def _made(
    run: Run[RunConfig], paid: Mapping[str, dict[StageRole, EstimatedUsage]]
) -> RoundsEstimate | None:
    """What the rounds took, where they are through."""
    measured = run.dataset.item_statuses("difficulty").keys()
    if not measured or not all(item.item_id in measured for item in DifficultyStage(run).plan()):
        return None
    done = run.dataset.item_statuses(DERIVATION).keys()
    if not all(item.item_id in done for item in DerivationStage(run).plan()):
        return None
    derived = set(run.ids_of(DERIVATION))
    columns = ("trajectory_id", "task_id")
    episodes = {
        row["trajectory_id"]
        for rows in run.dataset.in_commits("trajectories", columns)
        for row in rows
        if row["task_id"] in derived
    }
    gradings = {
        item.item_id for item in GradingStage(run).plan() if item.data["trajectory_id"] in episodes
    }
    items = [*derived, *episodes, *gradings]
    places = {place for item in items for place in paid.get(item, {})}
    used = {
        place: sum_of(paid.get(item, {}).get(place, NOTHING) for item in items) for place in places
    }
    return RoundsEstimate(len(derived), Units(1, {"rounds": used}))


def _derived_share(run: Run[RunConfig], tasks: Units) -> tuple[float, float]:
    """How many of the known tasks would get a child, and how many of these children new words."""
    stage = DifficultyStage(run)
    rows: list[Row] = [
        stage.measure(item) for item in stage.plan() if item.data["task_id"] in tasks.known
    ]
    children = plan_derivations(rows, run.config.difficulty, can_have=DerivationStage(run).can_have)
    kinds = Counter(child.operator in TOOLS_ALONE for child in children)
    worded = kinds[False] / len(children) if children else 0.0
    return len(children) / len(tasks.known), worded


def _of_a_task(tasks: Units, worded: float) -> dict[StageRole, EstimatedUsage]:
    """What a derived task takes on average, by place; `worded`: how many get new words."""
    found: dict[StageRole, EstimatedUsage] = {}
    for used in tasks.known.values():
        for (stage, role), usage in used.items():
            place, part = ((DERIVATION, role), worded) if stage == TASKS else ((stage, role), 1.0)
            found[place] = found.get(place, NOTHING).plus(usage.times(part / len(tasks.known)))
    return found
