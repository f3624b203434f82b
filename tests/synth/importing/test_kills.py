"""kill -9 at every write of an import: what is left is whole, and the same import completes it."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from tests.killing import killed_everywhere, run
from tests.synth.importing.examples import lines, openai, toucan_selection
from tests.synth.importing.import_work import import_file
from tests.synth.importing.test_importing import contents, many

STAGE = "import_trajectories"


def rows_by_trajectory(dataset: Dataset, table: str) -> set[str]:
    return {row["trajectory_id"] for row in dataset.rows(table)}


def accounts(dataset: Dataset) -> tuple[int, int, int]:
    rows = dataset.rows("stages")
    requested, kept, dropped = (
        sum(row[name] for row in rows) for name in ("requested", "kept", "dropped")
    )
    return requested, kept, dropped


@pytest.mark.parametrize("step", [pytest.param(7, marks=pytest.mark.slow), 59])
def test_killed_at_any_write_the_same_import_completes(step: int, tmp_path: Path) -> None:
    rows = [*many(4), {"x": 1}, openai(), many(1)[0], toucan_selection()]
    file = lines(tmp_path / "f.jsonl", rows)
    run(import_file, tmp_path / "whole", file)
    whole = Dataset.open(tmp_path / "whole")
    expected, statuses = contents(tmp_path / "whole"), whole.item_statuses(STAGE)
    assert accounts(whole) == (7, 6, 1)
    assert len(whole.commits()) == 3
    reached = set()
    for folder in killed_everywhere(import_file, tmp_path / "killed", file, step=step):
        if (folder / "dataset.json").exists():
            left = Dataset.open(folder)
            there = left.ids("trajectories")
            reached.add(len(left.commits()))
            assert (
                there
                == rows_by_trajectory(left, "imports")
                == rows_by_trajectory(left, "tool_calls")
            )
            assert {row["task_id"] for row in left.rows("trajectories")} == left.ids("tasks")
            assert there <= whole.ids("trajectories")
        run(import_file, folder, file)
        resumed = Dataset.open(folder)
        assert contents(folder) == expected
        assert resumed.ids("imports") == whole.ids("imports")
        assert resumed.item_statuses(STAGE) == statuses
        assert accounts(resumed) == accounts(whole)
        parts = [part.name for commit in resumed.commits() for part in commit.parts]
        assert sorted(path.name for path in folder.glob("tables/*/*")) == sorted(parts)
    assert {1, 2} <= reached
