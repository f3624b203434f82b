"""The tasks of a committed dataset as an environment with verifiable rewards.

An episode is that of `synth.episode.environment`: the simulated user is played by the roles of the
dataset's run, tools are executed, MCP servers and workspaces of code come from the same catalogue.
The reward is what code can check; no judge is asked. What users and simulated tools say is
journalled under the task and the seed, so that an episode which is played again, by another process
too, hears the same words and pays nothing twice.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from records.errors import ConfigError, ItemError
from records.seeds import share_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.endings import OUTSIDE, TRUNCATED
from synth.episode.environment import EpisodeEnvironment
from synth.episode.episode_state import EnvironmentStep
from synth.episode.sessions import num_sessions
from synth.episode.tools.code_environments import bug_of
from synth.gym.core.environment import GymSplit, GymStep, GymTask, Reward, checked
from synth.gym.tool_use.findings import findings_of
from synth.gym.tool_use.opened_tasks import OpenedTasks, episode_seed_of, opened_tasks
from synth.gym.tool_use.selection import is_earned_by_nothing, why_unfit
from synth.gym.tool_use.settings import ToolUseSettings
from synth.llm.wire.request import Message
from synth.pipeline.config_files import newest_run_config
from synth.pipeline.sources import catalogue_of

STAGE = "gym"
"""What ledgers and budgets call the requests of this environment."""


class ToolUse:
    """Tasks of one dataset (`synth.gym.core.environment.GymEnvironment`).

    Opened by the first `begin`, in the event loop that uses it; after `close` it can be opened
    again, in another loop too.
    """

    family = "tool_use"

    def __init__(self, settings: ToolUseSettings, *, journal: Path | None = None) -> None:
        """`journal`: the file that keeps what users and simulated tools say, of this environment
        alone; None keeps it until `close`. ConfigError for a folder that is no dataset, or has no
        task to play."""
        self.settings, self._journal = settings, journal
        self.left_out: Counter[str] = Counter()
        """Tasks of the dataset that are not played, by reason."""
        self.spent: dict[str, float] = dict.fromkeys(("requests", "tokens", "usd"), 0.0)
        """`requests` to users and simulated tools, their `tokens`, and `usd`, since this object was
        made; what the journal answers is none."""
        self._dataset = Dataset.open(settings.dataset)
        self._run = newest_run_config(self._dataset)
        self._tasks = self._chosen()
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._opened: OpenedTasks | None = None

    def tasks(self) -> Sequence[GymTask]:
        return self._tasks

    async def begin(self, task: GymTask, seed: int) -> "ToolUseEpisode":
        opened = await self._open()
        item = f"{task.task_id}-{seed}"
        env = opened.environment(item, self.settings.episode)
        with self.prompts_in_use():
            messages, info = await env.reset(dict(task.body), episode_seed_of(item))
        return ToolUseEpisode(self, env, messages, info["tools"])

    async def close(self) -> None:
        """Stop servers, sandboxes and endpoints. To be called after the last episode is closed."""
        stack, self._stack, self._opened = self._stack, AsyncExitStack(), None
        self._opening = asyncio.Lock()
        await stack.aclose()

    def prompts_in_use(self) -> AbstractContextManager[None]:
        """Inside, users and simulated tools are asked as the dataset's run asked them."""
        return self._run.prompts_in_use()

    def account(self) -> None:
        """Bring `spent` up to date."""
        rows = self._opened.llm.take_rows() if self._opened else ()
        for row in rows:
            self.spent["requests"] += not row["cache_hit"]
            self.spent["tokens"] += row["prompt_tokens"] + row["completion_tokens"]
            self.spent["usd"] += row["cost_usd"]

    async def _open(self) -> OpenedTasks:
        async with self._opening:
            if self._opened is None:
                journal = self._journal
                if journal is None:
                    folder = tempfile.TemporaryDirectory(prefix="synth-gym-")
                    journal = Path(self._stack.enter_context(folder)) / "journal.sqlite"
                wanted = self.settings
                self._opened = await self._stack.enter_async_context(
                    opened_tasks(
                        self._dataset,
                        self._run,
                        journal,
                        stage=STAGE,
                        budget=wanted.budget,
                        live=wanted.live,
                    )
                )
                self._opened.llm.take_rows()  # of an earlier process
            return self._opened

    def _chosen(self) -> tuple[GymTask, ...]:
        """In the order of their ids."""
        wanted, catalogue = self.settings, catalogue_of(self._dataset, self._run)
        with self._dataset.connect() as db:
            playable = {task_id for (task_id,) in db.execute("SELECT task_id FROM rl").fetchall()}
        rows = {row["task_id"]: row for row in self._dataset.rows("tasks")}
        names = {
            row["domain_id"]: row["name"]
            for row in self._dataset.rows("domains", ("domain_id", "name"))
        }
        found: list[GymTask] = []
        for task_id in sorted(playable):
            task = rows[task_id]
            if task["split"] not in wanted.splits:
                self.left_out["other_split"] += 1
            elif wanted.variants and task["variant"] not in wanted.variants:
                self.left_out["other_variant"] += 1
            elif num_sessions(task["user_brief"]) > 1:
                # the policy must not be shown the earlier conversation, which its tokens hold
                self.left_out["several_conversations"] += 1
            elif why := why_unfit(
                catalogue, task, complexities=wanted.complexities, max_calls=wanted.max_calls
            ):
                self.left_out[why] += 1
            elif not wanted.variants and is_earned_by_nothing(catalogue, task):
                self.left_out["earned_by_nothing"] += 1
            else:
                origin = bug_of(task) or origin_of(task, rows)
                split = split_of_task(task["split"], origin, wanted.validation_share)
                found.append(GymTask(task_id, self.family, split, _tags(task, names), task))
        if not found:
            told = ", ".join(f"{n} {why}" for why, n in sorted(self.left_out.items())) or "none"
            raise ConfigError(
                f"{wanted.dataset} has no task to play of splits = {list(wanted.splits)}; "
                f"left out: {told}"
            )
        return tuple(found)


