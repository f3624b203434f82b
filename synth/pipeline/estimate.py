"""What a run will cost, from a pilot of its own items: really made, committed, and so not paid
twice. One exception: the pilot makes few agents, so it cannot know that one of them repeats another
that only the run makes. The tasks of such an agent are made again by the run, with the other.

A pilot makes some of the run's tasks, drawn by the run's id from all of them, with the agents and
personas that they need, and everything up to the verdicts on them. The unit that is drawn is the
task: what its making, its episodes and their grading took belongs together, so that tasks that are
dropped, long episodes and failed attempts count as they come. What the dataset already holds of the
run is known, and is no part of what is left to guess.
"""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from records.seeds import share_of
from records.tables.schemas import Row
from synth.engine.plans import StagePlan
from synth.engine.run import Run
from synth.engine.stages import Item, Stage
from synth.judging.calibration import num_perturbed
from synth.judging.perturbation.faults import BY_NAME
from synth.judging.perturbation.planning import MOST_ATTEMPTS, PARAPHRASED_SHARE
from synth.judging.perturbation.registry import PERTURBATIONS
from synth.judging.perturbation.writing import WRITTEN_BY
from synth.llm.settings.config import TokenUsage
from synth.pipeline.config import RunConfig
from synth.pipeline.estimated_usage import NOTHING, EstimatedUsage, StageRole, Units, sum_of
from synth.pipeline.rounds_estimate import rounds_of
from synth.pipeline.server_goals import ServerGoalsStage
from synth.pipeline.server_starts import ServerStartsStage
from synth.pipeline.stages import (
    AgentStage,
    CalibrationStage,
    CatalogueStage,
    GradingStage,
    PersonaStage,
    RolloutStage,
    TaskStage,
)
from synth.tasks.stage import persona_number

PROBE = "probe"
_LEDGER = [
    "stage",
    "item_id",
    "role",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "cache_hit",
    "run_id",
    "invocation_id",
]


GRADING: StageRole = ("grading", "judge")
CALIBRATION: StageRole = ("calibration", "judge")
WRITING: StageRole = ("calibration", WRITTEN_BY)


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """The whole run's usage in one stage by one role, or in all."""

    stage: str
    role: str
    spent: EstimatedUsage
    """By the ledger so far, whatever it was for."""
    expected: EstimatedUsage
    """Of the whole run, what is spent included."""
    low: EstimatedUsage
    high: EstimatedUsage
    """The whole run lies between them 19 times of 20."""


@dataclass(frozen=True, slots=True)
class Estimate:
    run_id: str
    num_tasks: int
    num_known: int
    """Tasks whose usage is complete: the pilot's, and those the run has made before."""
    lines: list[EstimateLine]
    total: EstimateLine
    rounds: EstimateLine | None
    """What of the total is for rounds of harder and easier tasks; None for a run without."""


class Pilot(NamedTuple):
    """The plans of the stages that a task's usage is counted by."""

    rollouts: StagePlan
    grading: StagePlan


def pilot_tasks(config: RunConfig, size: int) -> list[int]:
    """Numbers of the tasks that a pilot makes; a larger pilot holds every smaller one."""
    ranked = sorted(range(config.num_tasks), key=lambda i: share_of(config.run_id, f"pilot:{i}"))
    return sorted(ranked[:size])


