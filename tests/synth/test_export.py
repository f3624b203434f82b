"""Exports: other programs read them, and what must not leave stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from records.errors import ConfigError
from records.schemas import Row
from records.store import Dataset
from synth import export
from synth.export import export_dataset, fault
from tests.synth.small_dataset import MODEL, conversation, trajectory, write_dataset

# Hermes' way of spelling tools and calls, as most open templates do
TEMPLATE = """
{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
{% endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}
{%- set function = call.function %}
<tool_call>{"name": {{ function.name | tojson }}, "arguments": {{ function.arguments | tojson }}}
{%- raw %}</tool_call>{% endraw %}
{%- endfor %}
{% endfor %}"""


def garbled() -> list[Row]:
    """A call whose arguments are no JSON, told so, and made again."""
    messages = conversation()
    messages[2]["tool_calls"][1]["function"]["arguments"] = '{"name": Heron'
    return messages


def unfinished() -> list[Row]:
    return conversation()[:-1]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rows = [
        (trajectory("a1"), None),
        (trajectory("a2", garbled()), None),
        (trajectory("a3", unfinished()), None),
        (trajectory("h1", split="heldout_task"), None),
        (trajectory("h2", split="heldout_domain"), None),
        (trajectory("r1"), "failed_state"),
    ]
    return write_dataset(tmp_path_factory.mktemp("export") / "boats", rows)


def load(path: Path, cache: Path) -> Any:
    import datasets  # a second and more, which collecting tests should not take

    return datasets.load_dataset(str(path), cache_dir=str(cache))


def test_load_dataset_gives_the_rows_of_the_sql_view(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", format="hf")
    loaded = load(tmp_path / "out", tmp_path / "cache")
    assert list(loaded) == ["train"]
    with dataset.connect() as db:
        query = (
            "SELECT trajectory_id, messages::VARCHAR, tools::VARCHAR, train_turns FROM sft "
            "WHERE split = 'train' AND trajectory_id != 'a3' ORDER BY trajectory_id"
        )
        expected = db.execute(query).fetchall()
    assert made.rows == len(expected) == 2
    for row, (trajectory_id, messages, tools, train_turns) in zip(
        loaded["train"], expected, strict=True
    ):
        assert row["trajectory_id"] == trajectory_id
        assert row["tools"] == json.loads(tools)
        assert row["train_turns"] == train_turns
        assert as_wire(row["messages"]) == json.loads(messages)


def as_wire(messages: list[Row]) -> list[Row]:
    """Arguments back to text, as they are stored."""
    for message in messages:
        for made in message.get("tool_calls", ()):
            arguments = made["function"]["arguments"]
            if not isinstance(arguments, str):
                made["function"]["arguments"] = json.dumps(arguments)
    return messages


def test_arguments_are_objects_where_they_are_json(dataset: Dataset, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", format="hf")
    first, second = load(tmp_path / "out", tmp_path / "cache")["train"]
    calls = first["messages"][2]["tool_calls"]
    assert calls[0]["function"]["arguments"] == {"name": "Heron"}
    assert calls[1]["function"]["arguments"] == {"name": "Heron", "limit": 3}
    assert second["messages"][2]["tool_calls"][1]["function"]["arguments"] == '{"name": Heron'


def test_a_chat_template_renders_tools_and_calls(dataset: Dataset, tmp_path: Path) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    export_dataset(dataset, tmp_path / "out", format="hf")
    row = load(tmp_path / "out", tmp_path / "cache")["train"][0]
    [text], _ = render_jinja_template(
        conversations=[row["messages"]], tools=row["tools"], chat_template=TEMPLATE
    )
    assert '<tool_call>{"name": "find_boats", "arguments": {"name": "Heron"}}</tool_call>' in text
    assert '"name": "rent_boat", "arguments": {"name": "Heron", "limit": 3}' in text
    assert text.count("<|tool|>") == 3
    assert '"description": "The tool find_boats."' in text
    assert text.rstrip().endswith("<|assistant|>Done, it costs 20 EUR.")


def test_openai_lines_are_the_wire_form(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", format="openai")
    lines = [json.loads(line) for line in (tmp_path / "out/train.jsonl").read_text().splitlines()]
    assert made.rows == len(lines) == 2
    for line in lines:
        assert line.keys() == {"messages", "tools"}
        assert line["messages"][-1]["role"] == "assistant"
        assert not any("reasoning_content" in message for message in line["messages"])
        for message in line["messages"]:
            for asked in message.get("tool_calls", ()):
                assert isinstance(asked["function"]["arguments"], str)
        assert fault(line["messages"]) is None


def test_turns_without_loss_have_no_weight() -> None:
    trained = [m["role"] == "assistant" and i > 2 for i, m in enumerate(conversation())]
    written = export.openai_messages(conversation(), trained)
    weights = [m.get("weight") for m in written if m["role"] == "assistant"]
    assert weights == [0, None, None]


def test_rejected_rows_never_and_held_out_rows_only_when_asked(
    dataset: Dataset, tmp_path: Path
) -> None:
    made = export_dataset(dataset, tmp_path / "out", format="hf")
    assert made.splits == {"train": 2}
    assert made.left_out == {"held_out": 2, "no_closing_message": 1}
    all_of_it = export_dataset(dataset, tmp_path / "all", format="hf", include_heldout=True)
    assert all_of_it.splits == {"train": 2, "heldout_task": 1, "heldout_domain": 1}
    loaded = load(tmp_path / "all", tmp_path / "cache")
    assert {split: rows["trajectory_id"] for split, rows in loaded.items()} == {
        "train": ["a1", "a2"],
        "heldout_task": ["h1"],
        "heldout_domain": ["h2"],
    }
    with dataset.connect() as db:
        found = db.execute("SELECT count(*) FROM trajectories WHERE accepted").fetchone()
    for result in (made, all_of_it):
        assert found == (result.rows + sum(result.left_out.values()),)


@pytest.mark.parametrize("license_", [None, "unknown"])
def test_unknown_licences_stay_unless_asked_for(license_: str | None, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), None)], license_=license_)
    with pytest.raises(ConfigError, match="nothing to export: 1 unknown_license"):
        export_dataset(dataset, tmp_path / "out", format="hf")
    assert not (tmp_path / "out").exists()
    made = export_dataset(dataset, tmp_path / "out", format="hf", include_unknown_license=True)
    assert made.licenses == {"Apache-2.0 AND unknown": 1}


def test_the_card_says_what_and_from_where(dataset: Dataset, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", format="hf", include_heldout=True)
    _, front, body = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["license"] == "apache-2.0"
    assert fields["size_categories"] == ["n<1K"]
    [config] = fields["configs"]
    for data_file in config["data_files"]:
        for path in data_file["path"]:
            assert (tmp_path / "out" / path).is_file()
    assert "Template policy" in body
    assert "| train | 2 |" in body
    assert "| no\\_closing\\_message | 1 |" in body
    assert f"| agent | {MODEL.replace('-', chr(92) + '-')} | 4 |" in body
    columns = pq.read_schema(tmp_path / "out/data/train-00000-of-00001.parquet").names
    assert all(f"`{column}`" in body for column in columns)


def test_an_export_that_fails_leaves_nothing(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError("disk")

    monkeypatch.setattr(export, "card", fail)
    for format_ in ("hf", "openai"):
        with pytest.raises(OSError, match="disk"):
            export_dataset(dataset, tmp_path / "out", format=format_)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export_dataset(dataset, tmp_path / "out", format="hf")  # an empty one is as good as none
    with pytest.raises(ConfigError, match="not empty"):
        export_dataset(dataset, tmp_path / "out", format="hf")


def test_many_rows_make_several_files(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS_PER_FILE", 1)
    made = export_dataset(dataset, tmp_path / "out", format="hf")
    files = sorted(path.name for path in (tmp_path / "out/data").iterdir())
    assert files == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    assert made.rows == 2


def _twice() -> list[Row]:
    messages = conversation()
    messages[2]["tool_calls"][1]["id"] = "call_0"
    return messages


FAULTS: dict[str, Callable[[], list[Row]]] = {
    "no_closing_message": unfinished,
    "call_without_result": lambda: [
        m for m in conversation() if m.get("content") != "rate limited"
    ],
    "result_without_call": lambda: [m for m in conversation() if "reasoning_content" not in m],
    "two_user_turns": lambda: [{"role": "user", "content": "a"}, *conversation()[1:]],
    "repeated_call_id": _twice,
}


@pytest.mark.parametrize("reason", FAULTS)
def test_conversations_that_templates_cannot_take_are_named(reason: str) -> None:
    assert fault(FAULTS[reason]()) == reason
    assert fault(conversation()) is None
