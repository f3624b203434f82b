"""The rows of a run where its settings leave them open: how long, and how many go together."""

import torch

from trainer.data.row_length import STEP, RowLimits
from trainer.model.config import TransformerConfig
from trainer.training.devices import free_bytes
from trainer.training.settings import TrainConfig, bytes_needed

MOST_MICRO_ROWS = 4
"""Of one forward pass, where the settings do not say."""

MEMORY_SHARE = 0.75
"""Of the free memory that chosen rows may take: the estimate is right within a third or so."""

LONGEST = 1 << 20
"""Tokens of a row that is chosen, at most."""


def limits_of(config: TrainConfig, model: TransformerConfig, device: torch.device) -> RowLimits:
    """What a row may be: as set, or what the model has positions for and the memory has room for,
    with a single row in a forward pass."""
    data = config.data
    if data.row_tokens is not None:
        return RowLimits(data.row_tokens, longer=data.longer)
    positions = _most_positions(config, model) or LONGEST
    room = _room(config, model, device)
    if room < positions:
        why = f"the free memory takes no rows of more than {room:,}"
        return RowLimits(most=room, why_most=why, longer=data.longer)
    why = f"the model takes no more than {positions:,} positions"
    return RowLimits(most=positions, why_most=why, longer=data.longer)


def least_rows(config: TrainConfig) -> TrainConfig:
    """The cheapest rows that the settings allow: what does not fit so will never fit."""
    return _with_rows(config, config.data.row_tokens or STEP, micro=1)


def settled(
    config: TrainConfig, row_tokens: int, model: TransformerConfig, device: torch.device
) -> TrainConfig:
    """The settings with everything in them that was left open: rows that are too many for the
    memory together go one after the other."""
    fewer = [n for n in range(1, MOST_MICRO_ROWS + 1) if config.data.batch_rows % n == 0]
    options = [_with_rows(config, row_tokens, micro=n) for n in reversed(fewer)]
    return next((one for one in options if _fits(one, model, device)), options[-1])


def new_model(config: TrainConfig, vocab_size: int) -> TransformerConfig:
    """The shape of a model that does not start from another. A preset takes as many positions as a
    row has tokens: rotary positions have no weights. One that stretches them has its own."""
    shape = config.new_shape.model_copy(update={"vocab_size": vocab_size})
    if _most_positions(config, shape) is not None:
        return shape
    positions = max(shape.max_positions, config.data.row_tokens or 0)
    return shape.model_copy(update={"max_positions": positions})


def _most_positions(config: TrainConfig, model: TransformerConfig) -> int | None:
    """None where the model gets as many as it needs."""
    is_preset = config.start_from is None and config.shape is None
    return None if is_preset and model.yarn is None else model.max_positions


def _with_rows(config: TrainConfig, tokens: int, *, micro: int) -> TrainConfig:
    data = config.data
    update = {"row_tokens": tokens, "micro_rows": data.micro_rows or micro}
    return config.model_copy(update={"data": data.model_copy(update=update)})


def _fits(config: TrainConfig, model: TransformerConfig, device: torch.device) -> bool:
    free = free_bytes(device)
    return free is None or bytes_needed(config, model, device) <= MEMORY_SHARE * free


def _room(config: TrainConfig, model: TransformerConfig, device: torch.device) -> int:
    """The largest multiple of `STEP` of which a row fits; `STEP` at least."""
    low, high = 1, LONGEST // STEP  # of these the first fits or none does
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(_with_rows(config, middle * STEP, micro=1), model, device):
            low = middle
        else:
            high = middle - 1
    return low * STEP
