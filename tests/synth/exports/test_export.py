"""Exports: other programs read them as they are meant, and what must not leave stays."""

import csv
import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from markdown_it import MarkdownIt

from records.errors import ConfigError, ItemError, SynthError
from records.new_folder import new_folder
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports import files, stored_rows
from synth.exports.export import export_dataset
from synth.exports.formats.columns import HF_COLUMNS, MARKS, MEANINGS
from synth.exports.formats.messages import (
    in_openai_form,
    num_thoughts,
    with_object_arguments,
    with_reasoning,
)
from synth.llm.wire.reasoning import cut_reasoning
from synth.rubrics.turns import what_is_wrong
from tests.killing import killed_everywhere
from tests.synth.exports.export_work import export_into, write_folder
from tests.synth.publish.judged import curate, decision
from tests.synth.small_dataset import conversation, trajectory, write_dataset

HERMES = """
{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
{% endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}
{%- set function = call.function %}
<tool_call>{"name": {{ function.name | tojson }}, "arguments": {{ function.arguments | tojson }}
{%- raw %}}</tool_call>{% endraw %}
{%- endfor %}
{% endfor %}"""
"""A chat template as Hermes' and Qwen's are: calls and tools are written by `tojson`."""

HOSTILE = (
    "</script><img src=x onerror=alert(1)> [here](javascript:alert(1)) | cell |\n---\n# heading\n"
    "- license: mit\n```\n\x1b[31mred \u202eback\u2066 {{ 7 * 7 }} ![x](http://evil.example/x.png)"
)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def garbled() -> list[Row]:
    """A call whose arguments are no JSON."""
    messages = conversation()
    messages[2]["tool_calls"][1]["function"]["arguments"] = '{"name": Heron'
    return messages


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rows = [
        (trajectory("a1"), None),
        (trajectory("a2", garbled()), None),
        (trajectory("a3", conversation("Something else, \U0001f6f6 \u2028 please.")), None),
        (trajectory("h1", split="heldout_task"), None),
        (trajectory("h2", split="heldout_domain"), None),
        (trajectory("r1"), "failed_state"),
    ]
    return write_dataset(tmp_path_factory.mktemp("export") / "boats", rows)


def load(path: Path, cache: Path) -> Any:
    import datasets  # over a second, which collecting the tests should not take

    return datasets.load_dataset(str(path), cache_dir=str(cache))


