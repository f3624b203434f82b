"""A whole run on a joined server: from its definition to accepted trajectories that replay."""

import asyncio
from pathlib import Path

import pytest

from records.store.dataset import Dataset
from synth.episode.replay import replay
from synth.episode.rollout import RolloutConfig
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import catalogue_of
from synth.tasks.config import TaskConfig
from tests.flows.goals_endpoint import GoalsEndpoint
from tests.flows.pipeline_work import run_pipeline
from tests.sandboxes.mcp.joined_work import WARD, joined_in
from tests.synth.clinic import QUIET
from tests.synth.llm.server import in_thread
from tests.synth.tasks.test_joined_goals import OMAR, ONE_PART

PLAIN = TaskConfig().server_variants.model_copy(
    update={"missing_parameter": 0.0, "irrelevant_tool": 0.0}
)


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_run_on_a_joined_server_gives_trajectories_that_replay(tmp_path: Path) -> None:
    joined_in(tmp_path, *WARD)
    folder = tmp_path / "d"
    with in_thread(GoalsEndpoint({"Omar Haddad": OMAR, "she called": ONE_PART}).script) as server:
        role = RoleConfig(base_url=server.url, models=(ModelConfig(name="m"),))
        config = RunConfig(
            name="office",
            domains=(),
            servers=(str(tmp_path / "office.yaml"),),
            code=(),
            num_tasks=1,
            tasks=TaskConfig(server_variants=PLAIN),
            rollouts=RolloutConfig(episode=QUIET),
        )
        meant = config.offline.model_copy(update={"roles": ("user", "judge")})
        roles = config.roles | {"generator": role, "agent": role}
        config = config.model_copy(update={"roles": roles, "offline": meant})
        run_pipeline(folder, config)
    dataset = Dataset.open(folder)
    goals = {row["proposed"]["goal"]: row["drop_reason"] for row in dataset.rows("server_goals")}
    assert goals == {OMAR["goal"]: None, ONE_PART["goal"]: "not_shared"}
    [decided] = dataset.rows("curation")
    assert (decided["accepted"], decided["drop_reason"]) == (True, None)
    [trajectory] = dataset.rows("trajectories")
    assert trajectory["server"] == "office"
    played = trajectory["trajectory_id"]
    calls = [row for row in dataset.rows("tool_calls") if row["trajectory_id"] == played]
    assert [call["name"] for call in calls] == [call["tool"] for call in OMAR["calls"]]
    for cassette in (False, True):
        found = asyncio.run(
            replay(dataset, played, catalogue_of(dataset, config), QUIET, cassette=cassette)
        )
        assert (found.num_calls, found.differences) == (len(calls), [])
