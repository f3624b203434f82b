"""A training run from its config to a finished model, and on from its last checkpoint.

The folder of a run (`trainer.training.run_folder`) holds `config.json`, `tokens/`, `tokenizer/`,
`checkpoints/`, `metrics.jsonl`, `tensorboard/`, `curves.html` and at the end `model/`, which
transformers loads.
"""

import json
import logging
import math
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch

from records.errors import ConfigError, SynthError
from trainer.data.chat import reasoning_of, text_of
from trainer.data.chat_format import ChatFormat
from trainer.data.conversations import TrainingConversation
from trainer.data.corpus import Corpus, make_corpus
from trainer.data.packing import DataPosition, PackedBatch, Packer
from trainer.data.sources import CorpusConfig, ViewName, is_learnt_from, samples_of
from trainer.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model
from trainer.model.size import train_flops_per_token
from trainer.optim.muon import optimizer_of, set_lr
from trainer.training.account import account
from trainer.training.checkpoints import (
    checkpoints_in,
    load_checkpoint,
    remove_old,
    save_checkpoint,
)
from trainer.training.curves import write_curves
from trainer.training.devices import device_of, weight_dtype
from trainer.training.metrics import Metrics, MetricsLine, read_metrics
from trainer.training.rows import least_rows, limits_of, new_model, settled
from trainer.training.run_folder import (
    CHECKPOINTS,
    CONFIG,
    MODEL,
    TOKENIZER,
    TOKENS,
    as_before,
    check_folder,
    held,
    write_settings,
)
from trainer.training.settings import TrainConfig, check_memory
from trainer.training.step import AFTER, Stepper, StepResult

log = logging.getLogger(__name__)

TOKENIZER_ROWS = 20_000
"""Rows that a new tokenizer is trained on, at most."""

PEAK_FLOPS = {"H100": 989e12, "H800": 989e12, "H200": 989e12, "A100": 312e12}
"""bf16 without sparsity, by a part of the GPU's name."""


@dataclass(frozen=True)
class Trained:
    folder: Path
    steps: int
    loss: float
    """Of the last step; NaN where it was no number."""
    begun: int
    """The step that this process went on from; 0 for a new run."""


def train(config: TrainConfig, *, on_step: Callable[[MetricsLine], None] | None = None) -> Trained:
    """Train to the end, from the last checkpoint in the folder where there is one.

    ConfigError before anything is allocated for what cannot work; SynthError for a bad step under
    `bad_step = "stop"`.
    """
    device = device_of(config.device)
    check_folder(config)
    config = as_before(config)
    tokenizer = _tokenizer(config)
    shape = _shape(config, tokenizer)
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
    _tell(corpus)
    config = settled(config, corpus.row_length.tokens, shape.config, device)
    shape = _shape(config, tokenizer)
    needed = check_memory(config, shape.config, device)
    log.info("training %s on %s, about %.2f GiB a step", config.out, device, needed / 2**30)
    tokenizer.save(config.folder / TOKENIZER)
    write_settings(config)
    model = _model(config, shape, device)
    run = _Run(config, model, corpus, tokenizer, device)
    begun = run.done
    try:
        with Metrics(config.folder, from_step=begun) as metrics:
            for line in run.lines():
                metrics.write(line)
                if on_step is not None:
                    on_step(line)
        run.save()
    finally:  # what a run was like that stopped is what somebody wants to see
        _draw(config, corpus, device)
    export_model(model, config.folder / MODEL, tokenizer, chat=corpus.chat)
    lines = read_metrics(config.folder)
    loss = lines[-1]["loss"] if lines else None
    return Trained(config.folder, run.done, math.nan if loss is None else loss, begun)


def _draw(config: TrainConfig, corpus: Corpus, device: torch.device) -> None:
    lines = read_metrics(config.folder)
    about = f"{config.steps:,} steps of {config.step_tokens:,} tokens on {device}"
    title = f"{config.stage} {config.folder.name}"
    write_curves(config.folder, lines, title=title, about=about, counts=account(corpus, lines))


