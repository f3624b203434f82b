"""Importing: every shape comes to the same rows, nothing is made up, and nothing is lost."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.chat.sharegpt import BETWEEN_RESULTS
from records.errors import ConfigError
from records.reading.canonical import canonical_bytes
from records.store.dataset import Dataset
from records.tables.columns import given_columns
from records.tables.tables import TABLES
from synth.importing import importing
from synth.importing.importing import ImportedTrajectories, TrajectoryImport, import_trajectories
from tests.synth.importing.examples import (
    ANSWER,
    ASKED,
    FOUND,
    TOOLS,
    call,
    lines,
    openai,
    results,
    sharegpt,
    simulation,
    toucan,
    toucan_selection,
)

CONTENT = ("trajectories", "tool_calls", "tasks", "agents", "tools")


def take(root: Path, *files: Path, **request: Any) -> ImportedTrajectories:
    wanted = TrajectoryImport(files=tuple(map(str, files)), **request)
    return import_trajectories(wanted, root)


def only(root: Path, table: str = "trajectories") -> dict[str, Any]:
    (row,) = Dataset.open(root).rows(table)
    return row


def contents(root: Path) -> dict[str, bytes]:
    dataset = Dataset.open(root)
    return {table: canonical_bytes(dataset, table) for table in CONTENT}


def many(count: int) -> list[dict[str, Any]]:
    """Conversations that differ in what is asked, over three toolsets."""
    rows = []
    for number in range(count):
        row = openai(tools=TOOLS[: number % 3])
        row["messages"][1] = {"role": "user", "content": f"{ASKED} {number}"}
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("row", "name"), [(openai(), "openai"), (toucan(), "toucan"), (sharegpt(), "sharegpt")]
)
def test_every_shape_comes_to_the_same_conversation(
    row: dict[str, Any], name: str, tmp_path: Path
) -> None:
    report = take(tmp_path / "d", lines(tmp_path / "f.jsonl", [row]))
    assert (report.read, report.added, report.formats) == (1, 1, {name: 1})
    trajectory, made = only(tmp_path / "d"), only(tmp_path / "d", "tool_calls")
    *_, user, asking, result, last = trajectory["messages"]
    assert (user["content"], last["content"]) == (ASKED, ANSWER)
    assert [c["function"]["name"] for c in asking["tool_calls"]] == ["find_boat"]
    assert json.loads(asking["tool_calls"][0]["function"]["arguments"]) == {"name": "Heron"}
    own_id = asking["tool_calls"][0]["id"]
    assert result == {
        "role": "tool",
        "tool_call_id": own_id,
        "name": "find_boat",
        "content": FOUND,
    }
    assert trajectory["tools"] == TOOLS
    assert (made["tool_call_id"], made["arguments"]) == (own_id, {"name": "Heron"})
    assert (made["observation"], made["is_error"], made["error_code"]) == (FOUND, False, None)
    assert (made["executed_by"], made["state_diff"]) == ("elsewhere", None)
    assert only(tmp_path / "d", "imports")["place"] == "line 1"


def test_the_messages_of_a_fine_tuning_line_are_kept_as_they_are(tmp_path: Path) -> None:
    row = openai()
    row["messages"][2] |= {"weight": 0, "reasoning_content": "Look it up."}
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [row]))
    want = [{**m, "content": m["content"] or ""} for m in row["messages"]]
    want[3]["name"] = "find_boat"
    assert only(tmp_path / "d")["messages"] == want


@pytest.mark.parametrize("flag", [{"weight": 0}, {"train": False}, {"loss": False}])
def test_what_its_author_takes_out_of_the_loss_stays_out(
    flag: dict[str, Any], tmp_path: Path
) -> None:
    row = openai()
    row["messages"][2] |= flag
    row["messages"][4] |= {"weight": 1, "train": True}
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [row]))
    assert [m.get("weight") for m in only(tmp_path / "d")["messages"]] == [None] * 2 + [0] + [
        None
    ] * 2


def test_calls_that_follow_one_another_are_one_turn_and_answered_in_order(tmp_path: Path) -> None:
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [toucan_selection()]))
    messages = only(tmp_path / "d")["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    made = Dataset.open(tmp_path / "d").rows("tool_calls")
    assert [(c["name"], c["observation"], c["turn"]) for c in made] == [
        ("rent_boat", '{"rental": "R-9"}', 1),
        ("find_boat", FOUND, 1),
    ]


def test_results_of_tau2_keep_what_they_say_and_leave_out_what_the_agent_never_saw(
    tmp_path: Path,
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(results(simulation(0), simulation(1)), indent=1))
    report = take(tmp_path / "d", tmp_path / "r.json")
    assert report.formats == {"tau2": 2}
    dataset = Dataset.open(tmp_path / "d")
    first, second = sorted(dataset.rows("trajectories"), key=lambda row: row["attempt"])
    assert first["task_id"] == second["task_id"]
    assert first["split"] == second["split"]
    assert first["messages"][0] == {"role": "system", "content": "Rent only what is free."}
    assert first["messages"][-1]["content"] == ANSWER
    assert "look_out" not in json.dumps(first["messages"])
    assert first["models"] == {"agent": "model-a", "user": "model-u"}
    assert first["termination_reason"] == "user_done"
    by_user = [c for c in dataset.rows("tool_calls") if c["actor"] == "user"]
    assert [(c["name"], c["observation"]) for c in by_user] == [("look_out", "rain")] * 2
    [row, _] = dataset.rows("imports")
    assert row["given"]["reward_info"] == {"reward": 1.0}
    assert {"tools", "system_prompt"} <= set(row["lacks"])
    assert "error_flags" not in row["lacks"]


def test_tools_can_be_given_for_files_that_list_none(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(results(simulation())))
    take(tmp_path / "d", tmp_path / "r.json", tools=tuple(t["function"] for t in TOOLS))
    assert [t["function"]["name"] for t in only(tmp_path / "d")["tools"]] == [
        "find_boat",
        "rent_boat",
    ]
    kinds = [c["kind"] for c in only(tmp_path / "d", "tasks")["rubric"]["criteria"]]
    assert kinds == ["turns", "format", "fit"]


def test_nothing_is_made_up(tmp_path: Path) -> None:
    """Every column that no file tells is null; the marks say what is lacking."""
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [openai(tools=None)]))
    task, trajectory = only(tmp_path / "d", "tasks"), only(tmp_path / "d")
    told = {"task_id", "agent_id", "variant", "split", "rubric", "user_tool_ids"}
    assert {name for name in given_columns(TABLES["tasks"]) if task[name] is not None} == told
    unknown = ("outcome", "objective_reward", "termination_reason", "server", "domain_id", "seed")
    assert [trajectory[name] for name in unknown] == [None] * len(unknown)
    assert (trajectory["models"], task["variant"]) == ({}, "imported")
    assert set(only(tmp_path / "d", "imports")["lacks"]) == {
        *("initial_state", "state_changes", "rubric", "reference_plan", "user_brief"),
        *("tools", "model", "license", "termination_reason", "error_flags"),
    }


def test_one_turn_of_sharegpt_holds_several_calls_their_results_and_words(tmp_path: Path) -> None:
    """As LLaMA-Factory writes it, without columns that say more."""
    calls = [{"name": "find_boat", "arguments": {"name": name}} for name in ("Heron", "Tern")]
    row = sharegpt()
    row["conversations"][1]["value"] = f"Wait.<tool_call>{json.dumps(calls)}</tool_call>"
    row["conversations"][2]["value"] = BETWEEN_RESULTS.join(["[1]", "[2]"])
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [row]))
    _, _, calling, first, second, _ = only(tmp_path / "d")["messages"]
    assert calling["content"] == "Wait."
    ids = [call["id"] for call in calling["tool_calls"]]
    assert [(m["tool_call_id"], m["content"]) for m in (first, second)] == [
        (ids[0], "[1]"),
        (ids[1], "[2]"),
    ]


@pytest.mark.parametrize(
    ("calls", "results", "words"),
    [
        ([], [{"call_id": "a", "name": "find_boat", "chars": len(FOUND)}], "whose id is 'None'"),
        (["a"], [], "no result of"),
        (["a"], [{"call_id": "a", "name": "find_boat", "chars": len(FOUND) - 1}], "ends amid"),
        (["a"], [{"call_id": "a", "name": "find_boat", "chars": "7"}], "no result of"),
        (
            ["a", "b"],
            [{"call_id": "a", "name": "f", "chars": len(FOUND)}],
            "1 calls and 0 results stand in no turn; without both columns",
        ),
    ],
)
def test_columns_that_do_not_fit_the_turns_refuse_the_row(
    calls: list[str], results: list[Any], words: str, tmp_path: Path
) -> None:
    report = take(
        tmp_path / "d", lines(tmp_path / "f.jsonl", [sharegpt(calls=calls, results=results)])
    )
    assert report.refused == {"bad_results": 1}
    assert words in report.listed[0].words


def test_what_the_user_knows_is_kept(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.jsonl", [openai()])
    take(tmp_path / "d", file, license="apache 2.0", model="model-x")
    assert only(tmp_path / "d")["models"] == {"agent": "model-x"}
    assert only(tmp_path / "d", "imports")["license"] == "Apache-2.0"
    assert {t["license"] for t in Dataset.open(tmp_path / "d").rows("tools")} == {"Apache-2.0"}


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst", "json", "json.gz", "parquet"])
def test_every_file_form_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    rows = [openai(), toucan_selection(), sharegpt()]
    take(tmp_path / "plain", lines(tmp_path / "plain.jsonl", rows))
    file = tmp_path / f"other.{ending}"
    text = (tmp_path / "plain.jsonl").read_text()
    if ending == "parquet":
        columns = ("messages", "conversations", "tools", "system", "uuid", "subset_name")
        texts = {
            name: [None if row.get(name) is None else _text(row[name]) for row in rows]
            for name in columns
        }
        pq.write_table(pa.table(texts), file)
    else:
        data = (json.dumps(rows, indent=2) if ".json" in file.suffixes else text).encode()
        data = text.encode() if ".jsonl" in file.suffixes else data
        if ending.endswith("gz"):
            data = gzip.compress(data)
        elif ending.endswith("zst"):
            data = pa.compress(data, codec="zstd", asbytes=True)
        file.write_bytes(data)
    report = take(tmp_path / "d", file)
    assert (report.added, report.refused.total()) == (3, 0)
    assert contents(tmp_path / "d") == contents(tmp_path / "plain")
    assert take(tmp_path / "plain", file).known == 3


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_structures_of_parquet_lose_the_nulls_that_arrow_fills_in(tmp_path: Path) -> None:
    row = openai(tools=None)
    rows = [row, openai(messages=[{"role": "user", "content": "a"}, {**row["messages"][-1]}])]
    table = pa.table({"messages": [r["messages"] for r in rows]})
    pq.write_table(table, tmp_path / "f.parquet")
    take(tmp_path / "a", tmp_path / "f.parquet")
    take(tmp_path / "b", lines(tmp_path / "f.jsonl", [{"messages": r["messages"]} for r in rows]))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_conversation_is_the_same_however_its_arguments_are_written(tmp_path: Path) -> None:
    forms = ('{"name": "Heron", "age": 3}', '{"age":3,"name":"Heron"}', {"name": "Heron", "age": 3})
    rows = [openai() for _ in (*forms, None)]
    for row, arguments in zip(rows, (*forms, '{"name": "Heron", "age": 4}'), strict=True):
        row["messages"][2]["tool_calls"][0]["function"]["arguments"] = arguments
    report = take(tmp_path / "d", lines(tmp_path / "f.jsonl", rows))
    assert (report.added, report.repeated) == (2, 2)


def test_importing_again_commits_nothing(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.jsonl", [*many(5), {"x": 1}, openai(), openai()])
    first = take(tmp_path / "d", file)
    assert (first.added, first.repeated, first.refused) == (6, 1, {"unknown_shape": 1})
    commits, before = len(Dataset.open(tmp_path / "d").commits()), contents(tmp_path / "d")
    again = take(tmp_path / "d", file)
    assert (again.added, again.known, again.refused) == (0, 7, {"unknown_shape": 1})
    assert len(Dataset.open(tmp_path / "d").commits()) == commits
    assert contents(tmp_path / "d") == before


def test_the_order_and_the_batches_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = many(20)
    take(tmp_path / "a", lines(tmp_path / "a.jsonl", rows))
    random.Random(1).shuffle(rows)
    monkeypatch.setattr(importing, "BATCH_ROWS", 3)
    take(tmp_path / "b", lines(tmp_path / "b.jsonl", rows))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert len(Dataset.open(tmp_path / "b").commits()) > len(Dataset.open(tmp_path / "a").commits())


def test_an_import_that_is_stopped_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lines(tmp_path / "f.jsonl", [*many(10), {"x": 1}, *many(20)])
    monkeypatch.setattr(importing, "BATCH_ROWS", 4)
    take(tmp_path / "whole", file)
    commit, made = Dataset.commit, []

    def stopping(self: Dataset, **given: Any) -> int:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(commit(self, **given))
        return made[-1]

    monkeypatch.setattr(Dataset, "commit", stopping)
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path / "d", file)
    monkeypatch.setattr(Dataset, "commit", commit)
    assert Dataset.open(tmp_path / "d").ids("trajectories")
    report = take(tmp_path / "d", file)
    assert report.known + report.added + report.refused.total() + report.repeated == report.read
    assert contents(tmp_path / "d") == contents(tmp_path / "whole")


def test_the_accounts_name_every_refused_row_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(openai()) + "\n\n{broken\n" + json.dumps({"x": 1}) + "\n")
    report = take(tmp_path / "d", file)
    assert [(r.place, r.reason) for r in report.listed] == [
        ("line 3", "not_json"),
        ("line 4", "unknown_shape"),
    ]
    row = only(tmp_path / "d", "stages")
    assert (row["requested"], row["kept"], row["dropped"]) == (3, 1, 2)
    assert row["reasons"] == {"not_json": 1, "unknown_shape": 1}
    told = sorted(words.removeprefix(str(file))[:10] for words in row["details"].values())
    assert told == [", line 3: ", ", line 4: "]


def test_names_become_those_that_models_write_everywhere(tmp_path: Path) -> None:
    tool = json.loads(json.dumps(TOOLS[0]).replace("find_boat", "find-boat"))
    parameters = tool["function"]["parameters"]
    parameters["properties"] = {"boat name": {"type": "string"}}
    parameters["required"] = ["boat name"]
    row = openai(tools=[tool])
    row["messages"][2]["tool_calls"] = [call("find-boat", {"boat name": "Heron"})]
    take(tmp_path / "d", lines(tmp_path / "f.jsonl", [row]))
    trajectory, made = only(tmp_path / "d"), only(tmp_path / "d", "tool_calls")
    function = trajectory["messages"][2]["tool_calls"][0]["function"]
    [offered] = trajectory["tools"]
    assert function["name"] == offered["function"]["name"] == made["name"] == "find_boat"
    assert list(json.loads(function["arguments"])) == list(
        offered["function"]["parameters"]["properties"]
    )
    assert made["error_code"] is None
    [stored] = Dataset.open(tmp_path / "d").rows("tools")
    assert stored["annotations"]["originalName"] == "find-boat"


def test_a_path_without_files_is_refused_before_a_dataset_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for name, words in (
        ("nothing", "there is no such file or folder"),
        ("*.jsonl", "there is no such file or folder"),
        ("notes.txt", r"holds no \.parquet, \.jsonl, \.json file"),
    ):
        with pytest.raises(ConfigError, match=words):
            take(tmp_path / "d", tmp_path / name)
    file = lines(tmp_path / "f.jsonl", [openai()])
    with pytest.raises(ConfigError, match="license = 'my own' is no SPDX id"):
        take(tmp_path / "d", file, license="my own")
    assert not (tmp_path / "d").exists()


def test_attempts_that_were_shown_other_tools_are_of_another_task_in_any_order(
    tmp_path: Path,
) -> None:
    files = []
    for number, tools in enumerate(({}, {"look_out": {"doc": "Look.", "params": {}}})):
        file = tmp_path / f"r{number}.json"
        made = results(simulation(number), simulation(number + 2), tool_defs=tools)
        file.write_text(json.dumps(made))
        files.append(file)
    take(tmp_path / "a", *files)
    take(tmp_path / "b", *reversed(files))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    dataset = Dataset.open(tmp_path / "a")
    of = {row["task_id"]: row["agent_id"] for row in dataset.rows("tasks")}
    assert len(of) == 2
    attempts = dataset.rows("trajectories")
    assert all(of[row["task_id"]] == row["agent_id"] for row in attempts)
    assert len({row["split"] for row in attempts}) == 1


def test_rows_that_say_how_they_ended_are_simulations_only_without_tools(tmp_path: Path) -> None:
    """As rows of the export `hf` say it."""
    told = {"task_id": "t", "termination_reason": "user_done"}
    file = lines(tmp_path / "f.jsonl", [openai(**told), simulation()])
    assert take(tmp_path / "d", file).formats == {"openai": 1, "tau2": 1}
    tools = [row["tools"] for row in Dataset.open(tmp_path / "d").rows("trajectories")]
    assert TOOLS in tools
