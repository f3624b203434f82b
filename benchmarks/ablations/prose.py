"""Prose that every machine with Python has: its language reference and the docstrings of its
library. Another version of Python has other words; results say which corpus they are of."""

import json
from pathlib import Path
from typing import NamedTuple

from benchmarks.prose import prose as texts
from records.digest import digest
from records.files import write_atomic
from records.seeds import share_of
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import load_tokenizer, train_tokenizer

VOCAB = 1024
HELD_OUT = 0.05
"""Share of the texts that losses are told of and none is trained on."""


class Prose(NamedTuple):
    train: Corpus
    held_out: Corpus
    vocab_size: int


def prose(folder: Path) -> Prose:
    """Tokenised once into `folder`."""
    parts = {"train": folder / "train.jsonl", "held_out": folder / "held_out.jsonl"}
    if not (folder / "tokenizer").exists():
        _write(parts)
        texts = (json.loads(line)["text"] for line in parts["train"].open(encoding="utf-8"))
        train_tokenizer(texts, vocab_size=VOCAB).save(folder / "tokenizer")
    tokenizer = load_tokenizer(folder / "tokenizer")
    train, held_out = (
        make_corpus((CorpusConfig(path=str(path)),), tokenizer, folder / name, view="pretrain")
        for name, path in parts.items()
    )
    return Prose(train, held_out, tokenizer.size)


def _write(parts: dict[str, Path]) -> None:
    lines: dict[str, list[str]] = {name: [] for name in parts}
    for text in texts():
        side = "held_out" if share_of(digest(text), "held_out") < HELD_OUT else "train"
        lines[side].append(json.dumps({"text": text}) + "\n")
    for name, path in parts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, "".join(lines[name]).encode())
