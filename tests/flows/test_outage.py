"""An endpoint that is gone stops the run as a spent budget does: nothing is lost, nothing fails."""

import asyncio
from pathlib import Path

import pytest

from records.errors import UnavailableError
from records.store.dataset import Dataset
from tests.flows.endpoint_work import Endpoint, at, newest_end, paid
from tests.flows.pipeline_work import content_of
from tests.flows.test_workers import pipeline
from tests.synth.llm.server import serve

pytestmark = pytest.mark.slow

SETTINGS = {"shard_size": 2, "concurrency": 4}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endpoint_that_stays_gone_stops_the_run_and_leaves_all_pending(
    workers: int, tmp_path: Path
) -> None:
    async def all_of_it() -> None:
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            config = at(server, workers=workers, outage_s=0.5, **SETTINGS)
            await pipeline(tmp_path / "whole", config)
            gone_from = 2 * len(server.requests) - len(server.requests) // 3
            endpoint.broken = lambda body: len(server.requests) >= gone_from
            with pytest.raises(UnavailableError, match="answered 500"):
                await pipeline(tmp_path / "d", config)
            endpoint.broken = lambda body: False
            status, detail = newest_end(tmp_path / "d")
            assert status == "outage_stop"
            assert "answered 500" in detail
            dataset = Dataset.open(tmp_path / "d")
            statuses = [
                status
                for stage in dataset.stages()
                for items in dataset.items_of(stage)
                for status in items.values()
            ]
            assert not [status for status in statuses if status.status == "failed"]
            await pipeline(tmp_path / "d", config)

    asyncio.run(all_of_it())
    assert content_of(tmp_path / "d") == content_of(tmp_path / "whole")
    assert max(paid(tmp_path / "d").values()) == 1
