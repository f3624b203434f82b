"""From rows of anybody to packed batches: nothing lost, nothing held out, resumable exactly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError
from tests.synth.small_dataset import trajectory, write_dataset
from trainer.data.chat_format import ChatFormat
from trainer.data.conversations import TrainingConversation
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.packing import IGNORE, PADDING, DataPosition, Packer
from trainer.data.row_length import RowLength, RowLimits
from trainer.data.sources import CorpusConfig, samples_of
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.training.loop import tokenizer_of

MESSAGES = [
    {"role": "user", "content": "Is it open?"},
    {"role": "assistant", "content": "It is open."},
]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["it is open", "is it open"] * 3, vocab_size=300)


def parquet(path: Path, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


FORMS: dict[str, dict[str, Any]] = {
    "structs": {"messages": MESSAGES, "tools": TOOLS},
    "text": {"messages": json.dumps(MESSAGES), "tools": json.dumps(TOOLS)},
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": "Is it open?"},
            {"from": "gpt", "value": "It is open."},
        ],
        "tools": json.dumps(TOOLS),
    },
    "prompt": {"prompt": "Is it open?", "completion": "It is open.", "tools": TOOLS},
    "prompt_messages": {"prompt": MESSAGES[:1], "completion": MESSAGES[1:], "tools": TOOLS},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write", [parquet, jsonl])
def test_common_forms_are_the_same_conversation(
    form: str, write: Any, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    corpora = [
        make_corpus(
            [CorpusConfig(path=write(tmp_path / f"{name}.{write.__name__}", [FORMS[name]]))],
            tokenizer,
            tmp_path / f"{name}-tokens",
        )
        for name in ("structs", form)
    ]
    assert corpora[0].tokens.tolist() == corpora[1].tokens.tolist()
    assert corpora[0].learnt.tolist() == corpora[1].learnt.tolist()


def test_a_dataset_gives_its_accepted_conversations_with_their_flags(tmp_path: Path) -> None:
    made = [(trajectory("t-2"), None), (trajectory("t-1"), None), (trajectory("t-3"), "low_score")]
    write_dataset(tmp_path / "data", made)
    samples = list(samples_of(CorpusConfig(path=str(tmp_path / "data")), "sft"))
    assert [s.sample_id for s in samples] == ["t-1", "t-2"]
    for sample in samples:
        assert isinstance(sample.body, TrainingConversation)
        assert sample.body.train_turns is not None
        assert len(sample.body.train_turns) == len(sample.body.messages)
        assert sample.body.tools


def test_held_out_rows_are_left_out_and_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [{"text": f"it is {n}", "split": s} for n, s in enumerate(["train", "heldout_task"])]
    path = parquet(tmp_path / "a.parquet", rows)
    corpus = make_corpus([CorpusConfig(path=path)], tokenizer, tmp_path / "tokens")
    assert len(corpus.lengths) == 1
    assert corpus.left_out == {"held_out": 1}
    both = make_corpus(
        [CorpusConfig(path=path, held_out=True)], tokenizer, tmp_path / "for scoring"
    )
    assert len(both.lengths) == 2


def test_what_cannot_be_learnt_from_is_counted_by_reason(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    rows = [
        {"messages": MESSAGES},
        {"messages": [MESSAGES[0], {"role": "assistant", "content": "open " * 500}]},
        {"messages": MESSAGES[:1]},
    ]
    corpus = make_corpus(
        [CorpusConfig(path=jsonl(tmp_path / "a.jsonl", rows))],
        tokenizer,
        tmp_path / "tokens",
        limits=RowLimits(200, longer="leave_out"),
    )
    assert len(corpus.lengths) == 1
    assert corpus.left_out == {"too_long": 1, "nothing_to_learn": 1}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"question": "why"}], "it has question"),
        ([["why"]], "row 0: a row is list"),
        ([{"messages": "{broken"}], "row 0"),
        ([{"conversations": [{"from": "robot", "value": ""}]}], "robot"),
        ([{"messages": [{"role": "narrator", "content": "x"}]}], "row 0: .*narrator"),
        (
            [{"text": "a", "split": "heldout_domain"}],
            r"nothing to learn from \(1 held_out: kept for tests\)",
        ),
    ],
)
def test_rows_that_cannot_be_read_are_named(
    rows: list[dict], told: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    source = CorpusConfig(path=jsonl(tmp_path / "a.jsonl", rows))
    with pytest.raises(ConfigError, match=told):
        make_corpus([source], tokenizer, tmp_path / "tokens")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "it is"}\n\n{"text": \n')
    with pytest.raises(ConfigError, match=r"a\.jsonl cannot be read: line 3"):
        list(samples_of(CorpusConfig(path=str(tmp_path / "a.jsonl")), "sft"))


def test_fields_that_arrow_fills_in_are_not_learnt(tmp_path: Path, tokenizer: Tokenizer) -> None:
    """In one Parquet file the arguments of two tools are one struct with the fields of both."""

    def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        call = {"id": "c", "function": {"name": name, "arguments": arguments}}
        return {"messages": [{"role": "assistant", "tool_calls": [call]}]}

    rows = [called("look", {"at": "door"}), called("wait", {"hours": 2})]
    paths = parquet(tmp_path / "a.parquet", rows), jsonl(tmp_path / "a.jsonl", rows)
    written = [
        make_corpus([CorpusConfig(path=path)], tokenizer, tmp_path / str(number))
        for number, path in enumerate(paths)
    ]
    text = tokenizer.decode(written[0].tokens.tolist())
    assert '{"hours": 2}' in text
    assert written[0].tokens.tolist() == written[1].tokens.tolist()
    assert tokenizer_of([(CorpusConfig(path=paths[0]), "sft")], vocab_size=280).size <= 280


def test_a_text_of_nothing_is_nothing_to_learn(tmp_path: Path, tokenizer: Tokenizer) -> None:
    source = CorpusConfig(path=jsonl(tmp_path / "a.jsonl", [{"text": ""}, {"text": "it is"}]))
    corpus = make_corpus([source], tokenizer, tmp_path / "tokens")
    assert (len(corpus.lengths), corpus.left_out) == (1, {"nothing_to_learn": 1})


def test_a_path_with_nothing_to_read_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    data = CorpusConfig(path=str(tmp_path / "data"))
    with pytest.raises(ConfigError, match=r"data.sources.path = .* holds no .parquet, .jsonl"):
        make_corpus([data], tokenizer, tmp_path / "tokens")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ConfigError, match="cannot be read"):
        make_corpus([data], tokenizer, tmp_path / "tokens")


def test_a_corpus_stays_what_it_was_and_refuses_other_sources(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    path = tmp_path / "a.jsonl"
    source = CorpusConfig(path=jsonl(path, [{"text": "it is"}]))
    first = make_corpus([source], tokenizer, tmp_path / "tokens")
    jsonl(path, [{"text": "it is"}, {"text": "open"}])
    again = make_corpus([source], tokenizer, tmp_path / "tokens")
    assert again.fingerprint == first.fingerprint
    assert again.tokens.tolist() == first.tokens.tolist()
    other = source.model_copy(update={"weight": 2.0})
    with pytest.raises(ConfigError, match="tokens of other sources"):
        make_corpus([other], tokenizer, tmp_path / "tokens")


def corpus_of(lengths: list[int], weights: tuple[float, ...] = (1.0,)) -> Corpus:
    """Documents of rising tokens; odd tokens are learnt; sources in turn."""
    total = sum(lengths)
    return Corpus(
        tokens=np.arange(total, dtype=np.int32),
        learnt=(np.arange(total) % 2).astype(np.uint8),
        starts=np.cumsum([0, *lengths[:-1]]),
        lengths=np.array(lengths),
        sources=np.arange(len(lengths)) % len(weights),
        weights=weights,
        rows=len(lengths),
        left_out={},
        cut={},
        row_length=RowLength(32, ""),
        chat=ChatFormat(),
        fingerprint=f"{lengths}{weights}",
    )


PAD = 10**6


def packer_of(corpus: Corpus, row_tokens: int = 32, seed: int = 1) -> Packer:
    return Packer(corpus, row_tokens, seed, PAD)


LENGTHS = [int(n) for n in np.random.default_rng(0).integers(2, 60, 300)]


def test_an_epoch_shows_every_token_once() -> None:
    packer = packer_of(corpus_of(LENGTHS))
    rows = packer.rows_of(0)
    batch, place = next(packer.batches(len(rows)))
    assert place == DataPosition(0, len(rows))
    tokens = batch.ids_BT[batch.ids_BT != PAD]
    assert sorted(tokens.tolist()) == list(range(sum(LENGTHS)))
    full = len(tokens) / batch.ids_BT.numel()
    assert full > 0.97


def test_targets_are_the_next_learnt_tokens_of_the_same_document() -> None:
    batch, _ = next(packer_of(corpus_of(LENGTHS)).batches(40))
    for ids, targets, documents in zip(*batch, strict=True):
        for t in range(len(ids) - 1):
            same = documents[t] == documents[t + 1]
            learnt = same and ids[t + 1] != PAD and ids[t + 1] % 2 == 1
            assert targets[t] == (ids[t + 1] if learnt else IGNORE)
        assert targets[-1] == IGNORE
        assert ((documents == PADDING) == (ids == PAD)).all()
        assert (documents[documents != PADDING].diff() >= 0).all()
    assert batch.num_targets == (batch.targets_BT >= 0).sum()


@pytest.mark.parametrize("stop", [1, 5, 17])
def test_going_on_from_a_place_gives_the_very_next_batches(stop: int) -> None:
    packer = packer_of(corpus_of(LENGTHS[:60]))
    stream = packer.batches(3)
    places = [place for _, place in (next(stream) for _ in range(stop))]
    rest = [next(stream)[0] for _ in range(30)]
    again = packer_of(corpus_of(LENGTHS[:60])).batches(3, places[-1])
    for batch in rest:
        assert all((a == b).all() for a, b in zip(batch, next(again)[0], strict=True))


def test_another_seed_or_epoch_is_another_order() -> None:
    packer = packer_of(corpus_of(LENGTHS))
    assert packer.rows_of(0) != packer.rows_of(1)
    assert packer.rows_of(0) != packer_of(corpus_of(LENGTHS), seed=2).rows_of(0)
    assert packer.rows_of(0) == packer_of(corpus_of(LENGTHS)).rows_of(0)


def test_weights_say_how_often_a_source_is_seen() -> None:
    corpus = corpus_of([4] * 4000, weights=(0.5, 2.0))
    rows = packer_of(corpus).rows_of(3)
    seen = np.bincount([corpus.sources[piece.document] for row in rows for piece in row])
    assert seen[1] == 4000
    assert 900 < seen[0] < 1100
