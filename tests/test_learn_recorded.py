"""Recorded conversations of real models reach the trainer whole; each that does not is counted."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.learn_recorded import RecordedData, exported_rows
from benchmarks.recorded_episodes import (
    OPEN_CALLS,
    PART,
    ReadRecordings,
    RecordedEpisode,
    episodes_of_requests,
    json_lines,
    played_episode,
    read_recordings,
)
from benchmarks.recorded_learning import conversations_of, held_out_loss, read_back, toml_of
from benchmarks.recorded_rows import trajectory_id
from benchmarks.recorded_stations import Station, account_for
from records.chat.declarations import STYLES
from records.errors import SynthError
from tests.trainer.small_run import config_of, rows
from trainer.data.chat_format import ChatFormat, format_of
from trainer.data.corpus import open_corpus
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.training.loop import train

PLAYED = ("2f48e77c18d254b6", "923d227b3058c2ff", "36798192f6f9c429")
"""Without a call; with calls; and one over two conversations, which wrote notes."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RecordedData:
    lines = [line for line in json_lines("played.jsonl") if line["trajectory_id"] in PLAYED]
    requests = read_recordings(("requests",))
    endings = read_recordings(("endings",)).episodes[:5]
    episodes = [*map(played_episode, lines), *endings, *requests.episodes]
    recordings = sum(len(e.conversations) for e in episodes) + requests.left_out.total()
    read = ReadRecordings(episodes, recordings, requests.left_out)
    return RecordedData(read, tmp_path_factory.mktemp("recorded") / "out")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["Bytes alone write every text."], vocab_size=300)


def test_every_conversation_stays_or_goes_for_a_reason(data: RecordedData) -> None:
    stations = data.stations()
    assert account_for(stations)
    gone = sum(n for station in stations for n in station.left.values())
    assert data.read.recordings == stations[-1].stayed + gone
    assert sum(data.fates().values()) == stations[0].stayed


def test_every_conversation_is_exported_or_rejected_once(data: RecordedData) -> None:
    files = Path(data.rows.path).glob("*.parquet")
    exported = [row["trajectory_id"] for file in files for row in exported_rows(file)]
    curated = data.dataset.rows("curation")
    rejected = [row["trajectory_id"] for row in curated if not row["accepted"]]
    ids = [
        trajectory_id(episode, number)
        for episode in data.read.episodes
        for number in range(len(episode.conversations))
    ]
    assert sorted([*exported, *rejected]) == sorted(ids)
    assert all(row["drop_reason"] for row in curated if not row["accepted"])


def test_counts_that_do_not_add_up_are_an_error() -> None:
    with pytest.raises(SynthError, match="3 conversations come, 1 stay and 1 go"):
        Station("curation", 3, 1, {"near_duplicate": 1}).check()
    with pytest.raises(SynthError, match="2 conversations stay after grading, and 1 come"):
        account_for([Station("grading", 2, 2, {}), Station("curation", 1, 1, {})])


@pytest.mark.parametrize("style", STYLES)
def test_what_was_said_and_called_comes_back_from_the_tokens(
    data: RecordedData, tokenizer: Tokenizer, style: Any
) -> None:
    chat = ChatFormat(declarations=style, thinking=True)
    found = read_back(conversations_of(data.rows), tokenizer, chat)
    assert found.conversations == sum(data.exported.rows.values())
    assert found.calls > 20
    assert found.thoughts == 2
    assert not found.lost
    plain = read_back(conversations_of(data.rows), tokenizer, ChatFormat(declarations=style))
    assert plain.lost == {"reasoning": 2}


def test_a_call_that_is_not_as_it_was_is_counted(data: RecordedData, tokenizer: Tokenizer) -> None:
    calls = (c for c in conversations_of(data.rows) if any("tool_calls" in m for m in c.messages))
    one = next(calls)
    broken = [dict(message) for message in one.messages]
    calling = next(message for message in broken if message.get("tool_calls"))
    calling["tool_calls"] = [
        {**call, "function": {**call["function"], "arguments": " {} "}}
        for call in calling["tool_calls"]
    ]
    found = read_back([one._replace(messages=broken)], tokenizer, ChatFormat())
    assert found.lost["calls"] == 1  # the parser takes the blanks away


def test_the_calls_that_were_recorded_are_those_that_are_exported(data: RecordedData) -> None:
    recorded = {
        trajectory_id(episode, number): _calls(messages)
        for episode in data.read.episodes
        for number, messages in enumerate(episode.conversations)
    }
    for file in Path(data.rows.path).glob("*.parquet"):
        for row in exported_rows(file):
            assert _calls(row["messages"]) == recorded[row["trajectory_id"]]


def test_a_model_is_offered_every_tool_that_it_calls(data: RecordedData) -> None:
    for episode in data.read.episodes:
        names = {tool["name"] for tool in episode.offered}
        assert names >= {name for name, _ in _calls(episode.messages)}


def test_requests_of_one_conversation_become_it() -> None:
    records = json_lines("agent_calls.jsonl")
    episodes, left_out = episodes_of_requests(records)
    assert len(episodes) + left_out.total() == len(records)
    assert left_out == {PART: 20}
    thoughts = [_thoughts(episode) for episode in episodes]
    assert sorted(filter(None, thoughts)) == [
        ["Booked: AP-1010, balance 17.50."],
        ["Rate limited, not executed. Try again with the same arguments."],
    ]
    assert all("<think>" not in json.dumps(episode.messages) for episode in episodes)


def test_a_request_whose_calls_nobody_answered_is_left_out_by_its_reason() -> None:
    records = json_lines("agent_calls.jsonl")
    calling = next(r for r in records if r["answer"].get("tool_calls"))
    episodes, left_out = episodes_of_requests([calling])
    assert not episodes
    assert left_out == {OPEN_CALLS: 1}


def test_held_out_conversations_are_written_as_in_training(tmp_path: Path) -> None:
    """A model that writes its thoughts is not asked to answer without."""
    learnt, held_out = rows(8), rows(2)
    learnt[0]["messages"][1]["reasoning_content"] = "twice 0"
    for name, told in (("learnt", learnt), ("held_out", held_out)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, told)))
    run = train(config_of(tmp_path / "learnt.jsonl", tmp_path / "run", steps=1)).folder
    source = CorpusConfig(path=str(tmp_path / "held_out.jsonl"), held_out=True)
    held_out_loss(run, [source], 64, tmp_path / "tokens")
    assert open_corpus(tmp_path / "tokens").chat == format_of(run)
    assert format_of(run) == ChatFormat(system="", thinking=True)


def test_the_settings_of_a_run_read_back_as_they_were() -> None:
    settings = {
        "out": Path("a folder"),
        "steps": 3,
        "shape": {"num_layers": 1, "norm": True},
        "data": {"sources": [{"path": 'a "quoted" path', "weight": 0.5}]},
    }
    assert tomllib.loads(toml_of(settings)) == settings | {"out": "a folder"}


def _calls(messages: Any) -> list[tuple[str, Any]]:
    calls = [call["function"] for m in messages for call in m.get("tool_calls") or ()]
    return [
        (
            c["name"],
            json.loads(c["arguments"]) if isinstance(c["arguments"], str) else c["arguments"],
        )
        for c in calls
    ]


def _thoughts(episode: RecordedEpisode) -> list[str]:
    return [m["reasoning_content"] for m in episode.messages if "reasoning_content" in m]
