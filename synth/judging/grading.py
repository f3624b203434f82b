"""Grading: the verdicts on a stored trajectory, by code and by the judge, criterion by criterion.

It reads rows and writes rows, so any dataset can be graded again, by another judge or newer
checks, without a new rollout and without rewriting a row: each grading has its own `grading_id`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from records.digest import digest
from records.errors import ConfigError, ItemError
from records.tables.schemas import Row
from synth.engine.stages import Item, ItemResult, dropped
from synth.episode.environment import OUTSIDE
from synth.episode.sessions import (
    is_episode,
    num_sessions,
    situations_of_return,
    whole_episode,
)
from synth.episode.tools.code_bench import Bench
from synth.episode.tools.executors import in_short
from synth.episode.tools.notes import NOTE_TOOLS
from synth.episode.users.user import cast_in
from synth.judging.attribution import PROMPT as CAUSE_PROMPT
from synth.judging.attribution import TOLD_BY_END
from synth.judging.decision import DecisionConfig
from synth.judging.judge import prompt_version
from synth.judging.panel import PanelConfig, PanelRule, judge_identity
from synth.judging.perturbation.episodes import PassedEpisode
from synth.judging.review import ReviewedEpisode, review
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import version_of
from synth.rubrics.built_in import BUILT_IN, Kinds
from synth.rubrics.economy import known_to_do
from synth.rubrics.patch import RubricPatch
from synth.rubrics.refused import excused, refused_tools
from synth.rubrics.reward import evidence_of, rubric_of
from synth.rubrics.standing import STANDING_VERSION
from synth.rubrics.statements.statements import STATEMENTS_VERSION

STAGE = "grading"
STAGE_VERSION = 8
"""Raised when the same trajectory would be graded otherwise."""


def grading_id_of(
    judge_role: RoleConfig,
    kinds: Kinds = BUILT_IN,
    rubric: RubricPatch | None = None,
    *,
    judge_failed: bool = False,
    ask_cause: bool = True,
    panel: PanelConfig = PanelConfig(),
    scored_only: Collection[str] = (),
) -> str:
    """Judge and checker versions; a task's rubric is fixed by its id, unless another is
    given. `scored_only`: as `DecisionConfig` has it, since it says where the judge is asked."""
    return digest(
        STAGE,
        STAGE_VERSION,
        kinds.version,
        STANDING_VERSION,
        STATEMENTS_VERSION,
        judge_identity(judge_role),
        prompt_version(),
        *([rubric.identity()] if rubric else []),
        *(["judge_failed"] if judge_failed else []),
        *([version_of(CAUSE_PROMPT)] if ask_cause else []),
        *([panel.identity()] if panel != PanelConfig() else []),
        *([{"scored_only": sorted(scored_only)}] if scored_only else []),
    )


def plan_grading(trajectories: Iterable[Row], *, grading_id: str) -> list[Item]:
    """One item for each episode that the agent answers for, in their order. The columns
    `trajectory_id`, `termination_reason`, `session` and `parent_call_id` are enough.

    A sub-agent's conversation is no item, and no later one with the user: they are judged with the
    episode that they are of.
    What a fault outside the agent ended is neither judged nor paid for; if it is rolled out again,
    its new row is an item.
    """
    return [
        Item(
            digest(grading_id, trajectory["trajectory_id"]),
            {"grading_id": grading_id, "trajectory_id": trajectory["trajectory_id"]},
        )
        for trajectory in trajectories
        if trajectory["termination_reason"] not in OUTSIDE and is_episode(trajectory)
    ]


_ABOUT_USER = ("age", "household", "occupation", "place", "country", "mood", "language")
"""Columns of a persona of which the user may well speak; none before they were drawn."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows that trajectories are graded from, by id; of stages over many, read when needed."""

    trajectories: Mapping[str, Row]
    tool_calls: Mapping[str, Sequence[Row]]
    """By trajectory; none for one without calls."""
    tasks: Mapping[str, Row]
    agents: Mapping[str, Row]
    tools: Mapping[str, Row]
    rubric: RubricPatch | None = None
    """What to grade by instead of the rubrics that the tasks were made with."""
    personas: Mapping[str, Row] = field(default_factory=dict)

    def of(self, item: Item) -> Item:
        """The item with the rows that `grade` reads."""
        source = self.source(item.data["trajectory_id"])
        rows = {
            "trajectory": source.trajectory,
            "calls": source.calls,
            "task": source.task,
            "tools": source.tools,
            "user": self.user_of(source.task),
        }
        return Item(item.item_id, {**item.data, **rows})

    def source(self, trajectory_id: str) -> PassedEpisode:
        """All that is told about an episode, with the messages of all its sessions."""
        first = self.trajectories[trajectory_id]
        task = self.task(first["task_id"])
        trajectory = whole_episode(first, self.trajectories, task)
        calls = self.tool_calls.get(trajectory_id, ())
        tool_ids = self.agents[trajectory["agent_id"]]["tool_ids"]
        notes = NOTE_TOOLS if num_sessions(task.get("user_brief")) > 1 else ()
        return PassedEpisode(
            trajectory,
            sorted(calls, key=lambda call: call["call_index"]),
            task,
            [*(self.tools[i] for i in tool_ids), *notes],
        )

    def user_of(self, task: Row) -> dict[str, Any] | None:
        """What the simulated user of the task is told to want and know, as far as the judge needs
        it. None for a task without a simulated user."""
        brief, persona = task.get("user_brief"), self.personas.get(task.get("persona_id") or "")
        if not brief or persona is None:
            return None
        own = [self.tools[i] for i in task.get("user_tool_ids") or () if i in self.tools]
        told = {name: brief[name] for name in ("relation", "situation") if brief.get(name)}
        told |= {"comes back": back} if (back := situations_of_return(brief)) else {}
        about = {column: persona[column] for column in _ABOUT_USER if persona[column] is not None}
        return {
            "name": cast_in(persona, brief)["name"],
            "background": persona["background"],
            "style": persona["communication_style"],
            **told,
            **about,
            "wants": list(brief["wishes"]),
            "knows": {fact["label"]: fact["value"] for fact in brief["facts"]},
        } | ({"can do": [in_short(tool) for tool in own]} if own else {})

    def task(self, task_id: str) -> Row:
        """The task with the rubric that counts."""
        task = self.tasks[task_id]
        return self.rubric.of(task) if self.rubric else task


