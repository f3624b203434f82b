"""A run whose sandboxes are on a cluster makes the rows that it makes on this machine."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from flows.cli import main as cli
from records.errors import ConfigError
from records.store.dataset import Dataset
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.lending.accounts import Accounts
from sandboxes.lending.leases import HERE, available, place_in_use
from synth.engine.shard_maker import CLUSTER, LEASES
from synth.pipeline.config import RunConfig
from synth.tasks.agents.agents import AgentConfig
from synth.tasks.config import TaskConfig
from tests.flows.pipeline_work import content_of, run_pipeline
from tests.flows.prefect_api import artifacts, flow_runs
from tests.kubernetes.leaks import on_the_real_node, running
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(unable() is not None, reason=f"no real Pods here: {unable()}"),
    pytest.mark.skipif(available() is not None, reason="the same run here needs a sandbox, too"),
]

CONFIG = RunConfig(
    name="placed",
    seed=0,  # of two tasks on code one is a problem, and one a bug in a repository
    domains=(),
    servers=("time",),
    code=("basics", "coinpurse"),
    agents=AgentConfig(code_share=0.67),
    tasks=TaskConfig(tasks_per_agent=1),
    num_tasks=3,
    concurrency=3,
    workers=1,
)


def written(config: RunConfig, settings: KubernetesSettings) -> str:
    """As a file: the run, the one line that puts it on a cluster, and how that cluster is."""
    lines = list(named(config.model_dump(mode="json", exclude_unset=True)))
    lines.append('sandboxes.backend = "kubernetes"')
    there = settings.model_dump(mode="json", exclude_defaults=True)
    return "\n".join([*lines, *named(there, "sandboxes.kubernetes.")])


def named(values: dict[str, Any], before: str = "") -> Iterator[str]:
    """TOML, a line for each value."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from named(cast(dict[str, Any], value), f"{before}{name}.")
        else:
            yield f"{before}{name} = {json.dumps(value)}"


def counted(dataset: Dataset, beginning: str) -> dict[str, int]:
    """What the run's timings count under names that begin so."""
    found: dict[str, int] = {}
    for row in dataset.rows("timings"):
        if row["name"].startswith(beginning):
            name = row["name"].removeprefix(beginning)
            found[name] = found.get(name, 0) + row["count"]
    return found


def test_synth_run_on_a_cluster_makes_the_same_rows_and_shows_what_it_took(
    stage: Stage, prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code, a repository and an MCP server; while the API server fails and throttles some requests,
    which reports and the artifact tell of."""
    monkeypatch.chdir(tmp_path)
    run_pipeline(tmp_path / "here", CONFIG)
    settings = stage.settings(stream_cpus=1)
    (tmp_path / "run.toml").write_text(written(CONFIG, settings))
    if stage.double is not None:
        ours = {
            "kind": "status", "count": 1, "verb": "create", "user_agent": "agentic-synth",
            "resource": "sandboxclaims" if stage.claims else "pods",
        }  # fmt: skip
        stage.fault(code=500, **ours)
        stage.fault(code=429, retry_after_s=1, **ours)
    assert cli.run(("run", "run.toml", "--dataset", "there")) == 0
    assert content_of(tmp_path / "there") == content_of(tmp_path / "here")
    dataset = Dataset.open(tmp_path / "there")
    assert {"mcp", "code"} <= {row["executed_by"] for row in dataset.rows("tool_calls")}
    worlds = [row["initial_state"].get("world") for row in dataset.rows("tasks")]
    assert sorted(world == "coinpurse" for world in worlds if world) == [False, True]

    counts = counted(dataset, CLUSTER)
    assert counts["claimed"] > 0
    assert counts["asked"] == counts["claimed"] + sum(
        n for name, n in counts.items() if name.startswith(("failed_", "no_room_"))
    )
    accounts = Accounts.of(counted(dataset, LEASES))
    accounts.check()
    assert not accounts.refused
    run = flow_runs(prefect_url, "pipeline-placed")["pipeline-placed"]
    assert run["state_type"] == "COMPLETED"
    shown: list[Any] = [artifacts(prefect_url, run["id"])["summary"]["data"]]
    shown.append((tmp_path / "there" / "report.html").read_text())
    words = ["Sandboxes on the cluster", "sandboxes asked for", f"{counts['asked']:,}"]
    words += ["mean time until a sandbox answered", "infrastructure failures"]
    if stage.double is not None:
        words += ["that the API server throttled", "that the API server failed"]
    assert [word for text in shown for word in words if word not in text] == []
    while running(stage) or on_the_real_node(stage):
        time.sleep(0.2)


def test_a_run_that_cannot_have_its_cluster_is_refused_before_any_work(
    stage: Stage, tmp_path: Path
) -> None:
    nowhere = stage.settings(namespace="there-is-none")
    sandboxes = {"backend": "kubernetes", "kubernetes": nowhere.model_dump()}
    told = CONFIG.model_dump(exclude_unset=True) | {"sandboxes": sandboxes}
    with pytest.raises(ConfigError):
        run_pipeline(tmp_path / "d", RunConfig.model_validate(told))
    assert not (tmp_path / "d").exists()
    assert place_in_use() is HERE
