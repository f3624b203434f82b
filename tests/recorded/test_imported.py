"""Conversations of a real model, as somebody else would hand them on, come in as they were."""

import json
from pathlib import Path

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.importing.importing import TrajectoryImport, import_trajectories
from synth.rubrics.turns import what_is_wrong

PLAYED = Path(__file__).with_name("played.jsonl")


def test_they_keep_their_words_calls_results_and_errors(tmp_path: Path) -> None:
    rows: list[Row] = [json.loads(line) for line in PLAYED.read_text().splitlines()]
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps({"messages": row["messages"]}) + "\n" for row in rows))
    report = import_trajectories(TrajectoryImport(files=(str(file),)), tmp_path / "d")
    assert (report.added, report.refused.total()) == (len(rows), 0)
    dataset = Dataset.open(tmp_path / "d")
    places = {row["trajectory_id"]: row["place"] for row in dataset.rows("imports")}
    calls: dict[str, list[Row]] = {}
    for made in dataset.rows("tool_calls"):
        calls.setdefault(made["trajectory_id"], []).append(made)
    for trajectory in dataset.rows("trajectories"):
        source = rows[int(places[trajectory["trajectory_id"]].removeprefix("line ")) - 1]
        said = [(m["role"], m.get("content") or "") for m in source["messages"]]
        assert [(m["role"], m["content"]) for m in trajectory["messages"]] == said
        assert what_is_wrong(trajectory["messages"]) is None
        found = sorted(calls.get(trajectory["trajectory_id"], ()), key=lambda c: c["call_index"])
        own = [call for call in source["calls"] if call["actor"] == "agent"]
        assert [_told(call) for call in found] == [_told(call) for call in own]


def _told(call: Row) -> tuple[object, ...]:
    return call["name"], call["arguments"], call["observation"], call["is_error"]
