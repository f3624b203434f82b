"""Scoring on the episode environment: a policy plays held-out tasks of a dataset to their end.

Episodes go in rounds, all of a group together: everybody who waits for the assistant is answered at
once, then every environment takes its step. So the answers of a policy hang on the tasks and the
group's size alone, never on timing. The simulated user is that of the dataset's run, and what it
says is journalled: an evaluation that was stopped pays nothing twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from records.config import Config
from records.digest import canonical_json
from records.errors import ConfigError
from records.seeds import seed_of, share_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.splits import Split
from records.tables.task_tables import IMPORTED
from synth.episode.environment import OUTSIDE, EnvironmentStep, EpisodeConfig, EpisodeEnvironment
from synth.episode.tools.calls import FORMAT_ERRORS
from synth.gym.tool_use.findings import findings_of
from synth.gym.tool_use.opened_tasks import OpenedTasks, episode_seed_of, opened_tasks
from synth.gym.tool_use.selection import TaskComplexity, new_tool_of, why_unfit
from synth.pipeline.config_files import newest_run_config
from synth.rubrics.episode import Verdict
from trainer.data.chat import AssistantAnswer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.policies import Policy, PolicyRequest, num_calls


class EvalConfig(Config):
    """Which tasks are played, and within which bounds."""

    dataset: str
    """Folder of the dataset whose tasks are played."""
    splits: tuple[Split, ...] = (
        "heldout_values",
        "heldout_task",
        "heldout_tool",
        "heldout_domain",
    )
    """Seen tools with new values, new combinations of tools, new tools (of which the plan must take
    one), new domains; `train` plays tasks that were trained on."""
    tasks: int = Field(default=100, ge=1)
    """Tasks of each split, at most; which ones is drawn by digest."""
    attempts: int = Field(default=1, ge=1, le=256)
    """Episodes of each task."""
    complexities: tuple[TaskComplexity, ...] = ()
    """Only tasks of one user goal, of two, of three or four; all where none is named."""
    max_calls: int | None = Field(default=None, ge=1)
    """Tasks whose reference plan has more calls are left out."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Tasks whose first prompt is longer are left out."""
    episode: EpisodeConfig = EpisodeConfig()
    """Limits of an episode, and the faults that are injected."""
    group: int = Field(default=32, ge=1, le=1024)
    """Episodes that go on together."""
    seed: int = Field(default=0, ge=0)
    """Another seed draws other tasks."""
    plain_retelling: bool = False
    """Whether a task also fails where a value is told that nothing shows, and counts as told what
    stands in the answers word for word: right for a small model that retells results in English,
    far too strict for one that reckons and rounds."""

    @model_validator(mode="after")
    def _plays_alone(self) -> Self:
        if self.episode.delegation.share:
            raise ValueError(
                "episode.delegation.share must be 0: a model that is scored plays without "
                f"sub-agents, got {self.episode.delegation.share}"
            )
        return self


class EpisodeScore(NamedTuple):
    """One episode, counted."""

    task_id: str
    split: str
    cluster: str
    """What succeeds together: the new tool of the plan where tools are what is new, else the
    domain."""
    known_tools: bool
    """Whether every tool of the plan, if it has any, is in a plan of the training split."""
    solvable: bool
    """Whether the user goal can be reached with calls; else the right answer is to ask or
    decline."""
    ended: str
    """`termination_reason`."""
    success: bool
    """Every mandatory criterion that code checks is found to be met, the weighted share is enough,
    and nothing false was told; with `plain_retelling` nothing unshown either."""
    left_open: bool
    """A success but for a mandatory criterion that code cannot decide here, such as whether words
    that it cannot read tell the user a value. No success: nobody judges an evaluation. With
    `plain_retelling`, what stands in the answers word for word is told."""
    reward: float
    false_statements: int
    """Statements to the user that the records contradict, as far as code can tell."""
    unshown_values: int
    """Values told to the user that nothing shows (`synth.rubrics.statements.unshown`)."""
    calls: int
    valid_calls: int
    """Written in the template's form, of a tool that is there, with arguments that its schema
    takes."""
    wanted_calls: int
    """Calls of the reference plan."""
    exact_calls: int
    """Those of them that were made with the very same arguments."""
    breaches: int
    """Calls that broke a policy."""
    turns: int
    prompt_tokens: int
    """Of the first prompt."""


