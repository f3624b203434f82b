"""`synth diff CURATION_A CURATION_B --dataset D`: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run
from tests.synth.small_dataset import trajectory, write_dataset


def test_two_curations_of_a_dataset_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "d"
    made = [(trajectory("trajectory-1"), None), (trajectory("trajectory-2"), "failed_state")]
    dataset = write_dataset(root, made)
    stricter = {"curation_id": "curation-2", "accepted": False, "drop_reason": "domain_quota"}
    rows = [row | stricter for row in dataset.rows("curation") if row["accepted"]]
    dataset.commit(run_id="run-2", stage="curation", shard=0, tables={"curation": rows})
    assert run(["diff", "curation-1", "curation-2", "--dataset", str(root), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["changed"] == [
        {
            "trajectory_id": "trajectory-1",
            "first": "kept",
            "second": "domain_quota",
            "loss_changed": False,
        },
        {
            "trajectory_id": "trajectory-2",
            "first": "failed_state",
            "second": "not there",
            "loss_changed": False,
        },
    ]
    assert {one["reason"]: one["first"] - one["second"] for one in told["reasons"]} == {
        "domain_quota": -1,
        "failed_state": 1,
        "kept": 1,
        "not there": -1,
    }
    assert run(["diff", "curation-1", "curation-1", "--dataset", str(root)]) == 0
    assert run(["diff", "curation-1", "nothing", "--dataset", str(root)]) == 2
    assert run(["diff", "curation-1", "curation-1", "--dataset", str(root), "--bytes"]) == 2
    assert "is no curation of" in capsys.readouterr().err
    assert run(["diff", "a", "b", "--json"]) == 2