@pytest.mark.slow
def test_load_dataset_gives_the_rows_of_the_sql_view(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", include_heldout=True, reasoning="field")
    loaded = load(tmp_path / "out", tmp_path / "cache")
    found = [row for split in loaded for row in loaded[split]]
    with dataset.connect() as db:
        view = db.sql("SELECT * FROM sft ORDER BY trajectory_id").to_arrow_table().to_pylist()
    assert len(found) == len(view) == sum(made.rows.values()) == 5
    for row, expected in zip(sorted(found, key=lambda r: r["trajectory_id"]), view, strict=True):
        assert row["messages"] == with_object_arguments(json.loads(expected["messages"]))
        assert row["tools"] == json.loads(expected["tools"])
        for column in ("trajectory_id", "split", "train_turns", "weight"):
            assert row[column] == expected[column]
        assert set(row) == set(HF_COLUMNS)


@pytest.mark.slow
def test_the_card_tells_load_dataset_the_same_features_as_the_files(
    dataset: Dataset, tmp_path: Path
) -> None:
    export_dataset(dataset, tmp_path / "out")
    told = load(tmp_path / "out", tmp_path / "cache")["train"].features
    (tmp_path / "out" / "README.md").unlink()
    read = load(tmp_path / "out", tmp_path / "other")["train"].features
    assert told == read


@pytest.mark.slow
def test_arguments_are_objects_where_the_model_wrote_one(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out")
    rows = load(tmp_path / "out", tmp_path / "cache")["train"]
    arguments = [
        [call["function"]["arguments"] for call in row["messages"][2]["tool_calls"]] for row in rows
    ]
    whole = [{"name": "Heron"}, {"name": "Heron", "limit": 3}]
    assert arguments == [whole, [whole[0], '{"name": Heron'], whole]
    assert made.text_arguments == 1


@pytest.mark.parametrize("text", ["[1]", "NaN", '{"a": NaN}', '{"a": "\\ud800"}', "", "[" * 9999])
def test_arguments_that_no_file_can_hold_as_an_object_stay_text(text: str) -> None:
    messages = conversation()
    messages[2]["tool_calls"][0]["function"]["arguments"] = text
    [call, _] = with_object_arguments(messages)[2]["tool_calls"]
    assert call["function"]["arguments"] == text


def test_a_chat_template_of_transformers_renders_tools_and_calls(
    dataset: Dataset, tmp_path: Path
) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    export_dataset(dataset, tmp_path / "out")
    row = load(tmp_path / "out", tmp_path / "cache")["train"][0]
    [text], _ = render_jinja_template(
        conversations=[row["messages"]], tools=row["tools"], chat_template=HERMES
    )
    assert '<tool_call>{"name": "find_boats", "arguments": {"name": "Heron"}}</tool_call>' in text
    assert '"name": "rent_boat", "arguments": {"name": "Heron", "limit": 3}}' in text
    assert text.count("<|tool|>") == 3
    assert '"description": "The tool find_boats."' in text
    assert text.rstrip().endswith("<|assistant|>Done, it costs 20 EUR.")


@pytest.mark.slow
def test_openai_lines_hold_the_wire_form_and_nothing_else(dataset: Dataset, tmp_path: Path) -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    made = export_dataset(dataset, tmp_path / "out", format="openai")
    text = (tmp_path / "out" / "train.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]  # also splits at U+2028
    assert made.rows == {"train": len(lines)} == {"train": 3}
    messages_of = TypeAdapter(list[ChatCompletionMessageParam])
    for line in lines:
        assert line.keys() == {"messages", "tools"}
        messages_of.validate_python(line["messages"])
        for message in line["messages"]:
            assert message.keys().isdisjoint({"reasoning_content", "name"})
            for call in message.get("tool_calls", ()):
                assert isinstance(call["function"]["arguments"], str)
    assert "\U0001f6f6" in lines[2]["messages"][1]["content"]


def thoughtful(content: str | None, thought: str) -> Row:
    return {"role": "assistant", "content": content, "reasoning_content": thought}


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_thoughts_are_exported_only_when_asked_for(
    dataset: Dataset, tmp_path: Path, format_: Any
) -> None:
    counts: dict[Any, int] = {"none": 0, "think": 3}
    for reasoning, count in counts.items():
        out = tmp_path / reasoning
        made = export_dataset(dataset, out, format=format_, reasoning=reasoning)
        assert made.thoughts == count
        for messages in exported_messages(out):
            assert not any("reasoning_content" in message for message in messages)
            begins = [m["content"].startswith("<think>\nLook it up first.") for m in messages]
            assert begins == [i == 2 and count > 0 for i in range(len(messages))]
        card = (out / "README.md").read_text()
        assert ("What models thought is left out" in card) is (reasoning == "none")


def exported_messages(out: Path) -> list[list[Row]]:
    lines = out / "train.jsonl"
    if lines.exists():
        return [json.loads(line)["messages"] for line in lines.read_text().splitlines()]
    [path] = (out / "data").glob("*.parquet")
    return [json.loads(text) for text in pq.read_table(path)["messages"].to_pylist()]


def test_a_form_with_a_field_for_thoughts_has_them_there(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", reasoning="field")
    assert made.thoughts == 3
    for messages in exported_messages(tmp_path / "out"):
        assert messages[2]["reasoning_content"] == "Look it up first."
        assert messages[2]["content"] == ""


def test_a_form_without_a_field_for_thoughts_refuses_it(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no field for thoughts; think writes them"):
        export_dataset(dataset, tmp_path / "out", format="openai", reasoning="field")
    assert not (tmp_path / "out").exists()


def test_marked_thoughts_are_read_back_as_they_were() -> None:
    said = [thoughtful("Done.", "First this,\nthen <b>that</b>."), thoughtful(None, "A call.")]
    for message, written in zip(said, with_reasoning(said, "think"), strict=True):
        cut = cut_reasoning(written["content"])
        assert cut.reasoning == message["reasoning_content"]
        assert cut.content == (message["content"] or "")


def test_a_thought_that_would_end_early_is_not_marked() -> None:
    said = [thoughtful("Done.", "It writes </THINK> itself."), thoughtful("Done.", "  ")]
    plain = [{"role": "assistant", "content": "Done."}] * 2
    assert with_reasoning(said, "think") == plain
    assert num_thoughts(said, "think") == 0
    assert with_reasoning(said, "field") == [said[0], plain[1]]
    assert num_thoughts(said, "field") == 1


def test_turns_without_loss_have_weight_zero() -> None:
    trained = [m["role"] == "assistant" and i > 2 for i, m in enumerate(conversation())]
    written = in_openai_form(conversation(), trained)
    assert [m.get("weight") for m in written if m["role"] == "assistant"] == [0, None, None]
    assert not any("weight" in m for m in in_openai_form(conversation(), None))


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_every_trajectory_is_exported_or_counted(
    format_: Any, dataset: Dataset, tmp_path: Path
) -> None:
    made = export_dataset(dataset, tmp_path / "out", format=format_)
    assert made.rows == {"train": 3}
    assert made.left_out == {"not_accepted": 1, "held_out": 2}
    more = export_dataset(dataset, tmp_path / "all", format=format_, include_heldout=True)
    assert more.rows == {"train": 3, "heldout_task": 1, "heldout_domain": 1}
    assert more.left_out == {"not_accepted": 1}
    loaded = load(tmp_path / "all", tmp_path / "cache")
    assert {split: rows.num_rows for split, rows in loaded.items()} == more.rows


@pytest.mark.parametrize("license_", [None, "unknown", ""])
def test_unknown_licences_stay_unless_asked_for(license_: str | None, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), None)], license_=license_)
    with pytest.raises(ConfigError, match=r"1 unknown_license; .* --include-unknown-license"):
        export_dataset(dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    export_dataset(dataset, tmp_path / "out", include_unknown_license=True)
    front, body = card_of(tmp_path / "out")
    assert front["license"] == ["apache-2.0", "unknown"]
    assert "| unknown | 1 | 1 |" in body
    assert "| Apache\\-2\\.0 | 1 | 1 |" in body


def test_an_agent_that_nobody_knows_has_tools_of_unknown_licence(tmp_path: Path) -> None:
    rows = [(trajectory("a"), None), (trajectory("b", agent_id="gone"), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    made = export_dataset(dataset, tmp_path / "out")
    assert (made.rows, made.left_out) == ({"train": 1}, {"unknown_license": 1})


MARKED = {
    "both": {},
    "itself": {"self_judged": True, "judge_status": "uncertain"},
    "alone": {"decided_by": "code", "judge_status": "below_minimum"},
    "unasked": {"decided_by": "code", "judge_status": None},
}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Accepted ones, of which code alone decided two; of `older` nothing is noted."""
    rows = [(trajectory(name), None) for name in (*MARKED, "older")]
    made = write_dataset(tmp_path_factory.mktemp("marked") / "data", rows)
    curate(made, [decision(name, None, **marks) for name, marks in MARKED.items()])
    return made


def test_what_code_alone_accepted_stays_unless_asked_for(marked: Dataset, tmp_path: Path) -> None:
    made = export_dataset(marked, tmp_path / "out")
    assert (made.rows, made.left_out) == ({"train": 3}, {"code_alone": 2})
    with marked.connect() as db:
        view = db.execute("SELECT trajectory_id FROM sft ORDER BY 1").fetchall()
    table = pq.read_table(tmp_path / "out/data/train-00000-of-00001.parquet")
    assert table["trajectory_id"].to_pylist() == [i for (i,) in view] == ["both", "itself", "older"]
    assert "- code\\_alone: 2 (accepted by code alone" in (tmp_path / "out/README.md").read_text()
    more = export_dataset(marked, tmp_path / "all", include_code_alone=True)
    assert (more.rows, more.left_out) == ({"train": 5}, {})


def test_where_code_alone_accepted_everything_the_flag_is_named(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("t"), None)])
    curate(dataset, [decision("t", None, decided_by="code")])
    with pytest.raises(ConfigError, match=r"1 code_alone; .* add --include-code-alone$"):
        export_dataset(dataset, tmp_path / "out")


def test_every_row_of_both_forms_says_what_the_judges_word_on_it_is_worth(
    marked: Dataset, tmp_path: Path
) -> None:
    export_dataset(marked, tmp_path / "hf", include_code_alone=True)
    export_dataset(marked, tmp_path / "openai", format="openai", include_code_alone=True)
    table = pq.read_table(tmp_path / "hf/data/train-00000-of-00001.parquet")
    stored = [tuple(row[name] for name in MARKS) for row in table.to_pylist()]
    assert [row[:5] for row in stored] == [
        ("train", "alone", "below_minimum", "code", False),
        ("train", "both", "not_calibrated", "code_and_judge", False),
        ("train", "itself", "uncertain", "code_and_judge", True),
        ("train", "older", None, None, None),
        ("train", "unasked", None, "code", False),
    ]
    with (tmp_path / "openai/marks.csv").open(newline="") as handle:
        [head, *lines] = csv.reader(handle)
    assert tuple(head) == MARKS
    texts = [["" if value is None else str(value) for value in row] for row in stored]
    assert lines == texts
    rows = (tmp_path / "openai/train.jsonl").read_text().splitlines()
    assert len(rows) == len(lines)


def test_nothing_accepted_is_said(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), "low_score")])
    with pytest.raises(ConfigError, match=r"can be exported: 1 not_accepted$"):
        export_dataset(dataset, tmp_path / "out")


def card_of(out: Path) -> tuple[dict[str, Any], str]:
    _, front, body = (out / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), body


def test_the_card_says_what_it_is_and_how_it_was_made(dataset: Dataset, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", include_heldout=True)
    front, body = card_of(tmp_path / "out")
    assert front["license"] == ["apache-2.0"]
    assert front["size_categories"] == ["n<1K"]
    for data_file in front["configs"][0]["data_files"]:
        assert list((tmp_path / "out").glob(data_file["path"]))
    assert "offline model" in body
    assert "| rollouts | 8 | 6 | 0 | 1 | 1 | infra\\_error 1 |" in body
    assert "| agent | offline\\-model | 5 |" in body
    assert "| `heldout_task` | 1 |" in body
    assert "- not\\_accepted: 1 (rejected" in body
    names = pq.read_schema(tmp_path / "out/data/train-00000-of-00001.parquet").names
    assert all(f"| `{name}` |" in body for name in names)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["rows"] == {"train": 3, "heldout_task": 1, "heldout_domain": 1}


def test_another_model_is_no_offline_model(tmp_path: Path) -> None:
    models = {"agent": "big", "user": "big"}
    row = trajectory("a", models=models)
    dataset = write_dataset(tmp_path / "data", [(row, None)], model="big")
    export_dataset(dataset, tmp_path / "out")
    assert "offline model" not in card_of(tmp_path / "out")[1]


def test_settings_are_told_without_addresses_keys_and_paths(
    dataset: Dataset, tmp_path: Path
) -> None:
    dataset = write_dataset(tmp_path / "secret-place" / "boats", [(trajectory("a"), None)])
    role = {
        "base_url": "https://intern.example/v1",
        "api_key_env": "MY_KEY",
        "extra_body": {"token": "sk-1"},
        "models": [{"name": "big", "weight": 1.0}],
        "temperature": 0.7,
        "max_tokens": 512,
        "license": "no training",
    }
    config = {
        "seed": 3,
        "domains": ["all", "/home/someone/mine.yaml"],
        "servers": [],
        "roles": {"agent": role},
    }
    started: Row = dict.fromkeys(
        ("command", "status", "detail", "cost_usd", "happened_at", "versions")
    )
    started |= {"invocation_id": "new", "event": "started", "config": config, "host": "myhost"}
    started["kind"] = "run"
    dataset.commit(run_id="run-1", stage="run-started", shard=9, tables={"runs": [started]})
    export_dataset(dataset, tmp_path / "out")
    names = ("README.md", "metadata.json", "run_config.json")
    written = "".join((tmp_path / "out" / name).read_text() for name in names)
    for hidden in ("intern.example", "MY_KEY", "sk-1", "someone", "secret-place", "myhost"):
        assert hidden not in written
    assert "| agent | 0.7 | - | 512 | no training |" in written
    settings = json.loads((tmp_path / "out" / "run_config.json").read_text())["run-1"]
    assert settings["domains"] == ["all", "mine.yaml"]


def test_hostile_names_are_only_text_in_the_card(tmp_path: Path) -> None:
    rows = [(trajectory("a", models={"agent": HOSTILE, "user": "x"}), None)]
    dataset = write_dataset(
        tmp_path / "boats ![x](y)\n--- {{ 1 }}", rows, license_=HOSTILE, domain=HOSTILE
    )
    made = export_dataset(dataset, tmp_path / "out")
    assert made.rows == {"train": 1}
    front, body = card_of(tmp_path / "out")
    assert front["pretty_name"] == "boats ![x](y) --- {{ 1 }}"
    assert front["license"] == ["apache-2.0", "other"]
    html = MarkdownIt("commonmark").enable("table").render(body)
    tags = set(re.findall(r"<(\w+)", html))
    assert tags == {"h1", "h2", "p", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"} | {
        "ul",
        "li",
        "blockquote",
        "strong",
    }
    assert html.count("<h1") == 1
    assert html.count("<pre") == 2
    assert "{{ 7 * 7 }}" in html
    assert not {"\x1b", "\u202e", "\u2066"} & set(body)
    rows = load(tmp_path / "out", tmp_path / "cache")["train"]
    assert rows[0]["models"]["agent"] == HOSTILE
    assert rows[0]["domain"] == HOSTILE


def broken(name: str) -> list[Row]:
    messages = conversation()
    if name == "ends with a call":
        return messages[:-2]
    if name == "ends with a result":
        return messages[:-1]
    if name == "call without result":
        del messages[4]
    elif name == "result without call":
        del messages[2]
    elif name == "two results of a call":
        messages.insert(5, messages[4])
    elif name == "one id twice":
        messages[2]["tool_calls"][1]["id"] = "call_0"
    elif name == "two users in a row":
        messages.insert(1, messages[1])
    elif name == "unknown role":
        messages[0]["role"] = "narrator"
    elif name == "empty":
        return []
    return messages


@pytest.mark.parametrize(
    "name",
    [
        "ends with a call",
        "ends with a result",
        "call without result",
        "result without call",
        "two results of a call",
        "one id twice",
        "two users in a row",
        "unknown role",
        "empty",
    ],
)
def test_conversations_that_no_trainer_could_take(name: str) -> None:
    assert what_is_wrong(broken(name))
    assert what_is_wrong(conversation()) is None


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_such_a_conversation_stops_the_export_and_is_named(format_: Any, tmp_path: Path) -> None:
    rows = [(trajectory("fine"), None), (trajectory("odd", broken("ends with a result")), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    with pytest.raises(ItemError, match="trajectory odd was accepted and does not end with words"):
        export_dataset(dataset, tmp_path / "out", format=format_)
    assert names_in(tmp_path) == ["data"]


def test_many_rows_make_several_files(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILE_ROWS", 2)
    monkeypatch.setattr(files, "GROUP_ROWS", 1)
    monkeypatch.setattr(stored_rows, "WINDOW_ROWS", 2)
    export_dataset(dataset, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out/data").iterdir())
    assert names == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    rows = load(tmp_path / "out", tmp_path / "cache")["train"]
    assert rows["trajectory_id"][:] == ["a1", "a2", "a3"]


def test_an_existing_folder_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="out exists already"):
        export_dataset(dataset, tmp_path / "out")


def test_an_unknown_format_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"format must be one of hf, trl, .*, got 'csv'"):
        export_dataset(dataset, tmp_path / "out", format="csv")


@pytest.mark.slow
def test_a_kill_leaves_a_whole_export_or_none(dataset: Dataset, tmp_path: Path) -> None:
    export_into(tmp_path / "expected", dataset.root)
    expected = contents(tmp_path / "expected")
    for folder in killed_everywhere(export_into, tmp_path, dataset.root, step=9):
        assert not (folder / "out").exists() or contents(folder) == expected
        export_into(folder, dataset.root)
        assert contents(folder) == expected


@pytest.mark.slow
def test_a_kill_at_any_point_leaves_a_whole_folder_or_none(tmp_path: Path) -> None:
    write_folder(tmp_path / "expected")
    expected = contents(tmp_path / "expected")
    for folder in killed_everywhere(write_folder, tmp_path):
        assert not (folder / "out").exists() or contents(folder) == expected
        write_folder(folder)
        assert contents(folder) == expected


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, what killed writers left included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk with no room: syncing anything but the first file is refused."""
    allowed = iter(range(1))
    fsync = os.fsync

    def refuse(handle: int) -> None:
        if next(allowed, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    return tmp_path


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_a_full_disk_leaves_nothing(format_: Any, dataset: Dataset, full_disk: Path) -> None:
    with pytest.raises(SynthError, match=r"disk full while writing .*out"):
        export_dataset(dataset, full_disk / "out", format=format_)
    assert names_in(full_disk) == []


def test_of_two_writers_the_first_to_end_wins_and_the_other_is_told(tmp_path: Path) -> None:
    def write_slowly() -> None:
        with new_folder(tmp_path / "out") as slow:
            (slow / "by").write_text("slow")
            with new_folder(tmp_path / "out") as fast:
                assert (slow / "by").exists(), "the sweep must see that its writer lives"
                (fast / "by").write_text("fast")

    with pytest.raises(SynthError, match=r"cannot write .*out"):
        write_slowly()
    assert contents(tmp_path) == {"out/by": b"fast"}


def test_every_column_has_its_meaning() -> None:
    assert MEANINGS.keys() == HF_COLUMNS.keys()