class Evaluated(NamedTuple):
    played: list[EpisodeScore]
    conversations: list[dict[str, Any]]
    """For reading: `task_id`, `messages`, `ended`, `success`, in the order of `played`."""
    left_out: dict[str, int]
    """Tasks that were not played, by reason."""


class Chosen(NamedTuple):
    task: Row
    attempt: int
    cluster: str
    """As in `EpisodeScore`."""
    known_tools: bool = True
    """As in `EpisodeScore`."""
    plain_retelling: bool = False
    """As in `EvalConfig`."""

    @property
    def item(self) -> str:
        """Seeds hang on it."""
        return f"{self.task['task_id']}-{self.attempt}"


@dataclass
class PlayedEpisode:
    chosen: Chosen
    env: EpisodeEnvironment
    tools: Sequence[Mapping[str, Any]]
    prompt_tokens: int = 0
    broken: int = 0
    """Answers that did not keep the template."""
    last: EnvironmentStep | None = None
    tokens: dict[int, EpisodeTokens] = field(default_factory=dict)
    """By the number of the conversation: what a policy that has tokens read and drew."""

    def asked(self, policy: Policy) -> PolicyRequest:
        state = self.env.state
        asked = PolicyRequest(
            state.conversation,
            self.tools,
            seed_of(self.chosen.item, "answer", state.turn),
            self.tokens.setdefault(state.session, EpisodeTokens()),
        )
        if not self.prompt_tokens:
            self.prompt_tokens = policy.prompt_tokens(asked)
        return asked

    async def step(self, answer: AssistantAnswer) -> None:
        """Play the answer. One that breaks the template counts as a call that is not valid, unless
        a call of it counts so already."""
        before = num_calls(self.env.state.messages)
        self.last = await self.env.step(answer.message(calls_before=before))
        refused = any(r.error_code in FORMAT_ERRORS for r in self.last.info["calls"])
        self.broken += answer.broken is not None and not refused

    def counted(self) -> EpisodeScore:
        state, task = self.env.state, self.chosen.task
        assert state.reason is not None
        plain = self.chosen.plain_retelling
        found = findings_of(state, self._verdicts(), plain_retelling=plain)
        wanted = Counter(_spelt(c["tool"], c["arguments"]) for c in task["reference_plan"])
        made = Counter(_spelt(r.name, r.arguments) for r in found.valid_calls)
        return EpisodeScore(
            task_id=task["task_id"],
            split=task["split"],
            cluster=self.chosen.cluster,
            known_tools=self.chosen.known_tools,
            solvable=task["solvable"],
            ended=state.reason,
            success=found.success,
            left_open=found.left_open,
            reward=self.last.reward if self.last else 0.0,
            false_statements=found.false_statements,
            unshown_values=found.unshown_values,
            calls=len(found.calls) + self.broken,
            valid_calls=len(found.valid_calls),
            wanted_calls=wanted.total(),
            exact_calls=(wanted & made).total(),
            breaches=found.policy_violations,
            turns=state.turn,
            prompt_tokens=self.prompt_tokens,
        )

    def _verdicts(self) -> Mapping[str, Verdict] | None:
        """What code says of the criteria; None where the episode says nothing about the agent."""
        if self.env.state.reason in OUTSIDE or self.last is None:
            return None
        return self.last.info.get("verdicts") or {}

    def told(self, score: EpisodeScore) -> dict[str, Any]:
        """The conversation, for reading."""
        return {
            "task_id": score.task_id,
            "split": score.split,
            "ended": score.ended,
            "success": score.success,
            "tools": [tool["function"]["name"] for tool in self.tools],
            "messages": self.env.state.messages,
        }


async def begun(env: EpisodeEnvironment, chosen: Chosen) -> PlayedEpisode:
    """The episode of a task at its start; its draws hang on `chosen.item`."""
    _, info = await env.reset(chosen.task, episode_seed_of(chosen.item))
    return PlayedEpisode(chosen, env, info["tools"])


def _spelt(tool: str, arguments: Any) -> str:
    return canonical_json([tool, arguments])


def evaluate(
    policy: Policy,
    config: EvalConfig,
    *,
    journal: Path,
    on_played: Callable[[int, int], None] | None = None,
) -> Evaluated:
    """Play every chosen task; `on_played` is given how many of how many are over.

    ConfigError for a dataset that is none or has no task to play.
    """
    return asyncio.run(_evaluate(policy, config, journal, on_played or (lambda done, of: None)))


