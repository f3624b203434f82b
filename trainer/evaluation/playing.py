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
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from offline_llm.app import create_app
from records.config import Config
from records.digest import canonical_json
from records.errors import ConfigError
from records.seeds import seed_of, share_of
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from records.tables.splits import Split
from records.tables.task_tables import IMPORTED
from sandboxes.mcp.warm import WarmServers
from synth.episode.environment import OUTSIDE, EnvironmentStep, EpisodeConfig, EpisodeEnvironment
from synth.episode.tools.calls import FORMAT_ERRORS
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.simulator import ModelAnswers
from synth.episode.users.user import LlmUser
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.pipeline.config_files import newest_run_config
from synth.pipeline.sources import catalogue_of
from synth.rubrics.reward import decide_by_code, left_open, rubric_of
from synth.rubrics.statements.statements import statements_of
from synth.rubrics.statements.unshown import plainly_told, unshown_values
from trainer.data.chat import AssistantAnswer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.policies import Policy, PolicyRequest, num_calls

PLAYERS = ("user", "simulator")
"""Roles of the dataset's run that play along."""


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
    complexities: tuple[Literal["simple", "moderate", "complex"], ...] = ()
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
        calls = [record._asdict() for record in state.caller.records]
        contradicted = sum(
            s.outcome == "contradicted" for s in statements_of(state.messages, calls)
        )
        unshown = len(unshown_values(state.messages, calls))
        false = contradicted or (self.chosen.plain_retelling and unshown)
        accepted, undecided = self._by_code()
        if self.chosen.plain_retelling and plainly_told(rubric_of(task), undecided, state.messages):
            undecided = []
        records = [r for r in state.caller.records if r.actor == "agent"]
        valid = [r for r in records if r.error_code not in FORMAT_ERRORS]
        wanted = Counter(_spelt(c["tool"], c["arguments"]) for c in task["reference_plan"])
        made = Counter(_spelt(r.name, r.arguments) for r in valid)
        return EpisodeScore(
            task_id=task["task_id"],
            split=task["split"],
            cluster=self.chosen.cluster,
            known_tools=self.chosen.known_tools,
            solvable=task["solvable"],
            ended=state.reason,
            success=accepted and not undecided and not false,
            left_open=bool(accepted and undecided and not false),
            reward=self.last.reward if self.last else 0.0,
            false_statements=contradicted,
            unshown_values=unshown,
            calls=len(records) + self.broken,
            valid_calls=len(valid),
            wanted_calls=wanted.total(),
            exact_calls=(wanted & made).total(),
            breaches=sum(bool(r.policy_violations) for r in records),
            turns=state.turn,
            prompt_tokens=self.prompt_tokens,
        )

    def _by_code(self) -> tuple[bool, list[str]]:
        """Whether what code decides is met, and the mandatory criteria that it leaves open."""
        if self.env.state.reason in OUTSIDE or self.last is None:
            return False, []
        verdicts = self.last.info.get("verdicts") or {}
        rubric = rubric_of(self.chosen.task)
        return decide_by_code(rubric, verdicts).accepted, left_open(rubric, verdicts)

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
    _, info = await env.reset(chosen.task, seed_of(chosen.item, "episode"))
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
    roles = {role: own for role, own in run.roles.items() if role in PLAYERS}
    app = create_app(run.offline.settings())
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(WarmServers())
        gateway = await stack.enter_async_context(Gateway(roles, offline_app=lambda: app))
        notes = stack.enter_context(ShardJournal(journal))
        llm = LLM(gateway, notes, stage="rollouts", invocation_id="evaluation")
        catalogue = catalogue_of(dataset, run, servers.open, servers.pool.lease)
        game = _Game(catalogue, llm, config)
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

    def __init__(self, catalogue: Catalogue, llm: LLM, config: EvalConfig) -> None:
        self._catalogue, self._llm, self._config = catalogue, llm, config

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
                cluster = self._new_tool(task) or task["domain_id"] or task["agent_id"]
                strict = config.plain_retelling
                found += [Chosen(task, n, cluster, known, strict) for n in range(config.attempts)]
        return found

    def _new_tool(self, task: Row) -> str | None:
        """The first tool of the plan that is held out, of a task that is so by its tools."""
        if task["split"] != "heldout_tool":
            return None
        ids = self._catalogue.agents[task["agent_id"]]["tool_ids"]
        mine = {self._catalogue.tools[i]["name"]: self._catalogue.tools[i] for i in ids}
        taken = (mine.get(call["tool"]) for call in task["reference_plan"])
        return next((t["tool_id"] for t in taken if t and t["split"] == "heldout_tool"), None)

    async def _unfit(self, task: Row, policy: Policy) -> str | None:
        config = self._config
        tools = self._catalogue.agents[task["agent_id"]]["tool_ids"]
        if any(tool not in self._catalogue.tools for tool in tools):
            return "tools_not_here"
        if task["split"] == "heldout_tool" and self._new_tool(task) is None:
            return "new_tool_not_needed"
        if config.complexities and task["complexity"] not in config.complexities:
            return "other_complexity"
        if config.max_calls is not None and len(task["reference_plan"]) > config.max_calls:
            return "more_calls"
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
        item, catalogue, episode = chosen.item, self._catalogue, self._config.episode

        def user(task: Row, persona: Row) -> LlmUser:
            return LlmUser(
                self._llm,
                item=item,
                persona=persona,
                brief=task["user_brief"],
                tools=catalogue.user_tools_of(task),
                retries=episode.user_retries,
            )

        answers = ModelAnswers(self._llm, item=item, config=catalogue.simulate)
        return EpisodeEnvironment(catalogue, episode, user=user, answers=answers)
