"""An endpoint that is gone stops the run as a spent budget does: nothing is lost, nothing fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from records.errors import UnavailableError
from records.store.dataset import Dataset
from synth.llm.endpoint.gate import Gate
from tests.flows.endpoint_work import Endpoint, at, newest_end, paid
from tests.flows.pipeline_work import content_of
from tests.flows.test_workers import pipeline
from tests.synth.llm.server import serve

pytestmark = pytest.mark.slow

SETTINGS = {"shard_size": 2, "concurrency": 4}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endpoint_that_stays_gone_stops_the_run_and_leaves_all_pending(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = gone_after = 0
    enter = Gate.enter

    async def gone(self: Gate, *args: Any, **more: Any) -> int:
        nonlocal entered
        entered += 1
        if gone_after and entered > gone_after:
            raise UnavailableError("gone since 14:03, which is longer than the run waits")
        return await enter(self, *args, **more)

    async def all_of_it() -> None:
        nonlocal gone_after, entered
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            config = at(server, workers=workers, **SETTINGS)
            await pipeline(tmp_path / "whole", config)
            monkeypatch.setattr(Gate, "enter", gone)
            gone_after = entered_in_whole(tmp_path) * 2 // 3
            with pytest.raises(UnavailableError, match="since 14:03"):
                await pipeline(tmp_path / "d", config)
            gone_after = 0
            status, detail = newest_end(tmp_path / "d")
            assert status == "outage_stop"
            assert "since 14:03" in detail
            dataset = Dataset.open(tmp_path / "d")
            found = {s.status for stage in dataset.stages() for s in statuses(dataset, stage)}
            assert found <= {"kept", "dropped"}
            await pipeline(tmp_path / "d", config)

    asyncio.run(all_of_it())
    assert content_of(tmp_path / "d") == content_of(tmp_path / "whole")
    assert max(paid(tmp_path / "d").values()) == 1


def entered_in_whole(folder: Path) -> int:
    return sum(paid(folder / "whole").values())


def statuses(dataset: Dataset, stage: str) -> list[Any]:
    return [status for items in dataset.items_of(stage) for status in items.values()]
