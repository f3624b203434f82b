"""The two stages of a round: how often each task is passed, and which tasks are derived from that.

Both plan over everything that the run has made so far, so each only grows from round to round. A
task's child hangs on what its own attempts came to and on nothing else, so that a run that goes on
in the middle of a round comes to the same rows.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any

from records.digest import digest
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from synth.curation.candidates import CurationCandidate
from synth.curation.stages import Decided
from synth.engine.context import RunContext
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Item, ItemResult, ShardContext, Stage, dropped
from synth.episode.environment import OUTSIDE
from synth.episode.tools.code_environments import is_code
from synth.judging.stages import GradingStage
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import OverCatalogue, RolloutStage, TaskStage
from synth.tasks.difficulty import (
    DERIVATION,
    DerivedTask,
    Operator,
    pass_at_k,
    pass_hat_k,
    plan_derivations,
    tasks_of,
)
from synth.tasks.operators import Deriving, can_have, reference_fault
from synth.tasks.stage import Dropped

MEASURE_VERSION = 1
"""Raised when the same attempts would be measured otherwise."""

NEVER = 3
"""So many attempts without a pass are looked at for a fault of the task."""


class DifficultyStage(OverCatalogue):
    """Pass rates of the run's tasks, one item a task. Attempts that ended outside the agent's reach
    do not count."""

    name = "difficulty"
    needs_all = True

    def __init__(self, run: RunContext[RunConfig]) -> None:
        super().__init__(run)
        self.judged = Decided(run)

    def plan(self) -> list[Item]:
        mine = set(self.run.ids_of("rollouts"))
        attempts: dict[str, list[str]] = {}
        ends: dict[str, str] = {}
        columns = ("trajectory_id", "task_id", "termination_reason")
        for row in chain.from_iterable(self.run.dataset.in_commits("trajectories", columns)):
            if row["trajectory_id"] in mine:
                attempts.setdefault(row["task_id"], []).append(row["trajectory_id"])
                ends[row["trajectory_id"]] = row["termination_reason"]
        base = digest("difficulty", MEASURE_VERSION, self.judged.grading_id)
        rules = self.run.config.judging.decision.identity()
        return [
            Item(
                # an attempt that is made again after a failure keeps its id
                digest(base, rules, task_id, [(i, ends[i]) for i in sorted(attempts[task_id])]),
                {"task_id": task_id, "attempts": sorted(attempts[task_id])},
            )
            for task_id in tasks_of(self.run)
            if task_id in attempts
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        return ItemResult({"difficulty": [self.measure(item)]})

    def measure(self, item: Item) -> Row:
        """The row of an item of the plan."""
        task = self.judged.recorded.task(item.data["task_id"])
        trajectories = [self.judged.recorded.trajectories[i] for i in item.data["attempts"]]
        found = [c for t in trajectories if (c := self.judged.candidate(t, "unmeasured"))]
        return measured(item.item_id, self.judged.grading_id, task, found, self._replay_fault)

    def _replay_fault(self, task: Row) -> str | None:
        """None also where the reference is no plan in a domain with programs: on live servers, on
        code and on played tools."""
        if task["domain_id"] is None or is_code(task):
            return None
        domain = self.catalogue.domain(task["domain_id"])
        return reference_fault(task, domain, self.judged.kinds) if domain.programs else None


def measured(
    difficulty_id: str,
    grading_id: str,
    task: Row,
    attempts: Sequence[CurationCandidate],
    replay_fault: Callable[[Row], str | None],
) -> Row:
    """The row of `difficulty` on a task; `pass_at_k` and `pass_hat_k` are for k = 1 to n."""
    counted = [c for c in attempts if c.termination_reason not in OUTSIDE]
    n, c = len(counted), sum(one.drop_reason is None for one in counted)
    parties = Counter(one.attributed_to for one in attempts if one.attributed_to)
    within = Counter(one.attributed_to for one in counted if one.attributed_to)
    never = c == 0 and n >= NEVER
    replayed = replay_fault(task) if never else None
    fault = fault_of(within, n, replayed) if never else None
    return {
        "difficulty_id": difficulty_id,
        "task_id": task["task_id"],
        "grading_id": grading_id,
        "round": task["round"] or 0,
        "parent_task_id": task["parent_task_id"],
        "operator": task["operator"],
        "n": n,
        "c": c,
        "pass_at_k": [pass_at_k(n, c, k) for k in range(1, n + 1)],
        "pass_hat_k": [pass_hat_k(n, c, k) for k in range(1, n + 1)],
        "attributed_to": dict(sorted(parties.items())),
        "replay_fault": replayed,
        "fault": fault,
        "split": task["split"],
    }


def fault_of(parties: Counter[Any], attempts: int, replayed: str | None) -> str | None:
    """Why a task that nobody passed counts as faulty and not as hard: its own reference fails, or
    most of its attempts failed through somebody else than the agent."""
    if replayed is not None:
        return "reference_fails"
    others = {party: n for party, n in parties.items() if party not in ("agent", "undetermined")}
    if 2 * sum(others.values()) <= attempts:
        return None
    return f"failed_by_{max(sorted(others), key=lambda party: others[party])}"


class DerivationStage(TaskStage):
    """Tasks derived from those of the rounds before, by how often they were passed."""

    name = DERIVATION
    needs_all = True

    def __init__(self, run: RunContext[RunConfig]) -> None:
        super().__init__(run)
        self.tasks = RowBy(run.dataset, "tasks", "task_id")
        self.deriving = Deriving(
            self.tasks,
            self.catalogue.agents,
            self.catalogue.personas,
            config=run.config.tasks,
            difficulty=run.config.difficulty,
            sources=self.sources,
            generator=run.config.roles["generator"],
        )

    def plan(self) -> list[Item]:
        rows = {row["difficulty_id"]: row for row in self.run.dataset.rows("difficulty")}
        measured = [rows[i] for i in self.run.ids_of("difficulty") if i in rows]
        derivations = plan_derivations(measured, self.run.config.difficulty, can_have=self.can_have)
        return [Item(d.item_id, {"derivation": tuple(d)}) for d in derivations]

    def can_have(self, task_id: str, operator: Operator) -> bool:
        task = self.tasks[task_id]
        if is_code(task) or task["domain_id"] in self.catalogue.played:
            return False
        if task["server"] in self.catalogue.recorded:
            return False  # a recorded server answers no call that was not made before
        return can_have(
            operator, task, self.catalogue.agents[task["agent_id"]], self.catalogue.tools
        )

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        made = await self.deriving.make(DerivedTask(*item.data["derivation"]), shard.llm)
        return dropped(made.reason) if isinstance(made, Dropped) else ItemResult(made)


RunOneStage = Callable[[Run[Any], Stage], Awaitable[StageReport]]


async def run_rounds(run: Run[RunConfig], run_stage: RunOneStage) -> list[StageReport]:
    """Every round, after the first attempts are committed; a report a stage of each. `run_stage`
    makes the open items of a stage and commits them."""
    reports = [await run_stage(run, stage(run)) for stage in (GradingStage, DifficultyStage)]
    for _ in range(run.config.difficulty.rounds):
        for stage in (DerivationStage, RolloutStage, GradingStage, DifficultyStage):
            reports.append(await run_stage(run, stage(run)))
    run.require_all("curation")
    return reports
