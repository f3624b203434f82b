"""Decontamination: a document with a run of an evaluation's words is found, and no other."""

import asyncio
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError
from synth.rephrasing.sources.decontamination import IN_EVALUATION, Decontaminator
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

QUESTION = (
    "A farmer has 17 sheep in a field by the river, and all but nine of them run away before the "
    "storm comes. How many sheep are left?"
)


def evaluations(folder: Path, *texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [{"id": n, "turns": [{"content": text}], "answer": "9"} for n, text in enumerate(texts)]
    (folder / "bench.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "bench.jsonl"


def runs_of(text: str, length: int) -> set[tuple[str, ...]]:
    """The definition, of texts whose words are parted by spaces."""
    words = text.split()
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


@given(
    st.lists(st.text("ab c", max_size=30), min_size=1, max_size=4),
    st.lists(st.text("ab c", max_size=30), max_size=4),
)
def test_it_finds_what_shares_a_run_by_definition(known: list[str], asked: list[str]) -> None:
    found = decontaminator(["a b c", *known])
    every = set().union(*(runs_of(text, 3) for text in ["a b c", *known]))
    for text in [*asked, *known]:
        run = found.found(text)
        assert (run is not None) == bool(runs_of(text, 3) & every)
        if run is not None:
            assert runs_of(text[run.start : run.end], 3) & every


def decontaminator(texts: list[str]) -> Decontaminator:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return Decontaminator([str(evaluations(Path(folder), *texts))], words=3)


def test_case_punctuation_and_lines_hide_nothing_and_the_run_is_shown(tmp_path: Path) -> None:
    found = Decontaminator([str(evaluations(tmp_path, QUESTION))], words=13)
    hidden = QUESTION.upper().replace(" ", "\n ").replace(",", " --")
    before = "Some other words stand here. " * 5
    text = f"{before}{hidden} And more after it."
    run = found.found(text)
    assert run is not None
    assert text[run.start : run.end] == hidden.rstrip("?")
    words = QUESTION.split()
    assert found.found(" ".join(words[:12])) is None
    assert found.found(" ".join(words[:13])) is not None
    assert found.found(" ".join([*words[:7], "other", *words[7:14]])) is None


def test_scripts_without_spaces_have_a_word_for_each_character(tmp_path: Path) -> None:
    text = "农夫有十七只羊在河边的田里除了九只以外都跑掉了"
    found = Decontaminator([str(evaluations(tmp_path, text))], words=13)
    assert found.found(f"前文。{text[3:17]}。后文") is not None
    assert found.found(text[:12]) is None


def test_files_of_each_kind_are_read_in_every_column(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [" ".join(str(rng.getrandbits(40)) for _ in range(20)) for _ in range(4)]
    (tmp_path / "a.txt").write_text(texts[0])
    evaluations(tmp_path, texts[1])
    table = {"q": [texts[2]], "choices": [[texts[3], None]], "n": [1]}
    pq.write_table(pa.table(table), tmp_path / "c.parquet")
    found = Decontaminator([str(tmp_path / "*.*")], words=13)
    assert all(found.found(text) for text in texts)


def test_evaluations_that_find_nothing_or_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has 13 words \(decontaminate_words\)"):
        Decontaminator([str(evaluations(tmp_path, "too short"))], words=13)
    (tmp_path / "bench.jsonl").write_text('{"cut')
    with pytest.raises(ConfigError, match=r"bench\.jsonl cannot be read"):
        Decontaminator([str(tmp_path)], words=13)
    with pytest.raises(ConfigError, match=r"decontaminate = .* holds no"):
        Decontaminator([str(tmp_path / "none.jsonl")], words=13)


def test_a_document_of_an_evaluation_is_dropped_unasked_and_the_others_stay_what_they_were(
    tmp_path: Path,
) -> None:
    texts = [f"Text {n} is about pumps and tanks." for n in range(5)]
    texts[2] += f" {QUESTION}"
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    plain = RephraseConfig(sources=(SourceConfig(path=str(path), language="en"),))
    clean = plain.model_copy(
        update={"decontaminate": (str(evaluations(tmp_path / "evals", QUESTION)),)}
    )

    def plan_of(config: RephraseConfig) -> tuple[RephraseStage, list]:
        made = RephraseStage(SimpleNamespace(config=config))  # type: ignore[arg-type]
        return made, made.plan()

    (_, before), (made, after) = plan_of(plain), plan_of(clean)
    same = [one.item_id == other.item_id for one, other in zip(before, after, strict=True)]
    assert same == [True] * 4 + [False] * 2 + [True] * 4
    for item in after[4:6]:
        result = asyncio.run(made.make(item, None))  # type: ignore[arg-type]
        assert (result.status.status, result.status.reason) == ("dropped", IN_EVALUATION)
        assert "A farmer has 17 sheep" in (result.status.detail or "")
        assert not result.tables