async def make_pilot(run: Run[RunConfig], size: int) -> Pilot:
    """Make `size` of the run's tasks and all that hangs on them, up to the verdicts.

    Curation looks at the whole run and asks an embedder at most, whose cost is not estimated: it is
    left to the run. Raises BudgetError
    when the pilot does not fit; the same command goes on.
    """
    config, chosen = run.config, pilot_tasks(run.config, size)
    await _make(run, CatalogueStage(run))
    await _make(run, ServerStartsStage(run))
    await _make(run, ServerGoalsStage(run))
    numbers = {i // config.tasks.tasks_per_agent for i in chosen}
    await _make(run, AgentStage(run), numbers)
    await _make(run, PersonaStage(run), _personas_of(chosen, config))
    # tasks whose agents are not made yet have ids of no task to be
    tasks = await _make(run, TaskStage(run), chosen)
    rollouts = await _make(
        run, RolloutStage(run), of=lambda i: i.data["task"]["task_id"] in tasks.items
    )
    grading = await _make(
        run, GradingStage(run), of=lambda i: i.data["trajectory_id"] in rollouts.items
    )
    return Pilot(rollouts, grading)


def _personas_of(tasks: Iterable[int], config: RunConfig) -> set[int]:
    """Numbers of the personas that these tasks are for."""
    return {persona_number(i, config.seed, config.tasks) for i in tasks}


async def _make(
    run: Run[RunConfig],
    stage: Stage,
    numbers: Collection[int] | None = None,
    *,
    of: Callable[[Item], bool] = lambda item: True,
) -> StagePlan:
    """Every item with one of the numbers and of which `of` is true, by shards as in the run itself.
    Committed ones are left alone."""
    plan = await asyncio.to_thread(
        run.plan, stage, only=lambda n, item: (numbers is None or n in numbers) and of(item)
    )

    async def one(indexes: Sequence[int]) -> None:
        async with (
            run.turn(stage, plan, indexes),
            aclosing(run.run_shards(stage, plan, indexes)) as reports,
        ):
            async for _ in reports:
                pass

    made = await asyncio.gather(*map(one, run.requests(plan)), return_exceptions=True)
    if broken := [m for m in made if isinstance(m, BaseException)]:
        raise run.stop_reason or broken[0]
    return plan


def estimate(run: Run[RunConfig], pilot: Pilot) -> Estimate:
    """Of the whole run, from what the dataset holds of it; nothing is asked or made.

    What a call cost is what the ledger has of it, so an estimate holds at the prices that the pilot
    was paid at.
    """
    config = run.config
    paid, spent = _paid(run)
    agents, personas = set(run.ids_of("agents")), set(run.ids_of("personas"))
    statuses = run.dataset.item_statuses
    units = [
        Units(len(agents), _known(agents & statuses("agents").keys(), paid, "agents")),
        Units(len(personas), _known(personas & statuses("personas").keys(), paid, "personas")),
        Units(config.num_tasks, _known_tasks(run, pilot, paid)),
    ]
    tasks = units[-1]
    rounds = rounds_of(run, tasks, paid)
    units += _calibration(run, pilot, tasks, spent, derived=rounds.tasks if rounds else 0)
    units += [rounds.usage] if rounds else []
    probes = _probes_of(run)
    places = sorted(
        {place for unit in units for used in unit.known.values() for place in used}
        | spent.keys()
        | {CALIBRATION, WRITING},
        key=lambda place: (config.STAGES.index(place[0]) if place[0] != PROBE else -1, place[1]),
    )
    lines = [
        _line(place, units, spent.get(place, NOTHING), probes.get(place, NOTHING))
        for place in places
    ]
    total = _line(None, units, sum_of(spent.values()), sum_of(probes.values()))
    for_rounds = _line(None, [rounds.usage], NOTHING, NOTHING) if rounds else None
    return Estimate(run.run_id, config.num_tasks, len(tasks.known), lines, total, for_rounds)


def _calibration(
    run: Run[RunConfig],
    pilot: Pilot,
    tasks: Units,
    spent: Mapping[StageRole, EstimatedUsage],
    *,
    derived: float,
) -> list[Units]:
    """What trying the judge takes, the judge and the generator apart. For each perturbed negative
    and each paraphrase it is a judgement as large as those of grading, and for each attempt at one
    so many requests of that size to the generator, which writes and reads a second time. One
    attempt is needed at least and `MOST_ATTEMPTS` are made at most: the middle is reckoned, and the
    interval holds both. It looks at the whole run, so no pilot can make it."""
    done = run.dataset.item_statuses(CALIBRATION[0]).keys()
    if not tasks.left and {item.item_id for item in CalibrationStage(run).plan()} <= done:
        places = (CALIBRATION, WRITING)
        return [Units(1, {"calibration": {at: spent.get(at, NOTHING) for at in places}})]
    graded = _graded(run, pilot, tasks)
    judged, each = _judgements(run, graded)
    if not judged:
        return []
    expected = round(len(graded) / len(tasks.known) * (tasks.planned + derived))
    wanted = num_perturbed(expected, run.config.judging)
    controls = math.ceil(wanted * PARAPHRASED_SHARE)
    by_grading, half = tasks.total(GRADING)
    judging = each.times(wanted + controls)
    unsure = (x * h / g if g else 0.0 for x, h, g in zip(judging, half, by_grading, strict=True))

    written_share = len(BY_NAME) / len(PERTURBATIONS)  # the others are only read
    attempts = (1 + MOST_ATTEMPTS) / 2
    writing = each.times(attempts * (wanted * (1 + written_share) + controls * 2))
    usage = TokenUsage(round(writing.prompt_tokens), round(writing.completion_tokens))
    writing = writing._replace(usd=run.config.roles[WRITTEN_BY].cost_usd(usage))
    return [
        Units(1, {"calibration": {CALIBRATION: judging}}, {CALIBRATION: EstimatedUsage(*unsure)}),
        Units(1, {"calibration": {WRITING: writing}}, {WRITING: writing.times(1 - 1 / attempts)}),
    ]


def _graded(run: Run[RunConfig], pilot: Pilot, tasks: Units) -> list[str]:
    """Items of grading that gave verdicts on what the known tasks were rolled out to."""
    status = run.dataset.item_statuses(GRADING[0])
    episodes = {
        item.item_id
        for item in pilot.rollouts.planned
        if item.data["task"]["task_id"] in tasks.known
    }
    mine = (i.item_id for i in pilot.grading.planned if i.data["trajectory_id"] in episodes)
    return [i for i in mine if i in status and status[i].status == "kept"]


def _judgements(run: Run[RunConfig], items: Collection[str]) -> tuple[int, EstimatedUsage]:
    """How many of the items were judged, and what one took on average; questions for a cause alone
    are none."""
    with run.dataset.connect(("llm_calls",)) as db:
        [found] = db.execute(_JUDGEMENTS, [*GRADING, list(items)]).fetchall()
    judged, *sums = found
    return judged, EstimatedUsage(*sums).times(1 / max(1, judged))


_JUDGEMENTS = """
SELECT count(DISTINCT item_id), count(*), coalesce(sum(prompt_tokens), 0),
  coalesce(sum(completion_tokens), 0), coalesce(sum(cost_usd), 0)
FROM llm_calls
WHERE stage = $1 AND role = $2 AND step LIKE 'judge%' AND NOT cache_hit
  AND list_contains($3, item_id)"""


def _line(
    place: StageRole | None, units: Sequence[Units], spent: EstimatedUsage, probes: EstimatedUsage
) -> EstimateLine:
    """`probes`: what the checks of endpoints have cost and will."""
    expected, variance = probes, NOTHING
    for unit in units:
        mean, half = unit.total(place)
        expected = expected.plus(mean)
        variance = variance.plus(EstimatedUsage(*(x * x for x in half)))
    half = EstimatedUsage(*(math.sqrt(x) for x in variance))
    least = EstimatedUsage(*map(max, spent, expected.minus(half)))  # what is spent stays spent
    stage, role = place or ("all", "")
    return EstimateLine(stage, role, spent, expected, least, expected.plus(half))


def _paid(
    run: Run[RunConfig],
) -> tuple[dict[str, dict[StageRole, EstimatedUsage]], dict[StageRole, EstimatedUsage]]:
    """Item -> what was ever asked for it, by place, and what this run has asked for, by place.
    Items are the same in every run that has them, so who paid for one does not matter."""
    used: defaultdict[str, defaultdict[StageRole, EstimatedUsage]] = defaultdict(
        lambda: defaultdict(EstimatedUsage)
    )
    spent: defaultdict[StageRole, EstimatedUsage] = defaultdict(EstimatedUsage)
    for rows in run.dataset.in_commits("llm_calls", _LEDGER):
        for row in rows:
            place, usage = (row["stage"], row["role"]), _usage(row)
            if row["cache_hit"] or row["stage"] not in (PROBE, *run.config.STAGES):
                continue
            used[row["item_id"]][place] = used[row["item_id"]][place].plus(usage)
            if row["run_id"] == run.run_id:
                spent[place] = spent[place].plus(usage)
    return {item: dict(places) for item, places in used.items()}, dict(spent)


def _usage(row: Row) -> EstimatedUsage:
    """The cost is the ledger's own, for cached prompts and reasoning have prices of their own."""
    return EstimatedUsage(1, row["prompt_tokens"], row["completion_tokens"], row["cost_usd"])


def _probes_of(run: Run[RunConfig]) -> dict[StageRole, EstimatedUsage]:
    """What probes have cost so far, and what the run's own start will once more."""
    usage: defaultdict[StageRole, EstimatedUsage] = defaultdict(EstimatedUsage)
    for rows in run.dataset.in_commits("llm_calls", _LEDGER):
        for row in rows:
            if row["stage"] == PROBE and row["run_id"] == run.run_id:
                again = row["invocation_id"] == run.invocation_id
                place = (PROBE, row["role"])
                usage[place] = sum_of([usage[place], *[_usage(row)] * (1 + again)])
    return dict(usage)


def _known(
    done: Iterable[str], paid: Mapping[str, dict[StageRole, EstimatedUsage]], stage: str
) -> dict[str, dict[StageRole, EstimatedUsage]]:
    return {
        item: {at: usage for at, usage in paid.get(item, {}).items() if at[0] == stage}
        for item in done
    }


def _known_tasks(
    run: Run[RunConfig], pilot: Pilot, paid: Mapping[str, dict[StageRole, EstimatedUsage]]
) -> dict[str, dict[StageRole, EstimatedUsage]]:
    """Tasks that are through: dropped, or with every attempt rolled out and graded."""
    made = run.dataset.item_statuses("tasks")
    planned = set(run.ids_of("tasks")) & made.keys()
    known = _known(planned, paid, "tasks")
    done = run.dataset.item_statuses("rollouts")
    graded = run.dataset.item_statuses("grading")
    gradings = {item.data["trajectory_id"]: item.item_id for item in pilot.grading.planned}
    for item in pilot.rollouts.planned:
        task, episode = item.data["task"]["task_id"], item.item_id
        grading = gradings.get(episode)
        if episode not in done or (grading is not None and grading not in graded):
            known.pop(task, None)
        elif task in known:
            for part in (episode, grading):
                for place, usage in paid.get(part or "", {}).items():
                    known[task][place] = known[task].get(place, NOTHING).plus(usage)
    return known
