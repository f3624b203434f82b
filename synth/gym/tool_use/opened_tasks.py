"""What the tasks of a dataset are played with, for whoever is the agent: the catalogue of the run
that made them, its simulated users and simulator, and servers and sandboxes that are kept warm."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from offline_llm.app import create_app
from records.seeds import seed_of
from records.store.dataset import Dataset
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from sandboxes.mcp.warm import WarmServers
from synth.episode.config import EpisodeConfig
from synth.episode.environment import EpisodeEnvironment
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.simulator import ModelAnswers
from synth.episode.users.user import LlmUser
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.settings.config import BudgetConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import catalogue_of

PLAYERS = ("user", "simulator")
"""Roles of the dataset's run that play along."""


@dataclass(frozen=True)
class OpenedTasks:
    """Tasks of one dataset that can be played, beside each other."""

    catalogue: Catalogue
    llm: LLM
    """Of the roles that play along."""

    def environment(self, item: str, episode: EpisodeConfig) -> EpisodeEnvironment:
        """For one episode. What users and simulated tools say hangs on `item`, and is journalled
        under it."""

        def user(task: Row, persona: Row) -> LlmUser:
            return LlmUser(
                self.llm,
                item=item,
                persona=persona,
                brief=task["user_brief"],
                tools=self.catalogue.user_tools_of(task),
                retries=episode.user_retries,
            )

        answers = ModelAnswers(self.llm, item=item, config=self.catalogue.simulate)
        return EpisodeEnvironment(self.catalogue, episode, user=user, answers=answers)


def episode_seed_of(item: str) -> int:
    """The seed of the episode that plays `item`."""
    return seed_of(item, "episode")


@asynccontextmanager
async def opened_tasks(
    dataset: Dataset,
    run: RunConfig,
    journal: Path,
    *,
    stage: str,
    budget: BudgetConfig = BudgetConfig(),
    live: int | None = None,
) -> AsyncIterator[OpenedTasks]:
    """The dataset's tasks with the players of `run`, whose answers the journal keeps: what was
    asked before is neither asked nor paid again. `budget` counts what the journal holds, and goes
    by `stage`. `live` is how many servers, and how many sandboxes, may run at once."""
    roles = {role: own for role, own in run.roles.items() if role in PLAYERS}
    app = create_app(run.offline.settings())
    with ShardJournal(journal) as notes:
        spent = Budget(budget, spent_in(journalled_rows(notes)))
        async with (
            WarmServers(live) as servers,
            Gateway(roles, budget=spent, offline_app=lambda: app) as gateway,
        ):
            llm = LLM(gateway, notes, stage=stage, invocation_id=stage)
            catalogue = catalogue_of(dataset, run, servers.open, servers.pool.lease)
            yield OpenedTasks(catalogue, llm)
