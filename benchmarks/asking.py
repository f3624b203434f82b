"""A benchmark that asks models: roles from a file, answers kept in a folder."""

import json
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from offline_llm.app import create_app
from records.files import write_atomic
from records.store.journal import ShardJournal
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import RoleConfig


def roles_of(path: Path) -> dict[str, RoleConfig]:
    """A TOML file with a table for each role, such as `[generator]`."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: RoleConfig.model_validate(table) for name, table in tables.items()}


@asynccontextmanager
async def asking(roles: dict[str, RoleConfig], folder: Path, stage: str) -> AsyncIterator[LLM]:
    """The client; what was answered before is taken from the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Gateway(roles, offline_app=create_app) as gateway:
        with ShardJournal(folder / "answers.sqlite") as journal:
            yield LLM(gateway, journal, stage=stage, invocation_id=stage)


def write_lines(path: Path, rows: Sequence[Any]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomic(path, text.encode())
