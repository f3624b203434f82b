"""From the folder of a model to a sampler: on which device, whether it fits, then the weights."""

import logging
from pathlib import Path
from typing import NamedTuple

import torch

from records.errors import ConfigError
from trainer.data.tokenizer import FILE as TOKENIZER
from trainer.data.tokenizer import Tokenizer
from trainer.inference.sampler import READ_KEYS, READ_TOKENS, Sampler, slot_tokens
from trainer.model.config import TransformerConfig
from trainer.model.exchange import import_model, import_with_tokenizer
from trainer.model.size import size_of
from trainer.training.devices import (
    Device,
    device_of,
    refuse_what_does_not_fit,
    refuse_widths,
    weight_dtype,
)

log = logging.getLogger(__name__)


class Loaded(NamedTuple):
    sampler: Sampler
    tokenizer: Tokenizer


def load_sampler(
    folder: Path,
    *,
    device: Device = "auto",
    slots: int,
    tokens: int | None = None,
    routes: bool = False,
) -> Loaded:
    """`tokens`: that a slot can hold; None: what the model takes. `routes`: see `Sampler`.

    ConfigError, before anything is allocated, for a folder without a model and its tokenizer, a
    device that is not there, or one with less memory than the estimate, which is logged.
    """
    where = device_of(device)
    _check_folder(folder)
    config = import_model(folder, shapes_only=True).config
    room = slot_tokens(config, tokens)
    refuse_widths(config, where)
    needed = bytes_needed(config, slots=slots, tokens=room, device=where)
    refuse_what_does_not_fit(
        needed,
        where,
        what=f"sampling from {folder} with {slots} slots of {room} tokens",
        instead="lower slots or slot_tokens, or choose a smaller model",
    )
    log.info("%s on %s, about %.2f GiB", folder, where, needed / 2**30)
    model, tokenizer = import_with_tokenizer(folder, device=where, dtype=weight_dtype(where))
    return Loaded(Sampler(model.eval(), slots=slots, tokens=tokens, routes=routes), tokenizer)


def _check_folder(folder: Path) -> None:
    if (folder / "checkpoints").is_dir():
        raise ConfigError(
            f"{folder} is a training run that is not finished; start it again to its end"
        )
    if missing := [name for name in ("config.json", TOKENIZER) if not (folder / name).is_file()]:
        raise ConfigError(
            f"{folder} holds no {', '.join(missing)}; name a finished training run or the folder "
            "of an exported model"
        )


def bytes_needed(
    config: TransformerConfig, *, slots: int, tokens: int, device: torch.device
) -> int:
    """Memory of sampling, estimated: weights, the cache of slots x tokens, and the larger of what
    reading prompts and writing a token to every slot take inside a layer."""
    weight = weight_dtype(device).itemsize
    cached = config.kv_lora_rank + config.qk_rope_head_dim
    cache = config.num_layers * slots * tokens * cached * weight
    heads, logits = config.num_heads, 12 * slots * config.vocab_size * 4  # shares are doubles
    features = config.qk_head_dim + config.v_head_dim
    keys = min(max(READ_KEYS, tokens), slots * tokens)
    scores = min(READ_TOKENS, slots * tokens) * tokens * heads * 2 * 4
    reading = keys * 2 * heads * features * weight + scores
    writing = slots * tokens * (cached * weight + 2 * heads * 4)
    return size_of(config).total * weight + cache + max(reading, writing) + logits
