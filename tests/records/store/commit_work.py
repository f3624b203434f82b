"""Work for child processes: two shards committed as a stage would, resumable by running again."""

from pathlib import Path

from records.store.dataset import Dataset, ItemStatus
from records.store.lease import hold
from tests.records.rows import row, trajectories

KEPT = ItemStatus("kept", None)


def two_shards(folder: Path) -> None:
    dataset = Dataset.create_or_open(folder)
    with hold(dataset, run_id="r", what="two shards"):
        for shard, ids in enumerate([("a", "b"), ("c",)]):
            if dataset.has_shard("r", "rollouts", shard):
                continue
            with_tool = [one for one in ids if one != "c"]
            calls = [row("tool_calls", trajectory_id=one, call_index=0) for one in with_tool]
            dataset.commit(
                run_id="r",
                stage="rollouts",
                shard=shard,
                tables={"trajectories": trajectories(*ids), "tool_calls": calls},
                items=dict.fromkeys(ids, KEPT),
            )
