"""Do honest rewrites of a text teach more for each token than the text itself, read again?

    python -m benchmarks.teaching_text [--seeds 3] [--out data/teaching_text]

The texts are the tuning half of `benchmarks.rewrites`: documents, faithful rewrites of them and
rewrites with a planted change, all by language models. One rewrite of each document, drawn by seed,
is read by nobody. A tiny model is pretrained on prose, once a seed, and goes on from there in five
ways for the same number of learnt tokens:

    raw             the documents, over and over
    honest          the documents and their faithful rewrites
    false           the documents and the rewrites with a planted change
    half 0, half 1  the documents, and the faithful rewrites of one half of them

Measured is the loss for each token of the rewrites that were kept back: the same facts in words
that no model has read. Of the two halves, one model has read a document's own rewrites, the other
as many of other documents. Markdown goes to stdout. Finished runs are kept below `--out`, so that
a second start goes on; `--scale 0.1` is shorter.
"""

import argparse
import copy
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from benchmarks.ablations.cells import Cell, Result, Results
from benchmarks.ablations.learning import Plan, learn, shape
from benchmarks.ablations.prose import Prose, prose
from benchmarks.rewrites import RewrittenPart, texts_of
from benchmarks.teaching_tables import report
from records.seeds import rng_of
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.packing import Packer
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, load_tokenizer
from trainer.model.decoder import Decoder
from trainer.optim.muon import optimizer_of, set_lr
from trainer.optim.schedule import wsd
from trainer.training.settings import DataConfig, TrainConfig
from trainer.training.step import Stepper

ARMS = ("raw", "honest", "false", "half 0", "half 1")

ROWS, ROW_TOKENS = 8, 256
PRETRAINING_STEPS = 300
"""Four fifths of an epoch of the prose."""
PRETRAINING_RATE, RATE = 6e-3, 3e-3
LEARNT_TOKENS = 180_000
"""Of an arm: six epochs of the documents alone."""
POINTS = 2
"""Times that an arm is measured on its way, the end included."""

NUMBER = re.compile(rb"\d+(?:[.,:]\d+)*")


class TaughtDocument(NamedTuple):
    name: str
    genre: str
    language: str
    source: str
    honest: tuple[str, ...]
    """Whole faithful rewrites, in the order of the file."""
    changed: tuple[str, ...]
    """Rewrites of single parts, each with one planted change."""


class HeldBack(NamedTuple):
    """The texts of one seed: what may be learnt, by document, and what nobody reads."""

    documents: Sequence[TaughtDocument]
    """Without the rewrite that is kept back."""
    kept_back: Mapping[str, str]
    """Name of a document -> that rewrite."""


def documents_in(parts: Sequence[RewrittenPart]) -> list[TaughtDocument]:
    """In the order of the parts, which a document's lie together in."""
    return [
        _document(name, list(own)) for name, own in groupby(parts, key=lambda part: part.document)
    ]


def _document(name: str, parts: Sequence[RewrittenPart]) -> TaughtDocument:
    rewrites: list[list[RewrittenPart]] = []
    for part in parts:
        if part.change is None:
            if part.part == 0:  # the parts of a rewrite follow each other
                rewrites.append([])
            rewrites[-1].append(part)
    return TaughtDocument(
        name,
        parts[0].genre,
        parts[0].language,
        "\n\n".join(part.source for part in rewrites[0]),
        tuple("\n\n".join(part.rewrite for part in rewrite) for rewrite in rewrites),
        tuple(part.rewrite for part in parts if part.change is not None),
    )


def held_back(documents: Sequence[TaughtDocument], seed: int) -> HeldBack:
    """One rewrite of each document kept back, by lot. A document needs two."""
    left, kept_back = [], {}
    for document in documents:
        chosen = rng_of("teaching_text", document.name, seed).randrange(len(document.honest))
        others = tuple(text for n, text in enumerate(document.honest) if n != chosen)
        left.append(document._replace(honest=others))
        kept_back[document.name] = document.honest[chosen]
    return HeldBack(left, kept_back)


def half_of(documents: Sequence[TaughtDocument], seed: int) -> dict[str, int]:
    """Name -> 0 or 1, by lot; the halves differ by one document at most."""
    names = [document.name for document in documents]
    rng_of("teaching_text", "halves", seed).shuffle(names)
    return {name: place % 2 for place, name in enumerate(names)}


