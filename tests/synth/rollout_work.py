"""The rollouts of a small shard as one function, so that a child process can run and die in it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from offline_llm.app import create_app
from records.digest import canonical_json
from records.files import write_atomic
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.episode.config import DelegationConfig, EpisodeConfig
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.episode.tools.simulator import SimulateConfig
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig
from tests.synth.clinic import TASK, catalogue
from tests.synth.returning import SEVERAL

STORMY = EpisodeConfig(
    fault_injection=FaultInjectionConfig(
        weights={"success": 3, "transient_error": 1, "rate_limit": 1}
    )
)


def roles(url: str) -> dict[str, RoleConfig]:
    return {role: RoleConfig(base_url=url) for role in ("agent", "user", "simulator", "judge")}


def work(folder: Path, url: str, num: int, in_flight: int) -> None:
    """Rows of `num` attempts at the clinic's task. Written beside the folder, in the end: only the
    journal's own writes are to be killed at."""
    rows = asyncio.run(rollouts(folder, url, num, in_flight))
    write_atomic(folder.with_suffix(".json"), canonical_json(rows).encode())


def work_played(folder: Path, url: str, num: int, in_flight: int) -> None:
    """As `work`, with every tool played by the simulator."""
    rows = asyncio.run(rollouts(folder, url, num, in_flight, SimulateConfig(tools="all")))
    write_atomic(folder.with_suffix(".json"), canonical_json(rows).encode())


def work_delegated(folder: Path, url: str) -> None:
    """As `work`, one attempt by an agent that has the tool `delegate`."""
    episode = STORMY.model_copy(update={"delegation": DelegationConfig(share=1.0)})
    rows = asyncio.run(rollouts(folder, url, 1, episode=episode))
    write_atomic(folder.with_suffix(".json"), canonical_json(rows).encode())


def work_returning(folder: Path, url: str) -> None:
    """As `work`, one attempt at the task over two conversations."""
    rows = asyncio.run(rollouts(folder, url, 1, task=SEVERAL))
    write_atomic(folder.with_suffix(".json"), canonical_json(rows).encode())


async def rollouts(
    folder: Path,
    url: str,
    num: int,
    in_flight: int = 1,
    simulate: SimulateConfig = SimulateConfig(),
    episode: EpisodeConfig = STORMY,
    task: Row = TASK,
) -> dict[str, list[Row]]:
    config = RolloutConfig(attempts=num, episode=episode)
    items = plan_rollouts([task], config=config, roles=roles(url))
    gate = asyncio.Semaphore(in_flight)
    async with Gateway(roles(url), offline_app=create_app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="rollouts", invocation_id="test")

            async def one(item):
                async with gate:
                    return await run_rollout(
                        item,
                        llm,
                        journal,
                        catalogue=replace(catalogue(), simulate=simulate),
                        config=config,
                        roles=roles(url),
                    )

            results = await asyncio.gather(*map(one, items))
    tables = dict.fromkeys(name for result in results for name in result.tables)
    return {t: [row for r in results for row in r.tables.get(t, ())] for t in tables}


def rows_in(folder: Path) -> dict[str, list[Row]]:
    return json.loads(folder.with_suffix(".json").read_text())
