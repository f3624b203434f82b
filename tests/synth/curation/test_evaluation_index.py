"""The index of evaluations: it finds what the definitions say, whatever the file and its order."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from synth.curation.evaluation_index import EvaluationIndex, check_decontamination
from synth.curation.passages import FEWEST_WORDS, MOST_WORDS, passages_in, tool_text
from synth.curation.settings.config import DecontaminationConfig
from synth.matching.similarity import shared_spans, shingles
from synth.matching.word_runs import length_in_words, words_of
from tool_specs.coverage.duplicates import jaccard

TASK = (
    "You want to move your flight from Denver to Tampa to the next morning, but only if that costs "
    "no more than 120 dollars, and you ask for an aisle seat."
)
TOOL = {
    "name": "move_flight",
    "description": "Moves a booked flight of a passenger to another day, for a fee if any.",
    "parameters": {
        "type": "object",
        "properties": {"booking": {"type": "string", "description": "Number of the booking."}},
    },
}


def index_of(*rows: Any, **values: Any) -> EvaluationIndex:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return EvaluationIndex(DecontaminationConfig(files=(str(path),), **values))


def runs_of(text: str, length: int) -> set[tuple[str, ...]]:
    """The definition, of texts whose words are parted by spaces."""
    words = text.split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def longest(text: str, known: list[str]) -> int:
    """Words of the longest run that the text shares with a known one; by trying all."""
    most = len(text.split())
    return next(
        (
            n
            for n in range(most, 0, -1)
            if runs_of(text, n) & set().union(*(runs_of(k, n) for k in known))
        ),
        0,
    )


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join), max_size=3),
    st.lists(st.sampled_from("abcdefgh"), max_size=14).map(" ".join),
)
def test_a_run_is_found_where_there_is_one_by_definition(known: list[str], text: str) -> None:
    known = ["p q r s t u v w x y", *known]
    found = index_of(*known, words=3).shared_run(text)
    most = longest(text, known)
    assert (found is not None) == (most >= 3)
    if found is not None:
        [(start, end)], [(begin, stop)] = found.spans, found.evaluation_spans
        assert text[start:end] == found.evaluation.text[begin:stop]
        assert 3 <= len(text[start:end].split()) == found.score <= most


def test_the_longest_run_is_told_with_both_its_places() -> None:
    index = index_of({"id": 1, "instruction": TASK}, {"id": 2, "instruction": "Something else."})
    said = f"Hello there. {TASK.upper()} Thanks!"
    found = index.shared_run(said)
    assert found is not None
    [(start, end)] = found.spans
    assert said[start:end] == TASK.upper().rstrip(".")
    assert (found.evaluation.file, found.evaluation.item) == ("bench.jsonl", 0)
    assert found.score == len(words_of(TASK))


WORDS = st.lists(st.sampled_from([f"w{n}" for n in range(25)]), min_size=8, max_size=30)


@settings(max_examples=60)
@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=5), WORDS.map(" ".join))
def test_the_nearest_passage_is_that_of_the_definition(known: list[str], text: str) -> None:
    found = index_of(*known, near=0.3).near(text, "text")
    best = max(jaccard(shingles(text), shingles(one)) for one in known)
    if found is None:
        assert best < 0.35  # 0.3 is asked for, and a sketch may be a little off
    else:
        assert found.score == pytest.approx(best)
        assert found.score >= 0.3


def test_a_task_with_other_names_is_near_and_another_task_is_not() -> None:
    index = index_of(TASK)
    renamed = TASK.replace("Denver", "Oslo").replace("Tampa", "Lyon").replace("120", "95")
    found = index.near(renamed, "text")
    assert found is not None
    assert found.evaluation.text == TASK
    assert (
        index.near("I would like to know when the library opens on Sunday mornings.", "text")
        is None
    )


def test_the_shared_pieces_of_two_texts_are_the_same_words() -> None:
    one, other = "a b c d E f g", "x A, b c d - y e f g"
    ours, theirs = shared_spans(one, other)
    assert [one[s:e] for s, e in ours] == [one], "what touches is one span"
    assert [words_of(other[s:e]) for s, e in theirs] == [list("abcd"), list("efg")]


def test_a_tool_is_compared_with_tools_however_it_is_written() -> None:
    wrapped = {"tools": [{"type": "function", "function": TOOL}]}
    mcp = {key: value for key, value in TOOL.items() if key != "parameters"}
    for row in (TOOL, wrapped, mcp | {"inputSchema": TOOL["parameters"]}):
        index = index_of(row)
        [tool] = [one for one in index.passages if one.kind == "tool"]
        assert index.near(tool.text, "tool") is not None
        assert index.near(tool.text, "text") is None


def test_what_parameters_of_many_tools_say_is_no_run_of_words() -> None:
    words = "The number of rows that are returned at most, from 1 to 100; ten where it is left out."
    page = {"limit": {"type": "integer", "description": words}}

    def tool(name: str, description: str) -> str:
        schema = {"type": "object", "properties": page}
        return tool_text({"name": name, "description": description, "parameters": schema})

    described = "Finds the flights of a day between two towns, those with free seats first."
    evaluation = {"name": "find_flights", "description": described}
    index = index_of(evaluation | {"parameters": {"properties": page}})
    other = "Lists all parcels of a customer that have not been fetched from the depot."
    assert index.leaks_in(tool("list_parcels", other), "tool", True) == []
    [found] = index.leaks_in(tool("flights_of_day", f"{described} Fast."), "tool", True)
    assert (found.method, found.score) == ("ngrams", len(described.split()))
    assert index.leaks_in(described, "text", False), "a prompt that describes the tool"


def test_files_of_each_kind_are_read(tmp_path: Path) -> None:
    texts = [f"{TASK} Number {n} of the files that hold it." for n in range(6)]
    (tmp_path / "a.md").write_text(texts[0])
    (tmp_path / "b.json").write_text(json.dumps([{"x": {"y": [texts[1]]}}]))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(json.dumps(texts[2]).encode()))
    pq.write_table(pa.table({"q": [texts[3]]}), tmp_path / "d.parquet")
    (tmp_path / "e.txt").write_text(texts[4])
    (tmp_path / "f.jsonl").write_text(json.dumps({"q": texts[5]}))
    index = EvaluationIndex(DecontaminationConfig(files=(str(tmp_path),)))
    assert {one.text for one in index.passages} == set(texts)
    assert len({one.file for one in index.passages}) == len(texts)


def test_the_order_of_files_and_their_folder_change_nothing(tmp_path: Path) -> None:
    def made(folder: str, order: int) -> EvaluationIndex:
        names = ("a.jsonl", "b.jsonl")[::order]
        (tmp_path / folder).mkdir()
        paths = [tmp_path / folder / name for name in names]
        for path in paths:
            path.write_text(json.dumps({"task": f"{path.name}: {TASK}"}))
        return EvaluationIndex(DecontaminationConfig(files=tuple(map(str, paths))))

    one, other = made("first", 1), made("second", -1)
    assert one.version == other.version
    assert one.leaks_in(TASK, "text", True) == other.leaks_in(TASK, "text", True)
    assert index_of({"task": f"a.jsonl: {TASK}"}).version != one.version
    assert index_of(TASK, near=0.4).version != index_of(TASK).version


def test_evaluations_in_which_nothing_can_be_found_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"curation\.decontamination\.files: no text of .* 10 words"
    ):
        index_of("too short")
    with pytest.raises(ConfigError, match=r"curation\.decontamination\.files = .* holds no"):
        EvaluationIndex(DecontaminationConfig(files=(str(tmp_path / "none.jsonl"),)))
    (tmp_path / "cut.json").write_text('{"cut')
    with pytest.raises(ConfigError, match=r"cut\.json cannot be read"):
        EvaluationIndex(DecontaminationConfig(files=(str(tmp_path / "cut.json"),)))


def test_files_in_which_nothing_can_be_found_are_told_before_any_work(tmp_path: Path) -> None:
    later = tmp_path / "later.jsonl"
    later.write_text(json.dumps(TASK) + "\n{cut")
    with pytest.raises(ConfigError, match=r"later\.jsonl cannot be read"):
        check_decontamination(DecontaminationConfig(files=(str(later),)))
    later.write_text(json.dumps("too short"))
    with pytest.raises(ConfigError, match="long enough to be found"):
        check_decontamination(DecontaminationConfig(files=(str(later),)))
    check_decontamination(DecontaminationConfig())


@given(st.text("ab. \n", max_size=400), st.integers(1, 60))
def test_passages_lose_no_long_piece_of_a_text_and_none_is_long(text: str, times: int) -> None:
    text *= times
    passages = passages_in(text)
    assert all(FEWEST_WORDS <= length_in_words(p) < MOST_WORDS + FEWEST_WORDS for p in passages)
    said = [word for passage in passages for word in words_of(passage)]
    assert words_of(text)[: len(said)] == said
    assert len(words_of(text)) - len(said) < FEWEST_WORDS


def test_a_long_line_is_cut_into_its_sentences() -> None:
    sentences = [f"Sentence {n} tells what the guest of room {n} would like." for n in range(20)]
    assert passages_in(" ".join(sentences)) == sentences


RENTED = "请帮我为周六上午租一条叫苍鹭的帆船四个人如果每小时超过四十欧元就换一条便宜的。"
"""Rent me the boat Heron for Saturday morning, for four, or a cheaper one."""

LIBRARY = "我想知道图书馆星期天早上几点开门可以借几本书需要带什么证件。"
"""When does the library open on Sunday, how many books may I take, and what must I bring?"""


def test_what_is_written_without_spaces_is_found_with_other_names_in_it() -> None:
    index = index_of({"task": RENTED})
    found = index.near(RENTED.replace("周六", "周日").replace("苍鹭", "海鸥"), "text")
    assert found is not None
    assert index.near(LIBRARY, "text") is None
    assert passages_in("请问您需要什么帮助") == [], "a phrase of nine characters is no passage"


def test_tools_and_texts_are_read_out_of_json_in_a_string() -> None:
    as_text = index_of({"tools": json.dumps([TOOL]), "task": TASK})
    assert as_text.passages == index_of({"tools": [TOOL], "task": TASK}).passages
    assert {one.kind for one in as_text.passages} == {"tool", "text"}


def test_what_stands_beside_a_tools_name_is_looked_for_too() -> None:
    """A task with a name and parameters is no tool alone."""
    index = index_of({"name": "task_7", "parameters": {"seats": 2}, "instruction": TASK})
    assert TASK in {one.text for one in index.passages}


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("airline", "retail"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tasks.json").write_text(json.dumps([f"For {folder}: {TASK}"]))
    (tmp_path / "other.json").write_text(json.dumps([TASK]))
    index = EvaluationIndex(DecontaminationConfig(files=(str(tmp_path),)))
    named = {one.file for one in index.passages}
    assert named == {"airline/tasks.json", "retail/tasks.json", "other.json"}