def texts_of_arm(texts: HeldBack, arm: str, seed: int) -> Iterator[str]:
    """One epoch of what an arm reads."""
    half = half_of(texts.documents, seed)
    for document in texts.documents:
        yield document.source
        if arm == "honest" or arm == f"half {half[document.name]}":
            yield from document.honest
        elif arm == "false":
            yield from document.changed


class Losses(NamedTuple):
    """Of a text, added up."""

    nats: float
    tokens: int
    number_nats: float
    """Of the tokens of numbers that the document says, too."""
    number_tokens: int


Measure = Callable[[Decoder], Mapping[str, Losses]]
"""A model -> its losses on the rewrites that were kept back, by document."""


@torch.no_grad()
def losses_on(model: Decoder, tokenizer: Tokenizer, text: str, source: str) -> Losses:
    """In stretches of a row, as texts are learnt; a stretch's first token has nothing before it."""
    ids = [*tokenizer.encode(text), tokenizer.end]
    numbers = in_numbers(tokenizer, ids, text, source)
    losses = torch.cat(
        [_losses(model, ids[at : at + ROW_TOKENS]) for at in range(0, len(ids), ROW_TOKENS)]
    )
    learnt = [n for n in range(len(ids)) if n % ROW_TOKENS]
    of_numbers = losses[torch.tensor([numbers[n] for n in learnt], dtype=torch.bool)]
    return Losses(losses.sum().item(), len(losses), of_numbers.sum().item(), len(of_numbers))


def _losses(model: Decoder, ids: Sequence[int]) -> torch.Tensor:
    """Nats of every token but the first."""
    row = torch.tensor([ids])
    if row.shape[1] < 2:
        return torch.zeros(0)
    logits = model.logits(model(row).hidden_BTD[:, :-1])
    return F.cross_entropy(logits[0].float(), row[0, 1:], reduction="none")


def in_numbers(tokenizer: Tokenizer, ids: Sequence[int], text: str, source: str) -> list[bool]:
    """For each token whether it is of a number that stands in the source as it stands here."""
    known = set(NUMBER.findall(source.encode()))
    data = text.encode()
    spans = [found.span() for found in NUMBER.finditer(data) if found[0] in known]
    inside = bytearray(len(data))
    for start, end in spans:
        inside[start:end] = b"\1" * (end - start)
    flags, at = [], 0
    for number in ids[:-1]:
        length = len(tokenizer.bytes_of(number) or b"")
        flags.append(any(inside[at : at + length]))
        at += length
    assert at == len(data), "the tokens of a text are its bytes"
    return [*flags, False]  # the end token


def shared_runs(text: str, others: Sequence[str], words: int = 8) -> tuple[int, int]:
    """(runs of so many words of the text that stand in one of the others, all its runs)."""
    known = {run for other in others for run in _runs(other, words)}
    runs = _runs(text, words)
    return sum(run in known for run in runs), len(runs)


def _runs(text: str, words: int) -> list[tuple[str, ...]]:
    said = re.findall(r"\w+", text.casefold())
    return [tuple(said[at : at + words]) for at in range(len(said) - words + 1)]


def pretrained(corpus: Prose, seed: int, scale: float) -> Decoder:
    plan = Plan(
        shape=shape(corpus.vocab_size),
        peak_lr=PRETRAINING_RATE,
        steps=max(1, round(PRETRAINING_STEPS * scale)),
        rows=ROWS,
        row_tokens=ROW_TOKENS,
        seed=seed,
        corpus=corpus.train.fingerprint,
    )
    return learn(plan, corpus.train, None)[0]


