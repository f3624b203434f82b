"""Tasks from files and from the results of a dataset: what is asked, its answer, its split."""

import json
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.gym.core.environment import GymTask
from synth.gym.grounding.environment import certain_reward, read_answer
from synth.gym.grounding.settings import GroundingSettings
from synth.gym.grounding.tasks import tasks_of
from tests.records.rows import commit, row

ROW = {"documents": ["The bridge is 84 m long."], "question": "How long is the bridge?"}


def settings(**given: Any) -> GroundingSettings:
    return GroundingSettings.model_validate(given)


def of_file(folder: Path, *rows: dict[str, Any], **given: Any) -> list[GymTask]:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return tasks_of(settings(files=[{"path": str(path)} | given]))


def test_rows_of_a_file_become_tasks_with_their_tags(tmp_path: Path) -> None:
    rows = [
        ROW | {"answers": "84 m", "area": "roads"},
        ROW | {"question": "Who built it?", "answerable": False, "answers": "nobody"},
    ]
    first, second = of_file(tmp_path, *rows, tags=["area"])
    assert first.tags == ("kind:question", "area:roads")
    assert (first.body["answers"], first.body["answerable"]) == (["84 m"], True)
    assert second.tags == ("kind:unanswerable",)
    assert (second.body["answers"], second.body["answerable"]) == ([], False)


def test_all_questions_on_the_same_documents_are_in_one_split(tmp_path: Path) -> None:
    rows = [
        {"documents": f"House {house} has a green door.", "question": f"Question {number}?"}
        for house in range(60)
        for number in range(3)
    ]
    splits: dict[str, set[str]] = {}
    for task in of_file(tmp_path, *rows):
        splits.setdefault(task.body["documents"][0], set()).add(task.split)
    assert {len(own) for own in splits.values()} == {1}
    assert set.union(*splits.values()) == {"train", "validation", "heldout"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"documents": []}, r"row 1 of .*column 'documents' is \[\]"),
        ({"question": " "}, "column 'question' is ' '"),
        ({"question": ["a", "b"]}, "and a text is wanted"),
        ({"answerable": "no"}, "column 'answerable' is 'no'; it is true or false"),
        ({"answers": [{}]}, "column 'answers'"),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        of_file(tmp_path, ROW | given)


def test_a_gym_about_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="files, datasets, or both"):
        settings()


def call(trajectory: int, index: int, result: Any, **changes: Any) -> Row:
    given: dict[str, Any] = {
        "trajectory_id": f"t{trajectory:03d}",
        "turn": 0,
        "call_index": index,
        "tool_call_id": f"c{index}",
        "tool_id": "x",
        "name": "get_loan",
        "executed_by": "state_machine",
        "arguments": {},
        "observation": json.dumps(result),
        "is_error": False,
        "policy_violations": [],
        "split": "train",
        "actor": "agent",
        "session": 0,
    }
    return row("tool_calls", **given | changes)


def loan(number: int, **more: Any) -> dict[str, Any]:
    given = {"loan_id": f"LN-{40000 + 7 * number}", "late_fee": 1.25 + number, "open": True}
    return given | {"lent_at": "2026-03-01T10:15:00"} | more


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "set"
    rows = []
    for number in range(60):
        split = "heldout_task" if number % 10 == 0 else "train"
        extra = {"branch": f"Branch {number}"} if number % 2 else {"shelf_mark": f"Shelf {number}"}
        rows += [
            call(number, 0, loan(number, **extra), split=split),
            call(number, 1, {"error": "gone", "loan_id": "LN-11111"}, is_error=True, split=split),
            call(number, 2, [loan(number + 500), loan(number + 600)], split=split),
        ]
    commit(Dataset.create_or_open(folder), tool_calls=rows)
    return folder


def asked(dataset: Path, **given: Any) -> list[GymTask]:
    seed = given.pop("seed", 0)
    return tasks_of(settings(datasets=[{"path": str(dataset)} | given], seed=seed))


def test_the_value_that_the_result_has_is_worth_everything_and_another_nothing(
    dataset: Path,
) -> None:
    answerable = [one for one in asked(dataset) if one.body["answerable"]]
    assert len(answerable) > 50
    for task in answerable:
        record, fields = task.body["record"], task.body["fields"]
        labels = [name.replace("_", " ") for name in fields]
        told = dict(zip(labels, task.body["answers"], strict=True))
        right = "".join(f"The {name} of {record} is {said}.\n" for name, said in told.items())
        reward = certain_reward(task, read_answer(task, right))
        assert reward is not None
        assert reward.value == 1, (task.body["question"], right)
        if "late fee" in told:
            wrong = right.replace(told["late fee"], "9876.5")
            reward = certain_reward(task, read_answer(task, wrong))
            assert reward is not None
            assert reward.value == 0, wrong


def test_what_is_not_there_stands_nowhere_and_the_answer_is_to_say_so(dataset: Path) -> None:
    missing = [one for one in asked(dataset, unanswerable=1.0) if not one.body["answerable"]]
    kinds = {tag for one in missing for tag in one.tags if tag.startswith("kind:")}
    assert kinds == {"kind:missing_field", "kind:missing_record"}
    for task in missing:
        shown = json.dumps(task.body["results"]).lower().replace("_", " ")
        words = task.body["question"]
        name = task.body["missing"]
        record = next(word.rstrip(".?") for word in words.split() if word.startswith("LN-"))
        assert name not in shown or record.lower() not in shown
        silent = f"The results do not list the {name} of {record}."
        reward = certain_reward(task, read_answer(task, silent))
        assert reward is not None
        assert reward.value == 1
        reward = certain_reward(task, read_answer(task, f"The {name} of {record} is 12.75."))
        assert reward is not None
        assert reward.value == 0


def test_failed_calls_and_what_code_cannot_decide_are_not_asked_about(dataset: Path) -> None:
    for task in asked(dataset):
        assert "LN-11111" not in json.dumps(task.body["results"])
        assert {"open", "lent_at"}.isdisjoint(task.body["fields"])


def test_what_the_dataset_holds_out_is_held_out_and_no_question_is_in_two_splits(
    dataset: Path,
) -> None:
    tasks = asked(dataset)
    held = {f"LN-{40000 + 7 * number}" for number in range(0, 60, 10)}
    assert all(one.split == "heldout" for one in tasks if one.body["record"] in held)
    assert {one.split for one in tasks} == {"train", "validation", "heldout"}
    splits: dict[str, str] = {}
    assert all(splits.setdefault(one.body["question"], one.split) == one.split for one in tasks)


def test_the_same_seed_asks_the_same_and_another_asks_otherwise(dataset: Path) -> None:
    assert asked(dataset) == asked(dataset)
    assert asked(dataset) != asked(dataset, seed=1)


def test_limits_of_a_dataset_hold(dataset: Path) -> None:
    assert len(asked(dataset, tasks=7)) == 7
    assert all(len(one.body["results"]) == 1 for one in asked(dataset, results=1))
    with pytest.raises(ConfigError, match="no record with an id of its own"):
        tasks_of(settings(datasets=[{"path": str(empty(dataset))}]))


def empty(beside: Path) -> Path:
    folder = beside.parent / "empty"
    commit(Dataset.create_or_open(folder), tool_calls=[call(0, 0, {"done": True})])
    return folder
