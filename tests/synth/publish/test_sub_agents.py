"""Conversations of sub-agents in a dataset: read with their episode, and no episodes themselves."""

import csv
import json
from pathlib import Path

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.export import export_dataset
from synth.publish import conversations
from synth.publish.summary import summarise
from tests.synth.small_dataset import conversation, trajectory, write_dataset

ASKED = [
    {"role": "system", "content": "You work for another assistant."},
    {"role": "user", "content": "Find the boat Heron."},
]


def sub_agent_of(episode: str, call_id: str) -> Row:
    messages = [*ASKED, {"role": "assistant", "content": "There is one, for 20 EUR."}]
    own = {"episode_id": episode, "parent_call_id": call_id, "termination_reason": "agent_done"}
    return trajectory(f"{episode}-{call_id}", messages, **own, session=0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rejected = conversation("Another boat.")
    rows = [
        (trajectory("e1", episode_id="e1", session=0), None),
        (sub_agent_of("e1", "call_0"), None),
        (
            trajectory("e2", rejected, episode_id="e2", session=0),
            "failed_state",
        ),
        (sub_agent_of("e2", "call_0"), "failed_state"),
    ]
    return write_dataset(tmp_path_factory.mktemp("sub_agents") / "boats", rows)


def test_each_conversation_of_an_accepted_episode_is_a_line(
    dataset: Dataset, tmp_path: Path
) -> None:
    made = export_dataset(dataset, tmp_path / "out", format="openai")
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert made.rows == {"train": 2}
    with (tmp_path / "out" / "marks.csv").open(encoding="utf-8") as handle:
        marks = list(csv.DictReader(handle))
    assert [(m["episode_id"], m["parent_call_id"]) for m in marks] == [("e1", ""), ("e1", "call_0")]
    assert json.loads(lines[1])["messages"][:2] == ASKED


def test_figures_count_episodes(dataset: Dataset) -> None:
    totals = summarise(dataset).totals
    assert (totals["trajectories"], totals["accepted"], totals["curated"]) == (2, 1, 2)


def test_the_share_of_turns_with_several_calls_is_over_turns_with_calls(dataset: Dataset) -> None:
    """Of the accepted: one turn with two calls, one with one."""
    totals = summarise(dataset).totals
    assert (totals["several_calls"], totals["calling_turns"]) == (1, 2)


def test_preferences_pair_episodes_only(dataset: Dataset) -> None:
    with dataset.connect() as db:
        pairs = db.sql("SELECT chosen_id, rejected_id FROM preferences").fetchall()
        trained = db.sql("SELECT trajectory_id FROM sft ORDER BY 1").fetchall()
    assert not any("call_0" in i for pair in pairs for i in pair)
    assert trained == [("e1",), ("e1-call_0",)]


def test_a_sub_agents_conversation_is_shown(dataset: Dataset) -> None:
    (shown,) = conversations.read(dataset, ["e1-call_0"])
    assert [turn.text for turn in shown.turns][1:] == [
        "Find the boat Heron.",
        "There is one, for 20 EUR.",
    ]
