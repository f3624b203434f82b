"""The cache of generation: for each token and layer one latent and one rotated key, for all heads.

Source: https://arxiv.org/abs/2405.04434 section 2.1.2. Shape suffixes in this file: L = layers,
B = slots, S = tokens that a slot can hold, N = rows of a pass, T = new tokens of a row,
C = features of the latent, R = rotated ones.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.config import TransformerConfig


class LatentCache:
    """Slots for so many sequences at a time."""

    def __init__(
        self,
        config: TransformerConfig,
        *,
        slots: int,
        tokens: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        shape = (config.num_layers, slots, tokens)
        self.latent_LBSC = torch.zeros(*shape, config.kv_lora_rank, device=device, dtype=dtype)
        self.key_LBSR = torch.zeros(*shape, config.qk_rope_head_dim, device=device, dtype=dtype)
        self.lengths_B = torch.zeros(slots, dtype=torch.long, device=device)
        """Tokens that each slot holds. What lies behind them is never read."""

    @property
    def capacity(self) -> int:
        return self.latent_LBSC.shape[2]

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Put the tokens from `begin` to `end` of one slot into another, which then holds `end`."""
        for kept in (self.latent_LBSC, self.key_LBSR):
            kept[:, target, begin:end] = kept[:, source, begin:end]
        self.lengths_B[target] = end


class CachedRows(NamedTuple):
    """The rows of one pass in one layer of a cache: each has a slot, and puts tokens behind what
    the slot holds."""

    cache: LatentCache
    layer: int
    slots_N: Tensor
    at_NT: Tensor
    """Where the new tokens go. Padding lies behind them, and is never read."""
    ends: list[tuple[int, int, int]]
    """Of each row its slot, the tokens that the slot held, and those that it holds then."""

    def write(self, latent_NTC: Tensor, key_NTR: Tensor) -> None:
        """Put the new tokens in place."""
        self.cache.latent_LBSC[self.layer][self.slots_N[:, None], self.at_NT] = latent_NTC
        self.cache.key_LBSR[self.layer][self.slots_N[:, None], self.at_NT] = key_NTR

    def together(self) -> tuple[Tensor, Tensor]:
        """What the rows may need to read, (N, S, C) and (N, S, R), as long as the longest."""
        end = int(self.at_NT.max()) + 1
        latent_BSC, key_BSR = self.cache.latent_LBSC[self.layer], self.cache.key_LBSR[self.layer]
        return latent_BSC[self.slots_N, :end], key_BSR[self.slots_N, :end]

    def each(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Of each row how many new tokens it has, and what it reads, these included: (S, C) and
        (S, R), not copied."""
        for slot, begin, end in self.ends:
            latent_SC = self.cache.latent_LBSC[self.layer, slot, :end]
            yield end - begin, latent_SC, self.cache.key_LBSR[self.layer, slot, :end]
