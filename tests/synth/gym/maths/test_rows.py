"""Rows of users' files become tasks; what is wrong names the file, the row and the column."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError
from synth.gym.maths.rows import MathsFile, MathsQuestions, MathsSettings, right_answer
from synth.gym.maths.splits import SplitCounts

ROWS = [
    {"question": f"What is {n} + {n}?", "answer": str(2 * n), "source": "sums"} for n in range(80)
]
COUNTS = SplitCounts(train=20, validation=2, heldout=2)


def lines(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def environment(path: str, **settings: object) -> MathsQuestions:
    file = MathsFile.model_validate({"path": path, "counts": COUNTS, **settings})
    return MathsQuestions(MathsSettings(files=(file,)))


def test_parquet_and_lines_with_the_same_rows_make_the_same_tasks(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    of_lines = environment(lines(tmp_path / "rows.jsonl", ROWS), tags=["source"]).tasks()
    of_parquet = environment(str(tmp_path / "rows.parquet"), tags=["source"]).tasks()
    assert of_lines == of_parquet
    assert Counter(task.split for task in of_lines) == {"train": 20, "validation": 2, "heldout": 2}
    assert of_lines[0].tags == ("source:sums",)


def test_a_question_that_comes_in_two_files_is_one_task(tmp_path: Path) -> None:
    first = lines(tmp_path / "a.jsonl", ROWS[:70])
    second = lines(tmp_path / "b.jsonl", ROWS)
    few = SplitCounts(train=40, validation=0, heldout=0)
    files = tuple(MathsFile(path=path, counts=few) for path in (first, second))
    with pytest.raises(ConfigError, match=r"b\.jsonl'.*are missing"):
        MathsQuestions(MathsSettings(files=files)).tasks()


def test_the_prompt_is_the_question(tmp_path: Path) -> None:
    made = environment(lines(tmp_path / "rows.jsonl", ROWS))
    task = made.tasks()[0]
    assert made.question(task) in {row["question"] for row in ROWS}


def test_other_columns_may_hold_question_and_answer(tmp_path: Path) -> None:
    rows = [{"problem": f"What is {n} + 1?", "solution": n + 1} for n in range(80)]
    path = lines(tmp_path / "rows.jsonl", rows)
    tasks = environment(path, question="problem", answer="solution").tasks()
    assert all(
        int(task.body["answer"]) == int(task.body["question"].split()[2]) + 1 for task in tasks
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"question": "?"},
            r"row 1 of .*rows\.jsonl: column 'answer' is None.*columns are question",
        ),
        ({"question": "", "answer": "1"}, "column 'question' is ''"),
        ({"question": ["?"], "answer": "1"}, r"column 'question' is \['\?'\]"),
        ({"question": "?", "answer": True}, "column 'answer' is True"),
        ({}, "its columns are none"),
    ],
)
def test_a_row_without_question_or_answer_is_told(
    row: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        environment(lines(tmp_path / "rows.jsonl", [row])).tasks()


def test_a_row_that_is_no_object_and_a_file_that_is_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "list.jsonl").write_text("[1, 2]\n")
    with pytest.raises(ConfigError, match="is no object with columns, but list"):
        environment(str(tmp_path / "list.jsonl")).tasks()
    (tmp_path / "broken.jsonl").write_text("{\n")
    with pytest.raises(ConfigError, match=r"broken\.jsonl cannot be read"):
        environment(str(tmp_path / "broken.jsonl")).tasks()
    with pytest.raises(ConfigError, match=r"gym\.maths\.files"):
        environment(str(tmp_path / "missing.jsonl")).tasks()


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("42", "42"),
        ("Half of 84 is 42.\n#### 42", "42"),
        (r"So the answer is \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"$\frac{1}{2}$", r"$\frac{1}{2}$"),
        (r"\boxed{1} or \boxed{2}", r"\boxed{1} or \boxed{2}"),
    ],
)
def test_what_a_solution_gives_as_its_answer(text: str, right: str) -> None:
    assert right_answer(text) == right


def test_settings_without_a_file_are_refused() -> None:
    with pytest.raises(ValueError, match="files"):
        MathsSettings.model_validate({"files": []})
