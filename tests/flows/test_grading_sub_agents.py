"""A dataset with sub-agents' conversations is graded and curated by episode."""

import asyncio
from pathlib import Path
from typing import Any

from flows.runtime.open_run import open_run
from records.store.commits import ItemStatus
from records.store.dataset import Dataset
from synth.curation.stages import CurationStage
from synth.judging.config import GradeConfig
from synth.judging.stages import GradingStage
from tests.records.kept import copy_of_schema_1


def test_conversations_of_sub_agents_follow_their_episodes(tmp_path: Path) -> None:
    kept = copy_of_schema_1(tmp_path)
    dataset = Dataset.open(kept)
    episodes = dataset.rows("trajectories")
    conversations = [
        {name: value for name, value in row.items() if name not in ("run_id", "schema_version")}
        | {"trajectory_id": f"{row['trajectory_id']}-sub", "episode_id": row["trajectory_id"]}
        | {"parent_call_id": "call_0", "session": 0, "termination_reason": reason}
        for row, reason in zip(episodes, ["agent_done", "max_turns"] * len(episodes), strict=False)
    ]
    with dataset.connect() as db:
        accepted = {i for (i,) in db.execute(_ACCEPTED).fetchall()}
    assert accepted
    dataset.commit(
        run_id="sub-agents",
        stage="rollouts",
        shard=0,
        tables={"trajectories": conversations},
        items={row["trajectory_id"]: ItemStatus("kept", None) for row in conversations},
    )

    async def grade() -> None:
        config = GradeConfig.model_validate({"code": []})
        async with open_run(config, str(kept), command="test") as opened:
            for kind in (GradingStage, CurationStage):
                await opened.run_stage(kind(opened))

    asyncio.run(grade())
    dataset = Dataset.open(kept)
    graded = {row["trajectory_id"] for row in dataset.rows("verdicts")}
    assert not any(i.endswith("-sub") for i in graded)
    with dataset.connect() as db:
        found: list[tuple[Any, ...]] = db.execute(_DECIDED).fetchall()
    assert found
    for whole, episode_accepted, episode_reason, own_accepted, own_reason in found:
        assert own_accepted == (whole and episode_accepted)
        expected = episode_reason or (None if whole else "sub_agent_unfinished")
        assert own_reason == expected
    assert {row[3] for row in found} == {True, False}


_ACCEPTED = "SELECT trajectory_id FROM trajectories WHERE accepted"
_DECIDED = """
SELECT own.termination_reason = 'agent_done', episode.accepted, episode.drop_reason, own.accepted,
  own.drop_reason
FROM trajectories AS own JOIN trajectories AS episode ON episode.trajectory_id = own.episode_id
WHERE own.parent_call_id IS NOT NULL AND episode.accepted IS NOT NULL"""
