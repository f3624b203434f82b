"""When what a run is told to use has changed, its dataset goes on to work, its rows stay true."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from records.errors import ConfigError
from records.store.dataset import Dataset
from sandboxes.lending.leases import available
from sandboxes.mcp.servers import builtin_servers
from synth.catalogue.importing import ImportRequest, import_tools
from synth.episode.replay import replay
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import catalogue_of
from tests.flows.pipeline_work import run_pipeline

pytestmark = pytest.mark.slow

BAKERY = Path(__file__).parent.parent / "synth" / "fixtures" / "bakery.yaml"


def write_domain(path: Path, **changes: Any) -> RunConfig:
    """The bakery with `changes`, and a small run that uses nothing else."""
    domain = yaml.safe_load(BAKERY.read_text())
    path.write_text(yaml.safe_dump(domain | changes, sort_keys=False))
    return RunConfig(
        name="own", domains=(str(path),), servers=(), code=(), num_tasks=2, shard_size=2
    )


def test_an_edited_domain_stands_beside_what_was_made_with_the_old_one(tmp_path: Path) -> None:
    config = write_domain(tmp_path / "bakery.yaml")
    run_pipeline(tmp_path / "d", config)
    dataset = Dataset.open(tmp_path / "d")
    old = {row["trajectory_id"]: row for row in dataset.rows("trajectories")}
    run_pipeline(tmp_path / "d", write_domain(tmp_path / "bakery.yaml", description="A bakery."))
    both = {row["trajectory_id"]: row for row in dataset.rows("trajectories")}
    assert old
    assert old.items() < both.items()
    domain_of = {row["tool_id"]: row["domain_id"] for row in dataset.rows("tools")}
    task_of = {row["task_id"]: row for row in dataset.rows("tasks")}
    trajectory_of = {i: task_of[row["task_id"]]["domain_id"] for i, row in both.items()}
    for call in dataset.rows("tool_calls"):
        if call["tool_id"]:
            assert domain_of[call["tool_id"]] == trajectory_of[call["trajectory_id"]]
    with pytest.raises(ConfigError, match="edited since"):
        asyncio.run(replay(dataset, min(old), catalogue_of(dataset, config)))


def test_a_tool_added_to_a_domain_is_there_in_the_next_run(tmp_path: Path) -> None:
    tools = yaml.safe_load(BAKERY.read_text())["tools"]
    config = write_domain(tmp_path / "bakery.yaml", tools=tools[:-1])
    run_pipeline(tmp_path / "d", config)
    run_pipeline(tmp_path / "d", write_domain(tmp_path / "bakery.yaml"))
    dataset = Dataset.open(tmp_path / "d")
    assert Counter(row["name"] for row in dataset.rows("tools")) == Counter(
        tool["name"] for tool in tools
    )


@pytest.mark.skipif(available() is not None, reason="servers run in a sandbox only")
def test_a_server_imported_by_hand_may_be_used_by_a_run(tmp_path: Path) -> None:
    asyncio.run(import_tools(ImportRequest(servers=("time",)), tmp_path / "d"))
    dataset = Dataset.open(tmp_path / "d")
    imported = dataset.rows("tools")
    config = RunConfig(domains=(), servers=("time",), code=(), num_tasks=1, shard_size=1)
    run_pipeline(tmp_path / "d", config)
    assert dataset.rows("tools") == imported
    assert [row["server"] for row in dataset.rows("trajectories")] == ["time"]
    # the same server over another domain is not the one that was imported
    edited = builtin_servers()["time"].model_copy(update={"clock": "2026-05-04T09:00:00"})
    definition = tmp_path / "time.yaml"
    definition.write_text(yaml.safe_dump(edited.model_dump(mode="json")))
    other = config.model_copy(update={"servers": (str(definition),)})
    assert catalogue_of(dataset, config).tools.keys() == dataset.ids("tools")
    assert not catalogue_of(dataset, other).tools


@pytest.mark.skipif(available() is not None, reason="servers run in a sandbox only")
def test_servers_that_were_left_out_are_imported_once_they_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig(
        domains=("clinic_desk",), servers=("time",), code=(), num_tasks=1, shard_size=2
    )
    with monkeypatch.context() as without:
        without.setattr("synth.pipeline.sources.available", lambda: "bubblewrap is not installed")
        run_pipeline(tmp_path / "d", config)
        run_pipeline(tmp_path / "d", config)
    dataset = Dataset.open(tmp_path / "d")
    reasons = [status.reason for status in dataset.item_statuses("tools").values()]
    assert sorted(map(str, reasons)) == ["None", "no_sandbox"]
    assert {row["server"] for row in dataset.rows("tools")} == {None}
    run_pipeline(tmp_path / "d", config)
    assert {row["server"] for row in dataset.rows("tools")} == {None, "time"}


def test_a_run_without_a_usable_tool_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="all empty"):
        run_pipeline(tmp_path / "none", RunConfig(domains=(), servers=(), code=()))
    assert not (tmp_path / "none").exists()
    monkeypatch.setattr("synth.pipeline.sources.available", lambda: "bubblewrap is not installed")
    with pytest.raises(ConfigError, match=r"servers = \['time'\].*sandbox doctor"):
        run_pipeline(tmp_path / "d", RunConfig(domains=(), servers=("time",), code=(), num_tasks=1))