def taught(
    start: Decoder, corpus: Corpus, seed: int, tokens: int, measure: Measure
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Go on from `start` until so many tokens are learnt. `measure(model)` is asked at `POINTS`
    places; its answers, and what the training was like."""
    model = copy.deepcopy(start)
    data = DataConfig(
        sources=(CorpusConfig(path="in memory"),),
        row_tokens=ROW_TOKENS,
        batch_rows=ROWS,
        micro_rows=ROWS,
    )
    config = TrainConfig(out="none", data=data, device="cpu")
    stepper = Stepper(model, optimizer_of(model, config.optimizer, lr=RATE), config)
    rates = wsd(RATE, tokens)
    learnt, skipped, losses, measured = 0, 0, [], []
    for batch, _ in Packer(corpus, ROW_TOKENS, seed, pad=0).batches(ROWS):
        set_lr(stepper.optimizer, rates.lr_at(learnt + batch.num_targets))
        result = stepper.step(batch)
        skipped += result.skipped is not None
        learnt += batch.num_targets
        losses.append(result.loss)
        if learnt >= tokens * (len(measured) + 1) / POINTS:
            measured.append({"learnt": learnt, "losses": measure(model)})
        if learnt >= tokens:
            break
    last = losses[-max(1, len(losses) // 10) :]
    return measured, {
        "learnt": learnt,
        "epochs": learnt / max(1, corpus.num_tokens),
        "epoch_tokens": corpus.num_tokens,
        "training_loss": sum(last) / len(last),
        "skipped": skipped,
    }


def run_arm(
    start: Decoder, tokenizer: Tokenizer, texts: HeldBack, cell: Cell, tokens: int
) -> Result:
    arm, seed = cell.name, cell.seed
    read = list(texts_of_arm(texts, arm, seed))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in read))
        source = CorpusConfig(path=str(path))
        corpus = make_corpus((source,), tokenizer, Path(folder) / "tokens", view="pretrain")
        measured, training = taught(
            start, corpus, seed, tokens, lambda model: _measured(model, tokenizer, texts)
        )
    shared = {name: shared_runs(text, read) for name, text in texts.kept_back.items()}
    return training | {"points": measured, "shared_runs": shared}


def _measured(model: Decoder, tokenizer: Tokenizer, texts: HeldBack) -> dict[str, Losses]:
    return {
        document.name: losses_on(model, tokenizer, texts.kept_back[document.name], document.source)
        for document in texts.documents
    }


def run_seed(
    documents: Sequence[TaughtDocument], seed: int, folder: Path, scale: float, results: Results
) -> dict[str, Result]:
    """Every arm of a seed by its name, and `start`: the pretrained model before any of them."""
    settings = {
        "pretraining": [PRETRAINING_STEPS, PRETRAINING_RATE],
        "rows": [ROWS, ROW_TOKENS],
        "rate": RATE,
        "tokens": round(LEARNT_TOKENS * scale),
        "scale": scale,
    }
    cells = [
        Cell(ablation="teaching_text", name=arm, seed=seed, settings=settings)
        for arm in ("start", *ARMS)
    ]
    texts = held_back(documents, seed)
    if any(results.get(cell) is None for cell in cells):
        corpus = prose(folder / "prose")
        tokenizer = load_tokenizer(folder / "prose" / "tokenizer")
        begun = time.process_time()
        start = pretrained(corpus, seed, scale)
        for cell in cells:
            if cell.name == "start":
                losses = _measured(start, tokenizer, texts)
                results.put(cell, {"losses": losses}, time.process_time() - begun)
            elif results.get(cell) is None:
                begun = time.process_time()
                result = run_arm(start, tokenizer, texts, cell, settings["tokens"])
                results.put(cell, result, time.process_time() - begun)
            print(f"seed {seed}, {cell.name}: {results.seconds(cell):.0f} s", file=sys.stderr)
    done = {cell.name: results.get(cell) or {} for cell in cells}
    return {
        name: result | {"seconds": results.seconds(cell), "half": half_of(documents, seed)}
        for cell, (name, result) in zip(cells, done.items(), strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs with seeds 0, 1, ...")
    parser.add_argument("--out", type=Path, default=Path("data/teaching_text"))
    parser.add_argument("--scale", type=float, default=1.0, help="of all steps, for a shorter try")
    args = parser.parse_args()
    torch.set_num_threads(1)
    documents = documents_in(texts_of("tuning"))
    results = Results(args.out / "cells")
    seeds = {
        seed: run_seed(documents, seed, args.out, args.scale, results) for seed in range(args.seeds)
    }
    print(report({document.name: document.language for document in documents}, seeds))


if __name__ == "__main__":
    main()
