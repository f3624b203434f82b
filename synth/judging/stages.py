"""The stages that judge stored trajectories: of a run, and of `synth grade` by themselves."""

from itertools import chain
from typing import Any

from records.reading.lookup import RowBy, RowsBy
from records.store.dataset import Dataset
from records.tables.schemas import Row
from sandboxes.lending.leases import available
from synth.engine.context import RunContext
from synth.engine.plans import StageReport
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.episode.tools.code_bench import Bench
from synth.episode.tools.code_environments import code_environments
from synth.episode.tools.executors import code_environment_in
from synth.judging.calibration import (
    plan_calibration,
    trial_id_of,
    tried_before,
    try_judge,
    writer_version,
)
from synth.judging.config import GradeConfig, JudgedConfig
from synth.judging.grading import Recorded, grade, grading_id_of, plan_grading
from synth.judging.judge_rates import judge_rates, judge_status_of, warning_of
from synth.judging.panel import agent_models, judges_of
from synth.judging.perturbation.registry import CONTROL
from synth.judging.perturbation.writing import WRITTEN_BY
from synth.llm.settings.config import RoleConfig
from synth.rubrics.patch import RubricPatch
from synth.rubrics.standing import ECONOMY, USER_PART
from synth.tasks.proof.extensions import load_extensions


def recorded_in(dataset: Dataset, rubric: RubricPatch | None = None) -> Recorded:
    """Every trajectory of a dataset with what is told about it, read when it is asked for."""
    return Recorded(
        trajectories=RowBy(dataset, "trajectories", "trajectory_id"),
        tool_calls=RowsBy(dataset, "tool_calls", "trajectory_id"),
        tasks=RowBy(dataset, "tasks", "task_id"),
        agents=RowBy(dataset, "agents", "agent_id"),
        tools=RowBy(dataset, "tools", "tool_id"),
        rubric=rubric,
        personas=RowBy(dataset, "personas", "persona_id"),
    )


def grading_of(config: JudgedConfig) -> str:
    """The id of the grading that a run makes."""
    kinds = load_extensions(config.extensions).kinds
    with config.prompts_in_use():  # asked for after the run, too
        judging = config.judging
        return grading_id_of(
            config.roles["judge"],
            kinds,
            judging.rubric,
            judge_failed=judging.judge_failed,
            ask_cause=judging.ask_cause,
            panel=judging.panel,
            scored_only=judging.decision.scored_only,
        )


class Judged:
    """What the stages share: the grading, and the rows that it is about."""

    def __init__(self, run: RunContext[Any]) -> None:
        self.run = run
        config: JudgedConfig = run.config
        self.kinds = load_extensions(config.extensions).kinds
        self.grading_id = grading_of(config)
        self.recorded = recorded_in(run.dataset, config.judging.rubric)
        self.agents = agent_models(run.dataset)

    def judges_on(self, trajectory: Row) -> RoleConfig:
        """Who may judge it."""
        agent = trajectory["models"].get("agent")
        return judges_of(self.run.config.roles["judge"], agent, self.agents)


def criteria_of(dataset: Dataset) -> set[str]:
    """Ids of the criteria that rubrics of tasks have."""
    with dataset.connect(("tasks",)) as db:
        return {i for (i,) in db.execute(_CRITERIA).fetchall()}


class GradingStage(Judged):
    name = "grading"
    runs_in_workers = True

    def __init__(self, run: RunContext[Any]) -> None:
        super().__init__(run)
        environments = code_environments(run.config.code) if available() is None else {}
        self.bench = Bench(lambda task: code_environment_in(environments, task))

    def plan(self) -> list[Item]:
        rubric = self.run.config.judging.rubric
        # a pilot's few tasks need not have what those of the whole run will
        if rubric is not None and rubric.change and isinstance(self.run.config, GradeConfig):
            rubric.check_ids(criteria_of(self.run.dataset))
        ended = ("trajectory_id", "termination_reason", "session", "parent_call_id")
        rows = self.run.dataset.in_commits("trajectories", ended)
        return plan_grading(chain.from_iterable(rows), grading_id=self.grading_id)

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        judging, given = self.run.config.judging, self.recorded.of(item)
        return await grade(
            given,
            shard.llm,
            judge_role=self.judges_on(given.data["trajectory"]),
            bench=self.bench,
            kinds=self.kinds,
            judge_failed=judging.judge_failed,
            ask_cause=judging.ask_cause,
            rule=judging.panel.rule,
            decision=judging.decision,
        )


