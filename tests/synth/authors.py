"""Stages with a generator behind them: the offline model, or words fixed by the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from offline_llm.app import create_app
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig

GENERATOR = RoleConfig()


class _Fixed(RoleConfig):
    def identity(self) -> dict[str, Any]:
        return {"models": ["fixed"]}


FIXED_GENERATOR = _Fixed()
"""Its identity does not change with the settings that roles have: for goldens."""


@asynccontextmanager
async def offline_llm(folder: Path) -> AsyncIterator[LLM]:
    with ShardJournal(folder / "shard.sqlite") as journal:
        async with Gateway({"generator": GENERATOR}, offline_app=create_app) as gateway:
            yield LLM(gateway, journal, stage="test", invocation_id="test")


def with_offline(folder: Path, work: Callable[[LLM], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with offline_llm(folder) as llm:
            return await work(llm)

    return asyncio.run(run())


class FixedWords:
    """A generator that always says what the test gave it, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def structured(self, role: str, messages: list[Any], **where: Any) -> Any:
        self.asked.append({"role": role, "messages": messages, **where})
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def llm(self) -> LLM:
        return cast(LLM, self)
