"""What rewrites teach: no model reads what it is measured on, and losses are those of training."""

import json
from itertools import islice
from pathlib import Path

import pytest
import torch

from benchmarks.ablations.learning import shape
from benchmarks.rewrites import texts_of
from benchmarks.teaching_tables import counted, difference, loss, report
from benchmarks.teaching_text import (
    ARMS,
    NUMBER,
    ROW_TOKENS,
    ROWS,
    TaughtDocument,
    documents_in,
    half_of,
    held_back,
    in_numbers,
    losses_on,
    shared_runs,
    taught,
    texts_of_arm,
)
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.packing import Packer
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim.loss import summed_loss

DOCUMENTS = documents_in(texts_of("tuning"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([document.source for document in DOCUMENTS[:4]], vocab_size=320)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Decoder:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "q_lora_rank": 16}
    return new_decoder(shape(tokenizer.size, num_layers=2, num_experts=4, **sizes))


def corpus_of(texts: list[str], tokenizer: Tokenizer, folder: Path) -> Corpus:
    folder.mkdir()
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return make_corpus((CorpusConfig(path=str(path)),), tokenizer, folder / "t", view="pretrain")


def test_all_parts_of_the_tuning_half_are_in_the_documents() -> None:
    parts = texts_of("tuning")
    written = [part.rewrite for part in parts if part.change is None]
    assert "\n\n".join(written) == "\n\n".join(text for d in DOCUMENTS for text in d.honest)
    changed = [part.rewrite for part in parts if part.change is not None]
    assert changed == [text for document in DOCUMENTS for text in document.changed]
    assert all(len(document.honest) > 1 for document in DOCUMENTS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("arm", ARMS)
def test_no_arm_reads_what_it_is_measured_on(arm: str, seed: int) -> None:
    texts = held_back(DOCUMENTS, seed)
    read = set(texts_of_arm(texts, arm, seed))
    assert read.isdisjoint(texts.kept_back.values())
    assert read >= {document.source for document in DOCUMENTS}


def test_the_two_halves_share_the_rewrites_out() -> None:
    texts = held_back(DOCUMENTS, 1)
    raw, honest, one, other = (
        list(texts_of_arm(texts, arm, 1)) for arm in ("raw", "honest", "half 0", "half 1")
    )
    rewrites = [[text for text in read if text not in raw] for read in (honest, one, other)]
    assert sorted(rewrites[0]) == sorted([*rewrites[1], *rewrites[2]])
    sizes = list(half_of(DOCUMENTS, 1).values())
    assert abs(sizes.count(0) - sizes.count(1)) <= 1


def test_a_loss_is_that_of_training(tokenizer: Tokenizer, model: Decoder, tmp_path: Path) -> None:
    text = DOCUMENTS[0].source
    found = losses_on(model, tokenizer, text, text)
    packer = Packer(corpus_of([text], tokenizer, tmp_path / "one"), ROW_TOKENS, seed=0, pad=0)
    batches = [batch for batch, _ in islice(packer.batches(1), len(packer.rows_of(0)))]
    with torch.no_grad():
        hidden = [model(b.ids_BT, documents_BT=b.documents_BT).hidden_BTD for b in batches]
        nats = sum(
            summed_loss(model, h, b.targets_BT).item() for h, b in zip(hidden, batches, strict=True)
        )
    assert found.tokens == sum(batch.num_targets for batch in batches)
    assert found.nats == pytest.approx(nats, rel=1e-4)


def test_the_tokens_of_numbers_are_the_numbers_that_the_document_says(tokenizer: Tokenizer) -> None:
    text, source = "Since 1905 about 3.5 million, before 77, 1905.", "In 1905 it was 3.5 and 40."
    ids = [*tokenizer.encode(text), tokenizer.end]
    flags = in_numbers(tokenizer, ids, text, source)
    told = tokenizer.decode([n for n, flag in zip(ids, flags, strict=True) if flag])
    assert told == "19053.51905"
    assert NUMBER.findall(source.encode()) == [b"1905", b"3.5", b"40"]


def test_arms_learn_as_many_tokens_however_much_they_read(
    tokenizer: Tokenizer, model: Decoder, tmp_path: Path
) -> None:
    tokens, learnt = ROWS * ROW_TOKENS + 1, []
    for name, documents in (("few", DOCUMENTS[:1]), ("many", DOCUMENTS[:8])):
        corpus = corpus_of([d.source for d in documents], tokenizer, tmp_path / name)
        points, training = taught(model, corpus, 0, tokens, lambda _: {})
        learnt.append(training["learnt"])
        assert points[-1]["learnt"] == training["learnt"]
    assert all(tokens <= one < tokens + ROWS * ROW_TOKENS for one in learnt)


def test_teaching_leaves_the_model_that_it_starts_from(
    tokenizer: Tokenizer, model: Decoder, tmp_path: Path
) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    corpus = corpus_of([DOCUMENTS[0].source], tokenizer, tmp_path / "own")
    taught(model, corpus, 0, 100, lambda _: {})
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_runs_of_words_are_found_whatever_their_case() -> None:
    said = "The pump ran for nine hours on a single charge"
    assert shared_runs(said, ["...THE PUMP RAN, for nine hours on a wet day"]) == (1, 3)
    assert shared_runs("too short", [said]) == (0, 0)


def test_a_difference_is_paired_and_drawn_by_document() -> None:
    first = {f"d{n}": (float(10 + 7 * n), 10) for n in range(9)}
    higher = {name: (nats + 5.0, tokens) for name, (nats, tokens) in first.items()}
    assert difference(first, first) == (0.0, 0.0, 0.0)
    assert difference(higher, first) == pytest.approx((0.5, 0.5, 0.5))  # none is left to chance
    mixed = {
        name: (nats + (-1) ** n * 9.0, 10) for n, (name, (nats, _)) in enumerate(first.items())
    }
    there, back = difference(mixed, first), difference(first, mixed)
    assert there.low < 0.0 < there.high
    assert (back.mean, back.low, back.high) == pytest.approx((-there.mean, -there.high, -there.low))


def test_the_report_takes_each_document_s_own_half() -> None:
    seeds = {seed: _seed(seed) for seed in range(2)}
    assert loss(counted(seeds, "own half")) == pytest.approx(1.0)
    assert loss(counted(seeds, "other half")) == pytest.approx(2.0)
    text = report({"a": "en", "b": "de"}, seeds)
    assert "| own half less other half | -1.000 (-1.000 to -1.000) |" in text
    assert "2 documents (1 English), 2 seeds" in text


def _seed(seed: int) -> dict[str, dict[str, object]]:
    """Nats a token: 1 of a document's own half, 2 of the other, 3 elsewhere."""
    half = {"a": seed % 2, "b": 1 - seed % 2}

    def run(arm: str) -> dict[str, object]:
        nats = {n: 3 if "half" not in arm else 1 if arm == f"half {half[n]}" else 2 for n in half}
        losses = {name: (10.0 * own, 10, 2.0 * own, 2) for name, own in nats.items()}
        told = {"learnt": 20, "epochs": 1.0, "epoch_tokens": 20, "training_loss": 1.0, "skipped": 0}
        return {
            "points": [{"learnt": 20, "losses": losses}],
            "shared_runs": {"a": (0, 5)},
            "seconds": 1.0,
            "half": half,
            **told,
        }

    start: dict[str, object] = {"losses": {n: (30.0, 10, 6.0, 2) for n in half}, "half": half}
    return {"start": start, **{arm: run(arm) for arm in ARMS}}


def test_a_document_is_told_by_its_parts() -> None:
    [document] = [d for d in DOCUMENTS if d.name == "t1d13"]
    assert isinstance(document, TaughtDocument)
    assert len(document.honest) == 3  # three times learning notes of three parts
    assert len(document.changed) == 3
