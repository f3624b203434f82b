"""A training run from its config to a finished model, and on from its last checkpoint.

The folder of a run (`trainer.training.run_folder`) holds `config.json`, `tokens/`, `tokenizer/`,
`checkpoints/`, `metrics.jsonl`, `tensorboard/`, `curves.html` and at a good end `model/`, which
transformers loads.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import torch

from records.chat.k2 import reasoning_of, text_of
from records.errors import ConfigError
from trainer.data.chat_format import ChatFormat
from trainer.data.conversations import TrainingConversation
from trainer.data.corpus import make_corpus
from trainer.data.sources import CorpusConfig, ViewName, is_learnt_from, samples_of
from trainer.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from trainer.model.decoder import Decoder
from trainer.model.exchange import import_model
from trainer.model.initialization import initialize
from trainer.model.paths import ComputePath, path_of
from trainer.training.account import account
from trainer.training.curves import write_curves
from trainer.training.devices import device_of, refuse_widths, weight_dtype
from trainer.training.ending import Trained, export_whole
from trainer.training.metrics import Metrics, MetricsLine, read_metrics
from trainer.training.rows import least_rows, limits_of, new_model, settled
from trainer.training.run_folder import (
    CONFIG,
    TOKENIZER,
    TOKENS,
    as_before,
    check_folder,
    held,
    put_model_aside,
    write_settings,
)
from trainer.training.settings import TrainConfig, check_memory
from trainer.training.training_run import TrainingRun
from trainer.training.validation import SplitCorpus, split_of

log = logging.getLogger(__name__)

TOKENIZER_ROWS = 20_000
"""Rows that a new tokenizer is trained on, at most."""


def train(config: TrainConfig, *, on_step: Callable[[MetricsLine], None] | None = None) -> Trained:
    """Train to the end, from the last checkpoint in the folder where there is one.

    ConfigError before anything is allocated for what cannot work; SynthError, and no model, for a
    run that has gone wrong: a bad step under `bad_step = "stop"`, `max_bad_steps` of them in a row,
    an end with bad steps, weights that are not finite.
    """
    device = device_of(config.device)
    check_folder(config)
    config = as_before(config)
    tokenizer = _tokenizer(config)
    shape = _shape(config, tokenizer)
    refuse_widths(shape.config, device)
    check_memory(least_rows(config), shape.config, device)
    with held(config.folder):
        check_folder(config)  # somebody may have been here while this waited
        return _train(config, tokenizer, shape, device, on_step)


def _train(
    config: TrainConfig,
    tokenizer: Tokenizer,
    shape: Decoder,
    device: torch.device,
    on_step: Callable[[MetricsLine], None] | None,
) -> Trained:
    corpus = make_corpus(
        config.data.sources,
        tokenizer,
        config.folder / TOKENS,
        view=config.stage,
        chat=ChatFormat(declarations=config.data.declarations, system=config.data.system),
        reasoning=config.data.reasoning,
        limits=limits_of(config, shape.config, device),
    )
    split = split_of(config.folder / TOKENS, corpus, config.validation.share)
    if split.validation is None and config.validation.early_stop is not None:
        raise ConfigError(
            f"validation.early_stop = {config.validation.early_stop}, but none of the "
            f"{len(corpus.lengths)} documents falls to validation; raise validation.share, or "
            "leave out early_stop"
        )
    _tell(split)
    config = settled(config, corpus.row_length.tokens, shape.config, device)
    shape = _shape(config, tokenizer)
    needed = check_memory(config, shape.config, device)
    log.info("training %s on %s, about %.2f GiB a step", config.out, device, needed / 2**30)
    tokenizer.save(config.folder / TOKENIZER)
    model = _model(config, shape, device)
    run = TrainingRun(config, model, corpus.fingerprint, split, tokenizer, device)
    write_settings(config)
    begun = run.done
    if not run.ended:
        put_model_aside(config.folder, begun)
    try:
        with Metrics(config.folder, from_step=begun) as metrics:
            for line in run.lines():
                metrics.write(line)
                if on_step is not None:
                    on_step(line)
        run.end()
        exported = run.take_best()
        export_whole(model, config.folder, tokenizer, corpus.chat)
    finally:  # what a run was like that stopped is what somebody wants to see
        _draw(config, split, device)
    best = run.best if run.best is not None and run.best.step == exported else None
    return Trained(
        folder=config.folder,
        steps=run.done,
        loss=run.loss,
        begun=begun,
        exported=exported,
        validation_loss=best.loss if best else run.validation_loss,
        early=run.stopped_early,
    )


def _draw(config: TrainConfig, split: SplitCorpus, device: torch.device) -> None:
    lines = read_metrics(config.folder)
    about = (
        f"{config.steps:,} steps of {config.step_tokens:,} tokens, padding included, on {device}"
    )
    title = f"{config.stage} {config.folder.name}"
    write_curves(config.folder, lines, title=title, about=about, counts=account(split, lines))


def _tokenizer(config: TrainConfig) -> Tokenizer:
    """That of the run if it has one, of the config, of the model it starts from, or a new one."""
    own = config.folder / TOKENIZER
    if (config.folder / CONFIG).exists():
        return load_tokenizer(own)
    given = config.data.tokenizer or config.start_from
    if given is not None:
        tokenizer = load_tokenizer(Path(given))
    else:
        sources: list[tuple[CorpusConfig, ViewName]]
        sources = [(source, config.stage) for source in config.data.sources]
        tokenizer = tokenizer_of(sources, vocab_size=config.new_shape.vocab_size)
    return tokenizer


def tokenizer_of(sources: Iterable[tuple[CorpusConfig, ViewName]], *, vocab_size: int) -> Tokenizer:
    """A new byte-level BPE, trained on the sources without their rows that are kept for tests; the
    view says what of a dataset."""
    return train_tokenizer(_texts(sources), vocab_size=vocab_size)


def _texts(sources: Iterable[tuple[CorpusConfig, ViewName]]) -> Iterator[str]:
    for source, view in sources:
        learnt = (s for s in samples_of(source, view) if is_learnt_from(s, source))
        for sample in islice(learnt, TOKENIZER_ROWS):
            if isinstance(sample.body, TrainingConversation):
                yield json.dumps(list(sample.body.tools), ensure_ascii=False)
                for message in sample.body.messages:
                    yield reasoning_of(message)
                    yield text_of(message)
                    yield from (c["function"]["arguments"] for c in message.get("tool_calls", ()))
            else:
                yield sample.body


def _shape(config: TrainConfig, tokenizer: Tokenizer) -> Decoder:
    """The model on the meta device: its shapes, and no memory."""
    if config.start_from is not None:
        shape = import_model(Path(config.start_from), shapes_only=True)
        if tokenizer.size > shape.config.vocab_size:
            raise ConfigError(
                f"the tokenizer has {tokenizer.size} tokens, the model {config.start_from} only "
                f"{shape.config.vocab_size}"
            )
    else:
        with torch.device("meta"):
            shape = Decoder(new_model(config, tokenizer.size))
    if (config.data.row_tokens or 0) > shape.config.max_positions:
        raise ConfigError(
            f"data.row_tokens = {config.data.row_tokens} is more than the model's "
            f"{shape.config.max_positions} positions"
        )
    return shape


def _model(config: TrainConfig, shape: Decoder, device: torch.device) -> Decoder:
    torch.manual_seed(config.seed)
    if config.start_from:
        start = Path(config.start_from)
        model = import_model(start, device=device, dtype=weight_dtype(device))
    else:
        model = shape
        model.allocate(device, weight_dtype(device))
        initialize(model, config.seed)
    model.recompute = config.recompute
    if path_of(device) is ComputePath.DEVICE:
        model.compile_layers()
    return model


def _tell(split: SplitCorpus) -> None:
    corpus = split.training
    left_out = ", ".join(f"{n} {why}" for why, n in corpus.left_out.items()) or "none"
    cut = ", ".join(f"{n} {what}" for what, n in corpus.cut.items()) or "none"
    log.info(
        "%s tokens in %s documents, %s more for validation; left out: %s; cut: %s",
        f"{corpus.num_tokens:,}",
        f"{len(corpus.lengths):,}",
        f"{split.kept:,}",
        left_out,
        cut,
    )
    log.info("rows of %s tokens: %s", f"{corpus.row_length.tokens:,}", corpus.row_length.why)