async def grade(
    item: Item,
    llm: LLM,
    *,
    judge_role: RoleConfig,
    bench: Bench,
    kinds: Kinds = BUILT_IN,
    judge_failed: bool = False,
    ask_cause: bool = True,
    rule: PanelRule = "one",
    decision: DecisionConfig = DecisionConfig(),
) -> ItemResult:
    """Rows of `verdicts`: code's on each criterion that it checks, the standing ones included, and
    the judge's on what code leaves open. The models of `judge_role` decide by `rule`.

    What a refusal kept the agent from (`synth.rubrics.refused`) does not count against it. The
    judge is not asked where code rejects by the rules of `decision`, unless `judge_failed`; with
    `ask_cause` it is asked for the cause where the user or the task may be it. Dropped where the
    rubric has a criterion that only another run's extensions can check. TransientError where the
    sandbox of a task's graded tests fails.
    """
    trajectory, calls = item.data["trajectory"], item.data["calls"]
    rubric = rubric_of(item.data["task"])
    if any(map(kinds.problem_with, rubric.criteria)):
        return dropped("unknown_kind")
    try:
        tests = await bench.tests_of(item.data["task"], rubric, calls)
    except ConfigError as error:  # made by a run with other repositories
        raise ItemError("world_not_at_hand", str(error)) from error
    episode = evidence_of(trajectory["messages"], calls, tests)
    verdicts = kinds.check_all(rubric, episode)
    rows = await review(
        llm,
        ReviewedEpisode(
            trajectory["messages"],
            calls,
            item.data["tools"],
            rubric,
            known_calls=known_to_do(item.data["task"]["reference_plan"]),
            user=item.data.get("user"),
        ),
        excused(rubric, verdicts, episode, refused_tools(calls)),
        item=item.item_id,
        judge_role=judge_role,
        version=kinds.version,
        judge_failed=judge_failed,
        ask_for_cause=ask_cause and trajectory["termination_reason"] not in TOLD_BY_END,
        rule=rule,
        decision=decision,
    )
    place = {
        "grading_id": item.data["grading_id"],
        "trajectory_id": trajectory["trajectory_id"],
        "split": trajectory["split"],
    }
    return ItemResult({"verdicts": [row | place for row in rows]})
