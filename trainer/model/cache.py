"""The cache of generation: for each token and layer one latent and one rotated key, for all heads.

Source: https://arxiv.org/abs/2405.04434 section 2.1.2. Shape suffixes in this file: L = layers,
B = slots, S = tokens that a slot can hold, C = features of the latent, R = rotated ones.
"""

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

    def write(
        self, layer: int, slots_N: Tensor, at_NT: Tensor, latent: Tensor, key: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Put new tokens of some slots in place; returns all that those slots may need to read."""
        self.latent_LBSC[layer][slots_N[:, None], at_NT] = latent
        self.key_LBSR[layer][slots_N[:, None], at_NT] = key
        end = int(at_NT.max()) + 1
        return self.latent_LBSC[layer][slots_N, :end], self.key_LBSR[layer][slots_N, :end]

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Put the tokens from `begin` to `end` of one slot into another, which then holds `end`."""
        for kept in (self.latent_LBSC, self.key_LBSR):
            kept[:, target, begin:end] = kept[:, source, begin:end]
        self.lengths_B[target] = end
