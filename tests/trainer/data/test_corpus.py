"""The length of a row and what does not fit it, reasoning as documents, the same from any cores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from trainer.data import tokenising
from trainer.data.chat import encode_chat, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.conversations import conversation_of
from trainer.data.corpus import DOCUMENTS, LEARNT, MARK, TOKENS, Corpus, make_corpus
from trainer.data.row_length import KEPT, STEP, RowLimits, row_length
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.training.loop import tokenizer_of

PLAIN = ChatFormat(system="")
Messages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["it is open", "is it open"] * 3, vocab_size=300)


def source(path: Path, rows: list[dict[str, Any]]) -> CorpusConfig:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return CorpusConfig(path=str(path))


def talk(*turns: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": t} for n, t in enumerate(turns)]}


def texts(corpus: Corpus, tokenizer: Tokenizer, *, learnt: bool = False) -> list[str]:
    """Of every document, or of what is learnt of it."""
    made: list[str] = []
    for start, length in zip(corpus.starts, corpus.lengths, strict=True):
        ids = np.asarray(corpus.tokens[start : start + length])
        flags = np.asarray(corpus.learnt[start : start + length], bool)
        made.append(tokenizer.decode((ids[flags] if learnt else ids).tolist()))
    return made


def lengths(*of: int) -> np.ndarray:
    return np.array(of, np.int64)


@pytest.mark.parametrize(
    ("of", "most", "wanted"),
    [
        ([20, 30], None, STEP),
        ([STEP, STEP + 1], None, 2 * STEP),
        ([100] * 200 + [5000], None, 2 * STEP),  # an extreme tail
        ([100] * 200 + [190], None, 3 * STEP),  # a tail that costs little
        ([100] * 20 + [5000], None, 79 * STEP),  # more than 1% of them
        ([70, 90], 100, 100),  # of a model with so many positions
        ([], None, 1024),
        ([], 256, 256),
    ],
)
def test_a_row_holds_all_or_nearly_all_conversations(
    of: list[int], most: int | None, wanted: int
) -> None:
    chosen = row_length(lengths(*of), RowLimits(most=most))
    assert chosen.tokens == wanted
    assert (lengths(*of) <= chosen.tokens).sum() >= KEPT * len(of)


def test_many_conversations_left_out_are_refused_unless_it_is_said() -> None:
    of = lengths(*[100] * 17, 300, 400, 500)
    with pytest.raises(ConfigError) as refused:
        row_length(of, RowLimits(128))
    wanted = ("3 of 20 conversations (15%)", "a row of 128", "the longest has 500",
              "90% have 400", "Leave data.row_tokens out", "data.longer = 'cut'")  # fmt: skip
    for told in wanted:
        assert told in str(refused.value)
    assert row_length(of, RowLimits(128, longer="leave_out")).tokens == 128
    assert row_length(of, RowLimits(128, longer="cut")).tokens == 128
    assert row_length(of[:18], RowLimits(128)).tokens == 128  # one of 18
    with pytest.raises(ConfigError, match="512 would hold them, but the model takes no more"):
        row_length(of, RowLimits(most=256, why_most="the model takes no more than 256 positions"))


def test_what_is_left_out_of_a_corpus_is_refused_before_it_is_one(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    rows = [talk("is it?", "it is"), talk("is it?", "open " * 300)]
    given = [source(tmp_path / "a.jsonl", rows)]
    with pytest.raises(ConfigError, match=r"1 of 2 conversations \(50%\)"):
        make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, limits=RowLimits(128))
    whole = make_corpus(
        given, tokenizer, tmp_path / "t", chat=PLAIN
    )  # the folder holds nothing yet
    assert (whole.rows, whole.left_out) == (2, {})
    assert whole.row_length.tokens >= whole.lengths.max()
    assert make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN).row_length == whole.row_length
    with pytest.raises(ConfigError, match="rows of another length"):
        make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, limits=RowLimits(128))


def test_a_long_conversation_is_cut_behind_the_last_answer_that_fits(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    long = talk("is it?", "it is", "open?", "open " * 4, "still?", "open " * 100)
    rows = [talk("is it?", "it is"), long, talk("is it?" * 80, "it is"), talk("open?", "no")]
    given = [source(tmp_path / "a.jsonl", rows)]
    limits = RowLimits(96, longer="cut")
    with pytest.raises(ConfigError, match=r"1 of 4 .* without an answer that ends within it, .*"):
        make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, limits=limits)
    rows += [talk("open?", "no")] * 6
    given = [source(tmp_path / "a.jsonl", rows)]
    corpus = make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, limits=limits)
    made = texts(corpus, tokenizer)
    whole = [encode_chat(tokenizer, row["messages"], chat=PLAIN).ids for row in rows]
    wanted = encode_chat(tokenizer, long["messages"][:4], chat=PLAIN).ids
    assert len(wanted) <= 96 < len(whole[1])
    assert made == [tokenizer.decode(ids) for ids in (whole[0], wanted, *whole[3:])]
    assert (corpus.rows, corpus.left_out, corpus.cut) == (9, {"too_long": 1}, {"too_long": 1})
    assert texts(corpus, tokenizer, learnt=True)[1] == (f"it is<|im_end|>{'open ' * 4}<|im_end|>")


def test_a_tokenizer_is_made_without_rows_that_are_kept_for_tests(tmp_path: Path) -> None:
    kept = [{"text": "zzyzx qwerty " * 30, "split": "heldout_task"}] * 9
    rows = [{"text": "it is open " * 9}, *kept]
    with_them = tokenizer_of([(source(tmp_path / "a.jsonl", rows), "sft")], vocab_size=300)
    without = tokenizer_of([(source(tmp_path / "b.jsonl", rows[:1]), "sft")], vocab_size=300)
    assert with_them.fingerprint == without.fingerprint
    shown = CorpusConfig(path=str(tmp_path / "a.jsonl"), held_out=True)
    scoring = tokenizer_of([(shown, "sft")], vocab_size=300)
    assert len(scoring.encode("zzyzx")) < len(without.encode("zzyzx"))


def thinking_rows() -> list[dict[str, Any]]:
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    long: Messages = [
        {"role": "user", "content": "is it?"},
        {"role": "assistant", "content": "it is"},  # without reasoning
        {"role": "user", "content": "open?"},
        {"role": "assistant", "reasoning_content": "look first", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "open"},
        {"role": "assistant", "reasoning": "it is, then", "content": "open"},
        {"role": "user", "content": "still?"},
        {"role": "assistant", "reasoning": "no change", "content": "still"},
        {"role": "user", "content": "bye"},
        {"role": "assistant", "content": "bye"},
    ]
    return [talk("is it?", "no"), {"messages": long}]


@pytest.mark.parametrize("reasoning", ["learn", "keep"])
def test_every_answer_is_learnt_once_behind_what_a_server_renders_for_it(
    reasoning: Any, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    rows = thinking_rows()
    given = [source(tmp_path / "a.jsonl", rows)]
    corpus = make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, reasoning=reasoning)
    assert corpus.chat == ChatFormat(system="", thinking=True)
    assert (corpus.rows, len(corpus.lengths), corpus.cut) == (2, 4, {})
    made = [
        (corpus.tokens[s : s + n].tolist(), corpus.learnt[s : s + n].tolist())
        for s, n in zip(corpus.starts, corpus.lengths, strict=True)
    ]
    learnt = 0
    for row in rows:
        read = conversation_of(row)
        assert read is not None
        for at, message in enumerate(read.messages):
            if message["role"] != "assistant":
                continue
            asked = encode_chat(tokenizer, read.messages[:at], chat=corpus.chat).ids
            asked += prompt_for_answer(tokenizer)
            answer = encode_chat(
                tokenizer,
                read.messages[: at + 1],
                chat=corpus.chat,
                learn_reasoning=reasoning == "learn",
            )
            assert answer.ids[: len(asked)] == asked
            span = slice(len(asked), len(answer.ids))
            flags = [int(own) for own in answer.learnt[span]]
            found = [f[span] for ids, f in made if ids[: len(answer.ids)] == answer.ids]
            assert [f for f in found if any(f)] == [flags]
            learnt += sum(flags)
    assert learnt == corpus.learnt.sum()


@pytest.mark.parametrize("reasoning", ["learn", "keep", "cut"])
def test_reasoning_that_a_server_left_in_the_content_is_like_any_other(
    reasoning: Any, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    apart = thinking_rows()
    within = thinking_rows()
    for message in within[1]["messages"]:
        for name in ("reasoning_content", "reasoning"):
            if thought := message.pop(name, None):
                message["content"] = f"<think>\n{thought}\n</think>\n\n{message.get('content', '')}"
    made = []
    for name, rows in (("apart", apart), ("within", within)):
        given = [source(tmp_path / f"{name}.jsonl", rows)]
        made.append(make_corpus(given, tokenizer, tmp_path / name, chat=PLAIN, reasoning=reasoning))
    assert texts(made[1], tokenizer) == texts(made[0], tokenizer)
    assert texts(made[1], tokenizer, learnt=True) == texts(made[0], tokenizer, learnt=True)
    assert made[1].cut == made[0].cut


def test_reasoning_without_an_end_stays_in_the_content(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    given = [source(tmp_path / "a.jsonl", [talk("is it?", "<think>is it")])]
    corpus = make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN)
    assert texts(corpus, tokenizer, learnt=True) == ["<think>is it<|im_end|>"]
    assert not corpus.chat.thinking


def test_reasoning_that_is_cut_is_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = thinking_rows()
    given = [source(tmp_path / "a.jsonl", rows)]
    corpus = make_corpus(given, tokenizer, tmp_path / "t", chat=PLAIN, reasoning="cut")
    assert corpus.chat == PLAIN
    assert (corpus.rows, corpus.cut) == (2, {"reasoning": 1})
    assert not any("<think>" in text or "look first" in text for text in texts(corpus, tokenizer))


def test_nothing_is_different_where_no_answer_has_reasoning(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    given = [source(tmp_path / "a.jsonl", [talk("is it?", "no"), {"text": "it is"}])]
    made = [
        make_corpus(given, tokenizer, tmp_path / how, chat=PLAIN, reasoning=how).tokens.tolist()
        for how in ("learn", "keep", "cut")
    ]
    assert made[0] == made[1] == made[2]


def test_a_tokenizer_without_marks_of_reasoning_cannot_learn_it(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "can_think", False)
    given = [source(tmp_path / "a.jsonl", thinking_rows())]
    with pytest.raises(ConfigError, match=r"data\.reasoning = 'cut'"):
        make_corpus(given, tokenizer, tmp_path / "t")
    assert make_corpus(given, tokenizer, tmp_path / "t", reasoning="cut").rows == 2


def test_two_processes_make_the_very_files_of_one(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [talk("is it?" * (n % 7), "it is " * (n % 5)) for n in range(20)]
    rows += [*thinking_rows(), {"text": "it is"}, {"text": ""}, {"text": "x", "split": "dev"}]
    given = [source(tmp_path / "a.jsonl", rows)]
    monkeypatch.setattr(tokenising, "ALONE_TOKENS", 30)
    monkeypatch.setattr(tokenising, "BATCH_ROWS", 3)
    for number in (1, 2):
        make_corpus(given, tokenizer, tmp_path / str(number), processes=number)
    for name in (TOKENS, LEARNT, DOCUMENTS, MARK):
        one, two = ((tmp_path / number / name).read_bytes() for number in "12")
        assert one == two, name


def test_a_row_that_cannot_be_read_is_named_from_processes_too(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [source(tmp_path / "a.jsonl", [talk("is it?", "it is")] * 9 + [{"question": "?"}])]
    monkeypatch.setattr(tokenising, "ALONE_TOKENS", 30)
    with pytest.raises(ConfigError, match="row 9: has none of the columns"):
        make_corpus(given, tokenizer, tmp_path / "t", processes=2)


def test_a_dataset_that_no_judge_has_looked_at_says_what_to_do(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    Dataset.create_or_open(tmp_path / "data")
    source = CorpusConfig(path=str(tmp_path / "data"))
    with pytest.raises(ConfigError, match=r"no rows: .*--include-code-alone"):
        make_corpus([source], tokenizer, tmp_path / "tokens")