async def _evaluate(
    policy: Policy, config: EvalConfig, journal: Path, on_played: Callable[[int, int], None]
) -> Evaluated:
    dataset = Dataset.open(config.dataset)
    run = newest_run_config(dataset)
    async with AsyncExitStack() as stack:
        stack.enter_context(run.prompts_in_use())  # users are asked as the dataset's run asked them
        opened = await stack.enter_async_context(
            opened_tasks(dataset, run, journal, stage="rollouts")
        )
        game = _Game(opened, config)
        left_out: Counter[str] = Counter()
        tasks = [t for t in dataset.rows("tasks") if t["variant"] != IMPORTED]
        chosen = await game.chosen(tasks, policy, left_out)
        if not chosen:
            there = Counter(task["split"] for task in tasks)
            raise ConfigError(
                f"{config.dataset} has no task to play of splits = {list(config.splits)}; "
                f"left out: {_told(left_out)}; tasks that are there: {_told(there)}"
            )
        played: list[EpisodeScore] = []
        conversations: list[dict[str, Any]] = []
        for start in range(0, len(chosen), config.group):
            for one, told in await game.play(policy, chosen[start : start + config.group]):
                played.append(one)
                conversations.append(told)
            on_played(len(played), len(chosen))
    return Evaluated(played, conversations, dict(left_out))


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "none"


class _Game:
    """Episodes of one evaluation, on one catalogue."""

    def __init__(self, opened: OpenedTasks, config: EvalConfig) -> None:
        self._opened, self._config = opened, config

    async def chosen(
        self, tasks: Sequence[Row], policy: Policy, left_out: Counter[str]
    ) -> list[Chosen]:
        """Of each split so many tasks; those that are left out are counted by reason."""
        config = self._config
        learnt = {
            (t["domain_id"], c["tool"])
            for t in tasks
            if t["split"] == "train"
            for c in t["reference_plan"]
        }
        found: list[Chosen] = []
        for split in config.splits:
            mine = [task for task in tasks if task["split"] == split]
            mine.sort(key=lambda task: share_of(task["task_id"], f"evaluation-{config.seed}"))
            played = 0
            for task in mine:
                if played == config.tasks:
                    break
                if why := await self._unfit(task, policy):
                    left_out[why] += 1
                    continue
                played += 1
                known = all(
                    (task["domain_id"], c["tool"]) in learnt for c in task["reference_plan"]
                )
                new = new_tool_of(self._opened.catalogue, task)
                cluster = new or task["domain_id"] or task["agent_id"]
                strict = config.plain_retelling
                found += [Chosen(task, n, cluster, known, strict) for n in range(config.attempts)]
        return found

    async def _unfit(self, task: Row, policy: Policy) -> str | None:
        config = self._config
        why = why_unfit(
            self._opened.catalogue,
            task,
            complexities=config.complexities,
            max_calls=config.max_calls,
        )
        if why is not None:
            return why
        if config.max_prompt_tokens is not None:
            env = self._environment(Chosen(task, 0, ""))
            messages, info = await env.reset(task, 0)
            await env.close()
            if (
                policy.prompt_tokens(PolicyRequest(messages, info["tools"], 0))
                > config.max_prompt_tokens
            ):
                return "longer_prompt"
        return None

    async def play(
        self, policy: Policy, chosen: Sequence[Chosen]
    ) -> list[tuple[EpisodeScore, dict[str, Any]]]:
        """All of them to their end, round by round."""
        episodes = [await begun(self._environment(one), one) for one in chosen]
        try:
            while open_ := [e for e in episodes if e.env.state.reason is None]:
                asked = [e.asked(policy) for e in open_]
                answers = await asyncio.to_thread(policy.answers, asked)
                steps = zip(open_, answers, strict=True)
                await asyncio.gather(*(episode.step(answer) for episode, answer in steps))
        finally:
            for episode in episodes:
                await episode.env.close()
        return [(score, e.told(score)) for e in episodes for score in [e.counted()]]

    def _environment(self, chosen: Chosen) -> EpisodeEnvironment:
        return self._opened.environment(chosen.item, self._config.episode)
