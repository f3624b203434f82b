"""Work of one process that asks a model in batches, small enough to be killed anywhere."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.endpoint.batch import Batches, BatchPace
from synth.llm.endpoint.batch_store import BatchStore
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.settings.config import BudgetConfig, RoleConfig
from tests.doubles.double import KEY

KEY_ENV = "BATCH_DOUBLE_KEY"
QUICK = BatchPace(quiet_s=0.05, longest_s=1.0, first_poll_s=0.01, longest_poll_s=0.02)
ITEMS = ("a", "b", "c")


def role(url: str, **changes: Any) -> RoleConfig:
    settings: dict[str, Any] = {
        "base_url": url,
        "api_key_env": KEY_ENV,
        "models": ["offline-model"],
        "max_tokens": 50,
        "backoff_s": 0.001,
        "batch": True,
        "usd_per_million_prompt": 1.0,
        "usd_per_million_completion": 4.0,
    }
    return RoleConfig(**settings | changes)


def talk(item: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Write a word about {item}."}]


@asynccontextmanager
async def llm_of(
    configs: Mapping[str, RoleConfig],
    folder: Path,
    *,
    shard: str = "shard",
    limit: int | None = None,
    pace: BatchPace = QUICK,
) -> AsyncIterator[LLM]:
    os.environ[KEY_ENV] = KEY
    with ShardJournal(folder / f"{shard}.sqlite") as journal:
        budget = Budget(BudgetConfig(tokens=limit), spent_in(journalled_rows(journal)))
        batches = Batches(BatchStore(folder / "batches" / "run.sqlite"), pace)
        async with Gateway(configs, budget=budget, patience_s=5.0, batches=batches) as gateway:
            yield LLM(gateway, journal, stage="judging", invocation_id=str(os.getpid()))


async def ask_all(llm: LLM, items: Sequence[str] = ITEMS, *, role: str = "judge") -> list[str]:
    asked = (llm.chat(role, talk(item), item=item, step="0") for item in items)
    return [answer.content for answer in await asyncio.gather(*asked)]


def rows_in(folder: Path, shard: str = "shard") -> list[Row]:
    with ShardJournal(folder / f"{shard}.sqlite") as journal:
        return journalled_rows(journal)


def work(folder: Path, url: str, limit: int | None = None) -> None:
    """Every item asked once, all at once."""

    async def run() -> None:
        async with llm_of({"judge": role(url)}, folder, limit=limit) as llm:
            await ask_all(llm)

    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(run())
