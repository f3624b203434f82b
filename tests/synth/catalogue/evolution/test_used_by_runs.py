"""Evolved tools in runs of the pipeline: trajectories are accepted, and stay as they are."""

import asyncio
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.catalogue.evolved_domains import evolved_domains
from synth.episode.replay import replay
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import catalogue_of
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN
from tests.flows.pipeline_work import run_pipeline
from tests.synth.catalogue.evolution.boats import generator, plain_tools
from tests.synth.catalogue.evolution.work import config_for, content_of, rows_of, run_evolution

pytestmark = pytest.mark.slow

DOMAINS = ("clinic_desk", "web_shop")
CONFIG = RunConfig(
    name="evolved",
    seed=2,
    domains=("evolved",),
    servers=(),
    code=(),
    num_tasks=24,
    shard_size=8,
    tasks=TaskConfig(forms=ALL_PLAIN),  # goals with structure are beyond the offline model
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("used") / "data"
    with generator(plain_tools) as url:
        run_evolution(folder, config_for(url, count=50, domains=DOMAINS))
    run_pipeline(folder, CONFIG)
    return folder


def evolved(folder: Path) -> set[str]:
    return {row["tool_id"] for row in rows_of(folder, "proposals")} - {None}


def test_trajectories_over_evolved_tools_are_accepted(folder: Path) -> None:
    accepted = {row["trajectory_id"] for row in rows_of(folder, "curation") if row["accepted"]}
    calls = [call for call in rows_of(folder, "tool_calls") if call["tool_id"] in evolved(folder)]
    assert {call["trajectory_id"] for call in calls} & accepted
    assert any(call["state_diff"] for call in calls if call["trajectory_id"] in accepted)


def test_they_replay(folder: Path) -> None:
    dataset = Dataset.open(folder)
    catalogue = catalogue_of(dataset, CONFIG)
    trajectory = dataset.rows("trajectories")[0]["trajectory_id"]
    found = asyncio.run(replay(dataset, trajectory, catalogue, CONFIG.rollouts.episode))
    assert found.differences == []


def test_an_agent_gets_a_part_of_a_large_domain(folder: Path) -> None:
    catalogue = catalogue_of(Dataset.open(folder), CONFIG)
    sizes = [len(domain.tools) for domain in catalogue.domains.values()]
    most = CONFIG.agents.max_tools + CONFIG.agents.max_distractors
    assert min(sizes) > most
    assert all(len(agent["tool_ids"]) <= most for agent in catalogue.agents.values())


def test_more_tools_change_no_row_of_a_run_that_has_begun(folder: Path, tmp_path: Path) -> None:
    before = content_of(folder)
    with generator(plain_tools) as url:
        run_evolution(folder, config_for(url, count=60, domains=DOMAINS))
    run_pipeline(folder, CONFIG)
    after = content_of(folder)
    assert before["tools"] != after["tools"]
    for table in ("agents", "tasks", "trajectories", "tool_calls", "curation"):
        assert before[table] == after[table], table


def test_a_domain_that_was_not_evolved_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    dataset = Dataset.open(folder)
    chosen = evolved_domains(dataset, ["evolved:web_shop"], run_id="x")
    assert [domain.name for domain in chosen.values()] == ["web_shop"]
    with pytest.raises(ConfigError, match=r"evolved:boat_yard.*clinic_desk, web_shop"):
        evolved_domains(dataset, ["evolved:boat_yard"], run_id="x")
    with pytest.raises(ConfigError, match="synth tools evolve"):
        run_pipeline(tmp_path / "empty", CONFIG)


def test_a_dry_run_has_a_dataset_of_its_own() -> None:
    assert CONFIG.in_small().domains == ("builtin/*",)


def test_an_evolved_domain_is_served_over_mcp(folder: Path) -> None:
    command = ["-m", "flows.cli.main", "tools", "export-mcp", "web_shop", "--dataset", str(folder)]
    parameters = StdioServerParameters(command=sys.executable, args=command)
    dataset = Dataset.open(folder)
    [domain] = evolved_domains(dataset, ["evolved:web_shop"], run_id="x").values()

    async def listed() -> list[str]:
        async with Client(parameters, read_timeout_seconds=60) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(listed()) == list(domain.programs)