class _Run:
    """The loop's state: how far it is, and where in the data."""

    def __init__(
        self,
        config: TrainConfig,
        model: Decoder,
        corpus: Corpus,
        tokenizer: Tokenizer,
        device: torch.device,
    ) -> None:
        self.config, self.model, self.device = config, model, device
        pad = tokenizer.special["[PAD]"]
        self.packer = Packer(corpus, config.row_tokens, config.seed, pad)
        self.optimizer = optimizer_of(model, config.optimizer, lr=config.peak_lr)
        self.stepper = Stepper(model, self.optimizer, config)
        self.done, self.place = 0, DataPosition()
        self._resume(corpus)

    def lines(self) -> Iterator[MetricsLine]:
        """Take the steps that are left, a line of metrics each."""
        batches = self.packer.batches(self.config.data.batch_rows, self.place)
        left = self.config.steps - self.done
        for batch, place in islice(batches, max(0, left)):
            begun = time.perf_counter()
            lr = self.config.learning_rates.lr_at((self.done + 1) * self.config.step_tokens)
            set_lr(self.optimizer, lr)
            result = self.stepper.step(PackedBatch(*(t.to(self.device) for t in batch)))
            if result.skipped and self.config.bad_step == "stop":
                raise SynthError(
                    f"step {self.done + 1}, rows before {tuple(place)} of the data: "
                    f"{result.why_skipped}; the last checkpoint is kept, bad_step = 'skip' goes on"
                )
            self.done, self.place = self.done + 1, place
            yield self._line(result, lr, time.perf_counter() - begun)
            if self.done % self.config.checkpoint_every == 0:
                self.save()

    def save(self) -> None:
        state = {
            "step": self.done,
            "place": list(self.place),
            "norms": list(self.stepper.norms),
            "corpus": self.packer.corpus.fingerprint,
        }
        folder = self.config.folder / CHECKPOINTS
        folder.mkdir(parents=True, exist_ok=True)
        save_checkpoint(folder, self.model, self.optimizer, state, step=self.done)
        remove_old(folder, keep=self.config.keep)

    def _resume(self, corpus: Corpus) -> None:
        found = checkpoints_in(self.config.folder / CHECKPOINTS)
        if not found:
            return
        state = load_checkpoint(found[-1], self.model, self.optimizer)
        if state["corpus"] != corpus.fingerprint:
            raise ConfigError(f"{found[-1]} was trained on other data than {self.config.out} has")
        self.done, self.place = state["step"], DataPosition(*state["place"])
        self.stepper.norms.extend(state["norms"])
        log.info("going on from step %d: %s", self.done, found[-1])

    def _line(self, result: StepResult, lr: float, seconds: float) -> MetricsLine:
        tokens_per_s = self.config.step_tokens / seconds
        flops = train_flops_per_token(self.model.config, self.config.row_tokens)
        peak = _peak_flops(self.device)
        unknown = dict.fromkeys(AFTER) if result.skipped else {}
        return {
            "step": self.done,
            "tokens": self.done * self.config.step_tokens,
            "lr": lr,
            **asdict(result),
            **unknown,
            "tokens_per_s": tokens_per_s,
            "memory_gib": _memory_gib(self.device),
            "mfu": tokens_per_s * flops / peak if peak else None,
        }


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
    model = import_model(Path(config.start_from)) if config.start_from else Decoder(shape.config)
    model.recompute = config.recompute
    model.to(device)
    model.cast(weight_dtype(device))
    return model


def _tell(corpus: Corpus) -> None:
    left_out = ", ".join(f"{n} {why}" for why, n in corpus.left_out.items()) or "none"
    cut = ", ".join(f"{n} {what}" for what, n in corpus.cut.items()) or "none"
    log.info(
        "%s tokens in %s documents, %s to be learnt; left out: %s; cut: %s",
        f"{corpus.num_tokens:,}",
        f"{len(corpus.lengths):,}",
        f"{int(corpus.learnt.sum()):,}",
        left_out,
        cut,
    )
    log.info("rows of %s tokens: %s", f"{corpus.row_length.tokens:,}", corpus.row_length.why)


def _peak_flops(device: torch.device) -> float | None:
    """Of a GPU that we know; a CPU's share of its peak says little."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


def _memory_gib(device: torch.device) -> float:
    """Highest so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
