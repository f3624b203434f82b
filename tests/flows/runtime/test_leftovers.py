"""What a run leaves behind: nothing when it was refused, no journal that nobody will read."""

import asyncio
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from records.errors import ConfigError, PendingError, TransientError
from records.store.dataset import Dataset
from synth.curation.settings.config import CurationConfig
from synth.engine.job_config import OfflineConfig
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import SMALL, run_pipeline

NOWHERE = RoleConfig(base_url="http://127.0.0.1:9/v1")


def refused(folder: Path) -> None:
    offline = OfflineConfig(roles=("generator", "user", "judge"))
    roles = SMALL.roles | {"agent": NOWHERE}
    config = SMALL.model_copy(update={"roles": roles, "offline": offline})
    with pytest.raises(ConfigError, match=r"roles\.agent: http.*Refused"):
        run_pipeline(folder, config)


def test_a_run_refused_by_its_endpoint_leaves_no_folder(tmp_path: Path) -> None:
    refused(tmp_path / "deep" / "d")
    assert not (tmp_path / "deep" / "d").exists()


def test_a_dataset_that_was_there_before_stays(tmp_path: Path) -> None:
    Dataset.create_or_open(tmp_path / "d")
    refused(tmp_path / "d")
    assert Dataset.open(tmp_path / "d").commits() == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "export"])
def test_a_place_that_cannot_be_written_is_wrong_use(
    refusal: Synth, small_run: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").write_text("mine")
    done = refusal(command, str(small_run), "--out", "file/below")
    assert done.returncode == 2, done.stderr
    assert "--out file/below" in done.stderr
    assert "Traceback" not in done.stderr


def journals(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.sqlite*"))


def test_a_run_that_is_done_keeps_no_journal(small_run: Path) -> None:
    assert journals(small_run) == []


class Unlucky:
    """A stage of three items; the second finds no endpoint, as long as there is none."""

    name = "personas"

    def __init__(self, *, down: bool) -> None:
        self.down = down

    def plan(self) -> list[Item]:
        return [Item(name, {}) for name in ("one", "two", "three")]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        if item.item_id == "two" and self.down:
            raise TransientError("down")
        return ItemResult({})


def test_the_journal_stays_while_an_item_may_go_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synth.engine.shard_maker.ITEM_RETRY_S", 0.0)
    config = RunConfig(domains=("home_hub",), servers=(), code=(), shard_size=10)

    async def run(*, down: bool, retry_failed: bool) -> None:
        opened = open_run(config, str(tmp_path / "d"), command="test", retry_failed=retry_failed)
        async with opened as run:
            stage = Unlucky(down=down)
            await run.run_stage(stage)

    with pytest.raises(PendingError, match="1 infra_error"):
        asyncio.run(run(down=True, retry_failed=False))
    assert journals(tmp_path / "d") == ["personas-00000.sqlite"]
    asyncio.run(run(down=False, retry_failed=True))
    assert journals(tmp_path / "d") == []


@pytest.mark.slow
def test_going_back_to_an_earlier_curation_makes_it_the_newest_again(tmp_path: Path) -> None:
    strict = SMALL.model_copy(update={"curation": CurationConfig(sequence_min=1)})
    newest: list[str] = []
    for config in (SMALL, strict, SMALL, SMALL, strict):
        run_pipeline(tmp_path / "d", config)
        query = "select distinct curation_id from trajectories where accepted is not null"
        [(curation_id,)] = Dataset.open(tmp_path / "d").connect().execute(query).fetchall()
        newest.append(curation_id)
    first, second, again, still, last = newest
    assert len({first, second, again, last}) == 4
    assert still == again  # running once more decides nothing anew
    rows = Dataset.open(tmp_path / "d").rows("curation")
    decided = {
        i: [
            (r["trajectory_id"], r["accepted"], r["drop_reason"])
            for r in rows
            if r["curation_id"] == i
        ]
        for i in newest
    }
    assert decided[first] == decided[again]
    assert decided[second] == decided[last]