class ToolUseEpisode:
    """One task being played (`synth.gym.core.environment.GymEpisode`)."""

    def __init__(
        self,
        environment: ToolUse,
        env: EpisodeEnvironment,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
    ) -> None:
        """`env` at the beginning of its episode, of which it gave the messages and tools."""
        self._environment, self._env = environment, env
        self.messages = list(messages)
        self.tools = tools

    async def step(self, action: Message) -> GymStep:
        try:
            with self._environment.prompts_in_use():
                step = await self._env.step(action)
        except ItemError as error:  # the endpoint of the user refuses what it is asked
            self._env.stop("user_error", str(error))
            return GymStep([], done=True, outside="user_error")
        self.messages += [action, *step.observation]
        reason = step.info.get("termination_reason")
        if reason is None:
            return GymStep(step.observation, done=False)
        if reason in OUTSIDE:
            return GymStep([], done=True, outside=reason)
        return GymStep([], True, checked(self._reward(step)), truncated=step.truncated)

    async def close(self) -> None:
        await self._env.close()
        self._environment.account()

    def _reward(self, step: EnvironmentStep) -> Reward:
        """Of an episode that has ended."""
        settings, verdicts = self._environment.settings, step.info["verdicts"]
        state = self._env.state
        found = findings_of(state, verdicts, plain_retelling=settings.plain_retelling)
        value = float(found.success)
        if settings.reward == "objective":
            # words that no code can read must not earn what they hide
            value = 0.0 if found.undecided else step.reward
        parts = {
            "objective_reward": step.reward,
            "success": float(found.success),
            "left_open": float(len(found.undecided)),
            "false_statements": float(found.false_statements),
            "unshown_values": float(found.unshown_values),
            "policy_violations": float(found.policy_violations),
            "calls": float(len(found.calls)),
            "valid_calls": float(len(found.valid_calls)),
            "cut_off": float(state.reason in TRUNCATED),
        }
        decided = {i: v.score for i, v in verdicts.items() if v.passed is not None}
        return Reward(value, parts | {f"criterion:{i}": score for i, score in decided.items()})


def split_of_task(split: str, origin: str, validation_share: float) -> GymSplit:
    """Of a task of that split of the dataset. What has one origin comes to one side."""
    if split != "train":
        return "heldout"
    return "validation" if share_of(origin, "gym_validation") < validation_share else "train"


def origin_of(task: Row, rows: Mapping[str, Row]) -> str:
    """The id of the task from which this one was made, by way of others too; its own where it was
    made from none."""
    seen: set[str] = set()
    origin: str = task["task_id"]
    while origin in rows and origin not in seen and rows[origin].get("parent_task_id"):
        seen.add(origin)
        origin = rows[origin]["parent_task_id"]
    return origin


def _tags(task: Row, names: Mapping[str, str]) -> tuple[str, ...]:
    about = f"server:{task['server']}" if task["server"] else None
    domain = task["domain_id"]
    return (
        about or f"domain:{names.get(domain, domain)}",
        f"kind:{task['variant']}",
        f"level:{task['complexity']}",
        f"calls:{len(task['reference_plan'])}",
        f"split:{task['split']}",
    )
