"""Which experts each token was sent to, as a forward pass chose them.

A trainer that sends its tokens to the same experts computes what the sampler computed, where its
own routers would decide a near tie the other way.

Shape suffixes in this file: N = rows, T = tokens, F = tokens one after the other, L = layers with
experts, K = experts of a token.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trainer.model.decoder import Decoder
from trainer.model.experts import MixtureOfExperts, Routed

ROUTE_DTYPE = torch.int16
"""Numbers experts of every model there is."""


@contextmanager
def recorded_routes(model: Decoder) -> Iterator[list[Tensor]]:
    """A list that every forward pass within adds to: a layer with experts each, in their order,
    of shape (tokens of the pass, K)."""
    seen: list[Tensor] = []

    def note(_router: nn.Module, _given: Any, routed: Routed) -> None:
        seen.append(routed.experts_NK.to(ROUTE_DTYPE))

    mixtures = [layer.mlp for layer in model.layers if isinstance(layer.mlp, MixtureOfExperts)]
    hooks = [mixture.gate.register_forward_hook(note) for mixture in mixtures]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def empty_routes(model: Decoder, *shape: int) -> Tensor:
    """(*shape, L, K) of zeros, on the model's device; L is 0 for a model without experts."""
    config = model.config
    layers = sum(isinstance(layer.mlp, MixtureOfExperts) for layer in model.layers)
    place = model.lm_head.weight.device
    return torch.zeros(*shape, layers, config.experts_per_token, dtype=ROUTE_DTYPE, device=place)