class CalibrationStage(Judged):
    """Perturbations of trajectories that pass by code, for the judge. One plan asks for what is
    missing; what comes to nothing is replaced by the next one."""

    name = "calibration"
    needs_all = True
    runs_in_workers = True

    def __init__(self, run: RunContext[Any]) -> None:
        super().__init__(run)
        with run.config.prompts_in_use():
            self.trial_id = trial_id_of(run.config.roles["judge"], self.kinds, run.config.judging)
            self.writer = writer_version(run.config.roles[WRITTEN_BY])
        self.tried = RowsBy(run.dataset, self.name, "trajectory_id")

    def plan(self) -> list[Item]:
        dataset, judging = self.run.dataset, self.run.config.judging
        with dataset.connect(("verdicts",)) as db:
            [(graded,)] = db.execute(_GRADED, [self.grading_id]).fetchall()
            aside = list(judging.decision.scored_only)
            judged = db.execute(_SOUND, [self.grading_id, aside]).fetchall()
        columns = ("trial_id", "trajectory_id", "perturbation", "outcome", "writer_version")
        before = tried_before(
            chain.from_iterable(dataset.in_commits(self.name, columns)),
            trial_id=self.trial_id,
            writer=self.writer,
            done=dataset.item_statuses(self.name).keys(),
        )
        items = plan_calibration(
            {i for i, accepted in judged if accepted},
            {i for i, _ in judged},
            before,
            grading_id=self.grading_id,
            trial_id=self.trial_id,
            writer=self.writer,
            graded=graded,
            config=judging,
        )
        # what lies together is read together
        wanted = {item.data["trajectory_id"] for item in items}
        lying = chain.from_iterable(
            ids for _, ids in self.run.dataset.column("trajectories", "trajectory_id")
        )
        place = {i: n for n, i in enumerate(lying) if i in wanted}
        return sorted(items, key=lambda item: place[item.data["trajectory_id"]])

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        i = item.data["trajectory_id"]
        source = self.recorded.source(i)
        return await try_judge(
            item,
            shard.llm,
            source,
            place={"grading_id": self.grading_id, "trial_id": self.trial_id},
            stored=[row for row in self.tried.get(i, ()) if row["outcome"] is not None],
            judge_role=self.judges_on(source.trajectory),
            kinds=self.kinds,
            writer=self.writer,
            rule=self.run.config.judging.panel.rule,
            scored_only=self.run.config.judging.decision.scored_only,
        )


def may_want_more(trial: StageReport) -> bool:
    """Whether another plan of the trial may replace what came to nothing: this one asked for
    something new, not all of which was kept, and nothing of it waits."""
    return bool(trial.dropped) and trial.reused < trial.requested and not trial.pending


def trials(dataset: Dataset, grading_id: str) -> list[Row]:
    """The rows of `calibration` that tell of a grading's judge, without texts: the grading's own,
    and what earlier gradings tried with the same judge, prompt and checks."""
    columns = ["grading_id", "trial_id", "perturbation", "channel", "expected", "judge_passed"]
    columns += ["outcome", "confirmed_by", "named", "language", "checker_version"]
    rows = list(chain.from_iterable(dataset.in_commits("calibration", columns)))
    same = {row["trial_id"] for row in rows if row["grading_id"] == grading_id} - {None}
    return [
        row
        for row in rows
        if row["grading_id"] == grading_id
        or (row["trial_id"] in same and row["perturbation"] != CONTROL)
    ]


def warning_about(dataset: Dataset, config: JudgedConfig) -> str | None:
    """What a run says loudly of the judge that it was graded by, if anything."""
    rates = judge_rates(trials(dataset, grading_of(config)))
    return warning_of(judge_status_of(rates, config.judging.minimum_quality), rates)


_CRITERIA = """
SELECT DISTINCT unnest(json_extract_string(rubric, '$.criteria[*].id')) FROM tasks"""

_GRADED = "SELECT count(DISTINCT trajectory_id) FROM verdicts WHERE grading_id = $1"

_SOUND = f"""
SELECT trajectory_id, bool_and(coalesce(passed, criterion_id = '{USER_PART.id}')
  OR checked_by = 'code' OR NOT mandatory OR list_contains($2, kind)
  OR list_contains($2, criterion_id))
FROM verdicts
WHERE grading_id = $1 AND checked_by IN ('code', 'judge')
GROUP BY ALL HAVING NOT bool_or(kind = 'test') AND bool_or(checked_by = 'judge')
  AND bool_and(coalesce(passed, true) OR checked_by = 'judge' OR kind = '{ECONOMY.kind}')
ORDER BY 1"""
"""Nothing but economy fails by code; and whether nothing that decides fails by the judge, or is
left open by it."""
