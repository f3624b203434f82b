"""One item's failure is its own, whatever it is; the others are made and committed."""

import asyncio
import logging
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from synth.engine.shard_maker import INTERNAL_ERROR
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.pipeline.config import RunConfig


class Meeting:
    """A stage whose item `two` meets a defect of ours."""

    name = "personas"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def plan(self) -> list[Item]:
        return [Item(name, {}) for name in ("one", "two", "three")]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        if item.item_id == "two":
            raise self.error
        return ItemResult({})


async def run(folder: Path, error: Exception) -> dict[str, str]:
    config = RunConfig(domains=("home_hub",), servers=(), code=(), shard_size=10)
    async with open_run(config, str(folder / "d"), command="test") as run:
        stage = Meeting(error)
        await run.run_stage(stage)
        statuses = run.dataset.item_statuses(stage.name)
    return {item: status.reason or status.status for item, status in statuses.items()}


def test_a_defect_met_on_one_item_fails_that_item(tmp_path, caplog):
    with caplog.at_level(logging.ERROR):
        found = asyncio.run(run(tmp_path, KeyError("unheard of")))
    assert found == {"one": "kept", "two": INTERNAL_ERROR, "three": "kept"}
    assert "unheard of" in caplog.text


def test_a_full_disk_is_no_items_fault(tmp_path):
    with pytest.raises(OSError, match="no space"):
        asyncio.run(run(tmp_path, OSError(28, "no space left")))
