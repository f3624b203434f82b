"""A run whose sandboxes are on a cluster makes the rows that it makes on this machine."""

import time
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from sandboxes.lending.accounts import Accounts
from sandboxes.lending.leases import HERE, available, place_in_use
from synth.engine.shard_maker import CLUSTER, LEASES
from synth.pipeline.config import RunConfig
from synth.publish.report import summary_markdown
from tests.flows.pipeline_work import content_of, run_pipeline
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(unable() is not None, reason=f"no real Pods here: {unable()}"),
    pytest.mark.skipif(available() is not None, reason="the same run here needs a sandbox, too"),
]

CONFIG = RunConfig(
    name="placed", domains=(), servers=(), code=(), num_tasks=2, shard_size=4, concurrency=4,
    workers=1,
)  # fmt: skip

USED = {
    "server": ({"servers": ["time"]}, "mcp"),
    "problem": ({"code": ["basics"]}, "code"),
    "repository": ({"code": ["coinpurse"], "num_tasks": 1}, "code"),
}
"""Name -> what a run is told to use, and what executed its calls."""


def told(uses: dict[str, Any], **more: Any) -> RunConfig:
    return RunConfig.model_validate(CONFIG.model_dump(exclude_unset=True) | uses | more)


def there(stage: Stage, uses: dict[str, Any]) -> RunConfig:
    settings = stage.settings(own_users=True, stream_cpus=1)
    sandboxes = {"backend": "kubernetes", "kubernetes": settings.model_dump()}
    return told(uses, sandboxes=sandboxes)


@pytest.mark.parametrize("what", USED)
def test_a_run_on_a_cluster_makes_the_same_rows_and_says_what_it_took(
    stage: Stage, tmp_path: Path, what: str
) -> None:
    uses, executed_by = USED[what]
    run_pipeline(tmp_path / "here", told(uses))
    run_pipeline(tmp_path / "there", there(stage, uses))
    assert content_of(tmp_path / "there") == content_of(tmp_path / "here")
    dataset = Dataset.open(tmp_path / "there")
    assert executed_by in {row["executed_by"] for row in dataset.rows("tool_calls")}
    counts = {name: 0 for name in ("asked", "claimed", "streams", "waited_ms")}
    leases: dict[str, int] = {}
    for row in dataset.rows("timings"):
        for begin, of in ((CLUSTER, counts), (LEASES, leases)):
            if row["name"].startswith(begin):
                name = row["name"].removeprefix(begin)
                of[name] = of.get(name, 0) + row["count"]
    assert counts["asked"] == counts["claimed"] > 0
    Accounts.of(leases).check()
    assert "Sandboxes on the cluster" in summary_markdown(dataset)
    while stage.kubectl("get", "pods", "-l", "synth.dev/owner", "-o", "name"):
        time.sleep(0.2)


def test_a_run_that_cannot_have_its_cluster_is_refused_before_any_work(
    stage: Stage, tmp_path: Path
) -> None:
    config = there(stage, {"servers": ["time"]})
    nowhere = config.sandboxes.kubernetes.model_copy(update={"namespace": "there-is-none"})
    sandboxes = config.sandboxes.model_copy(update={"kubernetes": nowhere})
    with pytest.raises(ConfigError):
        run_pipeline(tmp_path / "d", config.model_copy(update={"sandboxes": sandboxes}))
    assert not (tmp_path / "d").exists()
    assert place_in_use() is HERE
