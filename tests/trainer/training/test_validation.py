"""Documents that validate are never learnt from, are the same in every run, and change no step."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.trainer.small_run import SHAPE, config_of
from trainer.data.corpus import Corpus, make_corpus, open_corpus
from trainer.data.packing import IGNORE, Packer
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import train_tokenizer
from trainer.model.initialization import new_decoder
from trainer.model.size import train_flops_per_token
from trainer.training.loop import train
from trainer.training.metrics import Metrics, read_metrics, told
from trainer.training.settings import ValidationConfig
from trainer.training.validation import FEWEST, SplitCorpus, ValidationRows, best_of, split_of

pytestmark = pytest.mark.usefixtures("undrawn")


def corpus_of(folder: Path, texts: list[str], name: str = "texts.jsonl") -> Corpus:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    tokenizer = train_tokenizer(["a b"], vocab_size=300)
    return make_corpus(
        [CorpusConfig(path=str(path))], tokenizer, folder / "tokens", view="pretrain"
    )


def words(count: int) -> list[str]:
    return [f"text {n} " * (1 + n % 5) for n in range(count)]


def documents(corpus: Corpus) -> set[bytes]:
    spans = zip(corpus.starts, corpus.lengths, strict=True)
    return {corpus.tokens[at : at + length].tobytes() for at, length in spans}


def test_the_two_parts_make_up_the_whole(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, words(400))
    whole = documents(corpus)
    for share in (0.02, 0.5):
        training, validation = split_of(tmp_path / "tokens", corpus, share)
        assert validation is not None
        assert documents(training) | documents(validation) == whole
        assert len(training.lengths) + len(validation.lengths) == 400
        assert len(validation.lengths) == pytest.approx(400 * share, rel=0.5)
        assert training.num_tokens + validation.num_tokens == corpus.num_tokens
        fingerprints = {corpus.fingerprint, training.fingerprint, validation.fingerprint}
        assert len(fingerprints) == 3
    assert split_of(tmp_path / "tokens", corpus, 0.0) == SplitCorpus(corpus, None)


def test_which_documents_validate_hangs_on_their_ids_alone(tmp_path: Path) -> None:
    few, many = (corpus_of(tmp_path / str(n), words(n)) for n in (300, 400))  # ids of a file's rows
    kept = split_of(tmp_path / "300" / "tokens", few, 0.05).validation
    of_more = split_of(tmp_path / "400" / "tokens", many, 0.05).validation
    assert kept is not None
    assert of_more is not None
    assert documents(kept) == documents(of_more) & documents(few)


def test_rows_of_one_id_are_counted_each(tmp_path: Path) -> None:
    """As files of one name in two folders have them."""
    for folder in (tmp_path / "de", tmp_path / "en"):
        folder.mkdir()
        lines = (json.dumps({"text": f"{folder.name} {text}"}) for text in words(20))
        (folder / "texts.jsonl").write_text("\n".join(lines))
    tokenizer = train_tokenizer(["a b"], vocab_size=300)
    given = [CorpusConfig(path=str(tmp_path))]
    corpus = make_corpus(given, tokenizer, tmp_path / "tokens", view="pretrain")
    training, validation = split_of(tmp_path / "tokens", corpus, 0.02)
    assert validation is not None
    assert (training.rows, validation.rows) == (len(training.lengths), len(validation.lengths))
    assert training.rows + validation.rows == corpus.rows == 40


def test_a_small_corpus_gives_one_document_and_a_tiny_one_none(tmp_path: Path) -> None:
    kept = {}
    for n in (1, 2, FEWEST - 1, FEWEST):
        corpus = corpus_of(tmp_path / str(n), words(n))
        kept[n] = split_of(tmp_path / str(n) / "tokens", corpus, 1e-9).kept
        assert split_of(tmp_path / str(n) / "tokens", corpus, 0.5).kept <= n // 2
    assert kept == {1: 0, 2: 0, FEWEST - 1: 0, FEWEST: 1}


def test_the_loss_is_that_of_each_document_by_itself(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, words(40))
    torch.manual_seed(0)
    model = new_decoder(SHAPE)
    packer = Packer(corpus, 64, seed=0, pad=0)
    validator = ValidationRows(packer, most_rows=1000, micro_rows=3)
    total, count = 0.0, 0
    for pieces in packer.rows_of(0):
        for piece in pieces:
            first = corpus.starts[piece.document] + piece.start
            ids = torch.from_numpy(corpus.tokens[first : first + piece.length].astype(np.int64))
            with torch.no_grad():
                hidden = model(ids[None], documents_BT=torch.zeros_like(ids)[None]).hidden_BTD
                logits = model.lm_head(hidden)[0, :-1]
            total += F.cross_entropy(logits, ids[1:], reduction="sum").item()
            count += len(ids) - 1
    assert validator.loss(model) == pytest.approx(total / count, rel=1e-5)
    first_rows = ValidationRows(packer, most_rows=2, micro_rows=3).loss(model)
    batch, _ = next(packer.batches(2))
    with torch.no_grad():
        hidden = model(batch.ids_BT, documents_BT=batch.documents_BT).hidden_BTD
    logits, targets = model.lm_head(hidden).flatten(0, 1), batch.targets_BT.flatten()
    assert first_rows == pytest.approx(
        F.cross_entropy(logits, targets, ignore_index=IGNORE).item(), rel=1e-5
    )


def test_the_best_is_the_first_of_the_least_and_never_no_number() -> None:
    best = None
    seen = []
    for step, loss in enumerate([float("nan"), 3.0, 2.0, 2.0, float("inf"), 1.5], 1):
        best = best_of(best, step, loss)
        seen.append(best and (best.step, best.since))
    assert seen == [None, (2, 0), (3, 0), (3, 1), (3, 2), (6, 0)]


def steps_of(folder: Path) -> list[tuple[Any, ...]]:
    return [(m["loss"], m["grad_norm"], m["max_logit"]) for m in read_metrics(folder)]


def test_validating_shows_in_the_metrics_and_changes_no_step(data: Path, tmp_path: Path) -> None:
    done = []
    for every in (2, 100):
        config = config_of(data, tmp_path / str(every), steps=5)
        validation = ValidationConfig(share=0.1, every=every)
        done.append(train(config.model_copy(update={"validation": validation})))
    often, once = (read_metrics(one.folder) for one in done)
    assert [m["step"] for m in often if m["validation_loss"] is not None] == [2, 4, 5]
    assert [m["step"] for m in once if m["validation_loss"] is not None] == [5]
    assert steps_of(done[0].folder) == steps_of(done[1].folder)
    assert often[-1]["validation_loss"] == once[-1]["validation_loss"] == done[0].validation_loss
    assert often[-1]["validation_loss"] < often[1]["validation_loss"]
    assert "validation" in told(often[-1])
    assert "validation" not in told(often[0])
    assert "validation " in done[0].words


def test_validation_reaches_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Metrics(tmp_path, from_step=0) as metrics:
        for step, loss in ((1, None), (2, 2.5)):
            metrics.write({"step": step, "loss": 3.0, "validation_loss": loss})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("validation_loss")] == [(2, 2.5)]


def test_rates_count_tokens_of_documents_and_no_padding(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    module = "trainer.training.training_run"
    monkeypatch.setattr(f"{module}.time.perf_counter", lambda: next(seconds))
    monkeypatch.setattr(f"{module}._peak_flops", lambda _: 1e12)
    config = config_of(data, tmp_path / "run", steps=3)
    folder = train(config).folder / "tokens"
    split = split_of(folder, open_corpus(folder), config.validation.share)
    packer = Packer(split.training, 64, config.seed, pad=0)
    rows = [row for epoch in range(3) for row in packer.rows_of(epoch)]
    steps = [[p.length for row in rows[4 * n : 4 * n + 4] for p in row] for n in range(3)]
    sizes = [sum(lengths) for lengths in steps]
    lines = read_metrics(config.folder)
    assert [line["tokens_per_s"] for line in lines] == sizes  # a step takes one second here
    assert [line["tokens"] for line in lines] == list(itertools.accumulate(sizes))
    assert [line["padding"] for line in lines] == [pytest.approx(1 - n / 256) for n in sizes]
    assert [line["schedule_tokens"] for line in lines] == [256, 512, 768]
    assert min(line["padding"] for line in lines) > 0
    for line, lengths in zip(lines, steps, strict=True):  # attention stays within a document
        flops = sum(n * train_flops_per_token(SHAPE, n) for n in lengths)
        assert line["mfu"] == pytest.approx(flops / 1e12, rel=1e-2)
