"""Other weights for a sampler that goes on: same model, same process, same cache.

What the slots hold is of the weights before, so it is dropped. Everything is checked before the
first weight changes: weights that are refused leave the sampler as it was.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from records.errors import ConfigError
from trainer.inference.sampler import Sampler
from trainer.model.decoder import Decoder
from trainer.model.exchange import import_model

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Bytes of a number -> the whole numbers that its bits are read as."""

PROBE = 0
"""Token whose logits are looked at after a change of weights: every model has it."""


def load_weights(
    sampler: Sampler,
    weights: Path | Mapping[str, Tensor],
    version: int,
    *,
    checksum: str | None = None,
) -> str:
    """Copy `weights`, the folder of an exported model or tensors under the names of
    `Decoder.state_dict`, over those that are there, in their type. Returns their checksum as they
    are then. `version`: what tokens are marked with from now on, larger than before. `checksum`:
    what `checksum_of` said of the same `state_dict`'s items, in the sampler's types, where they
    were made.

    ConfigError, before anything is changed, for weights of another shape, that are no numbers or
    have another checksum, and for a version that is not larger. ConfigError as well where the
    model's first logits are no numbers, or the copy is not the original: then weights have to be
    loaded again, under a version that is larger still, before it is used.
    """
    if version <= sampler.version:
        raise ConfigError(
            f"version = {version}, and the sampler is at {sampler.version}: each change of weights "
            "has a larger one, or tokens would not say who drew them"
        )
    own = sampler.model.state_dict()
    given = _given(sampler.model, weights)
    if wrong := _wrong_in(own, given):
        raise ConfigError(f"these weights do not fit the model: {wrong}; nothing was changed")
    expected = checksum_of((name, given[name].to(tensor)) for name, tensor in own.items())
    if checksum is not None and checksum != expected:
        raise ConfigError(
            f"the weights have the checksum {expected}, and {checksum} was announced: send them "
            "again; nothing was changed"
        )
    sampler.forget()
    sampler.version = version
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(given[name])
    if (found := checksum_of(own.items())) != expected:
        raise ConfigError(
            f"the weights came out as {found} and not as {expected}: load them again, under a "
            f"version above {version}"
        )
    if not first_logits(sampler).isfinite().all():
        raise ConfigError(
            f"the new weights, version {version}, give logits that are no numbers: load others, "
            "under a larger version"
        )
    return found


def checksum_of(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Of names, types, shapes and bits in this order, 16 hex digits. Made where the tensors are,
    and read back once: three sums of each tensor, of its numbers, and of its rows and its columns
    by their places."""
    sums: list[Tensor] = []
    text = ""
    for name, tensor in tensors:
        bits = tensor.detach().contiguous().view(_BITS[tensor.element_size()])
        matrix = bits.reshape(-1, bits.shape[-1] if bits.ndim > 1 else 1)
        rows, columns = (matrix.sum(side, dtype=torch.int64) for side in (1, 0))
        sums += [rows.sum(), *map(_by_place, (rows, columns))]
        text += f"{name} {tensor.dtype} {tuple(tensor.shape)}\n"
    told = torch.stack(sums).tolist() if sums else []
    return hashlib.sha256(f"{text}{told}".encode()).hexdigest()[:16]


def _by_place(numbers: Tensor) -> Tensor:
    """int64 wraps, alike everywhere."""
    return (numbers * torch.arange(1, len(numbers) + 1, device=numbers.device)).sum()


@torch.no_grad()
def first_logits(sampler: Sampler) -> Tensor:
    """Of the probe by the path that samples, in a slot that then holds nothing."""
    device = sampler.cache.lengths_B.device
    one = torch.ones(1, dtype=torch.long, device=device)
    hidden = sampler.model.extend(one[None] * PROBE, one, one - 1, sampler.cache)
    sampler.forget()
    return sampler.model.logits(hidden)


def _given(model: Decoder, weights: Path | Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    if not isinstance(weights, Path):
        return weights
    # all of it, beside the weights that are in use: a damaged file must not leave half of each
    other = import_model(weights)
    if other.config != model.config:
        raise ConfigError(
            f"{weights} is a model of another config than the one that samples; nothing was changed"
        )
    return other.state_dict()


def _wrong_in(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str:
    """What does not fit; empty where all does."""
    if differing := sorted(own.keys() ^ given.keys()):
        return f"{', '.join(differing[:3])} in one only ({len(differing)} tensors)"
    for name, tensor in own.items():
        if given[name].shape != tensor.shape:
            return f"{name} has shape {tuple(given[name].shape)}, not {tuple(tensor.shape)}"
        if not given[name].to(tensor.dtype).isfinite().all():  # a narrower type ends earlier
            return f"{name} has values that are no numbers"
    return ""
