"""The decoder: embedding, layers, norm, head. Parameter names are those of the released
checkpoints, but for the experts, which are stacks (`trainer.model.exchange` translates).

Shape suffixes in this file: B = sequences, T = tokens, D = features, V = vocabulary, L = layers,
H = heads, E = experts, K = experts of a token; of routes L counts the layers with experts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.data.packing import PADDING
from trainer.model import cpu, fused
from trainer.model.attention import AttentionContext, LatentAttention, Mask
from trainer.model.cache import CachedRows, LatentCache
from trainer.model.config import TransformerConfig
from trainer.model.experts import FeedForward, MixtureOfExperts, Router
from trainer.model.layers import Embedding, Linear
from trainer.model.norm import RmsNorm
from trainer.model.paths import ComputePath, path_of
from trainer.model.precision import wide_dtype
from trainer.model.rotary import angles, inverse_frequencies


class Output(NamedTuple):
    """What a forward pass has to tell, besides its gradients."""

    hidden_BTD: Tensor
    """After the last norm; `Decoder.logits` makes logits of it."""
    max_logit_LH: Tensor | None
    """Largest attention logit of each head, detached; None where it was not asked for."""
    load_LE: Tensor
    """Tokens sent to each expert, by layer with experts, detached."""
    imbalance: Tensor
    """Mean sequence balance loss over the layers with experts, before its weight."""
    agreed_2: Tensor | None = None
    """Where routes were given: how many choices they made, and how many of these the routers would
    have made themselves, over all layers."""


class DecoderLayer(nn.Module):
    def __init__(self, config: TransformerConfig, number: int) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.norm_eps)
        self.self_attn = LatentAttention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.norm_eps)
        self.mlp: FeedForward | MixtureOfExperts = (
            FeedForward(config, config.intermediate_size)
            if number < config.num_dense_layers
            else MixtureOfExperts(config)
        )

    def forward(
        self, x: Tensor, context: AttentionContext, given_BTK: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """(x, max_logit_H, load_E, imbalance, agreed_2). `given_BTK`: see `Router.forward`."""
        path = context.path
        attended = self.self_attn(self.input_layernorm(x, path), context)
        x = x + attended.x_BTD
        normed = self.post_attention_layernorm(x, path)
        if isinstance(self.mlp, FeedForward):
            return x + self.mlp(normed), attended.max_logit_H, None, None, None
        mixed = self.mlp(normed, context.real_BT, path, given_BTK)
        return x + mixed.x, attended.max_logit_H, mixed.load_E, mixed.imbalance, mixed.agreed_2


class Body(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, n) for n in range(config.num_layers))
        self.norm = RmsNorm(config.hidden_size, config.norm_eps)


class Decoder(nn.Module):
    """A language model. It is built without values, which `trainer.model.initialization` draws or
    `trainer.model.exchange` reads; on the meta device it has only shapes, until `allocate`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.recompute = False
        """Keep only the input of each layer and run it again for the gradients."""
        self.path: ComputePath | None = None
        """How to compute; None: as the device where the weights are does."""
        self.model = Body(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)
        self.register_buffer("inverse_frequencies", None, persistent=False)
        self.inverse_frequencies: Tensor
        self.reset_frequencies()

    def allocate(self, device: torch.device, dtype: torch.dtype) -> None:
        """Give a model on the meta device memory where it is to live, without values."""
        self.cast(dtype)
        self.to_empty(device=device)
        self.reset_frequencies()

    def reset_frequencies(self) -> None:
        """Compute what no checkpoint holds, after `to_empty` or another dtype."""
        weight = self.lm_head.weight
        made = inverse_frequencies(self.config, wide_dtype(weight.dtype))
        self.inverse_frequencies = made.to(weight.device)

    def compile_layers(self, backend: str | Callable[..., Any] = "inductor") -> None:
        """Compile every layer, in place, so that names stay; layers of one kind share a graph."""
        for layer in self.layers:
            layer.compile(fullgraph=True, backend=backend)

    def forward(
        self,
        ids_BT: Tensor,
        *,
        documents_BT: Tensor | None = None,
        track_logits: bool = False,
        routes_BTLK: Tensor | None = None,
    ) -> Output:
        """`documents_BT`: which document a token is of, as numbers that rise within a row; tokens
        see only earlier ones of their own, and positions count from its start. Those of PADDING
        count neither for loads and balance nor for the largest logits. None: each row is one
        document.

        `track_logits`: tell the largest attention logit of each head, exactly.

        `routes_BTLK`: experts that tokens are sent to, as another pass has chosen them; the routers
        choose where they are negative (`Router.forward`). ValueError for those of another shape of
        model.
        """
        path = self.compute_path
        positions_BT, mask = _places(ids_BT, documents_BT, path)
        cos, sin = angles(self.config, self.inverse_frequencies, positions_BT)
        real_BT = None if documents_BT is None else documents_BT != PADDING
        context = AttentionContext(cos, sin, mask, real_BT, track_logits, path)
        x = self.model.embed_tokens(ids_BT)
        tops: list[Tensor] = []
        loads: list[Tensor] = []
        imbalances: list[Tensor] = []
        agreements: list[Tensor] = []
        given = iter(self._by_layer(routes_BTLK))
        for layer in self.layers:
            given_BTK = next(given, None) if isinstance(layer.mlp, MixtureOfExperts) else None
            if self.recompute and torch.is_grad_enabled():
                made: Any = checkpoint(  # nothing is drawn inside
                    layer, x, context, given_BTK, use_reentrant=False, preserve_rng_state=False
                )
            else:
                made = layer(x, context, given_BTK)
            x, top, load, imbalance, agreed_2 = made
            tops += [top] if top is not None else []
            loads += [load] if load is not None else []
            imbalances += [imbalance] if imbalance is not None else []
            agreements += [agreed_2] if agreed_2 is not None else []
        none = torch.zeros(0, self.config.num_experts, dtype=torch.long, device=x.device)
        return Output(
            hidden_BTD=self.model.norm(x, path),
            max_logit_LH=torch.stack(tops) if tops else None,
            load_LE=torch.stack(loads) if loads else none,
            imbalance=torch.stack(imbalances).mean() if imbalances else x.new_zeros(()),
            agreed_2=torch.stack(agreements).sum(0) if agreements else None,
        )

    def _by_layer(self, routes_BTLK: Tensor | None) -> Sequence[Tensor]:
        """Of each layer with experts; none where nothing is given."""
        if routes_BTLK is None:
            return ()
        layers = sum(isinstance(layer.mlp, MixtureOfExperts) for layer in self.layers)
        expected = (layers, self.config.experts_per_token)
        if tuple(routes_BTLK.shape[2:]) != expected:
            raise ValueError(
                f"routes of (layers with experts, experts of a token) = "
                f"{tuple(routes_BTLK.shape[2:])}, and the model has {expected}"
            )
        return routes_BTLK.long().unbind(2)

    @torch.no_grad()
    def extend(
        self, ids_NT: Tensor, counts_N: Tensor, slots_N: Tensor, cache: LatentCache
    ) -> Tensor:
        """Append tokens to some slots of a cache; the hidden state of each row's last one, (N, D).

        Rows are padded on the right to T: `counts_N` of them are real. ValueError when a slot
        cannot hold them.
        """
        first_N = cache.lengths_B[slots_N]
        index_T = torch.arange(ids_NT.shape[1], device=ids_NT.device)
        at_NT = first_N[:, None] + index_T
        if int((first_N + counts_N).max()) > cache.capacity:
            raise ValueError(f"a slot holds {cache.capacity} tokens")
        at_NT = at_NT.clamp_max(cache.capacity - 1)  # padding may reach beyond, and is never read
        cos, sin = angles(self.config, self.inverse_frequencies, at_NT)
        path = self.compute_path
        mask: Mask = ()  # which a CPU makes row by row
        if path is ComputePath.DEVICE:
            keys_S = torch.arange(int(at_NT.max()) + 1, device=ids_NT.device)
            mask = (keys_S <= at_NT[..., None])[:, None]
        context = AttentionContext(cos, sin, mask, None, track_logits=False, path=path)
        ends_N = first_N + counts_N
        ends = list(zip(slots_N.tolist(), first_N.tolist(), ends_N.tolist(), strict=True))
        x = self.model.embed_tokens(ids_NT)
        for number, layer in enumerate(self.layers):
            rows = CachedRows(cache, number, slots_N, at_NT, ends)
            x = x + layer.self_attn.extend(layer.input_layernorm(x, path), context, rows)
            normed = layer.post_attention_layernorm(x, path)
            if isinstance(layer.mlp, FeedForward):
                x = x + layer.mlp(normed)
            else:
                x = x + layer.mlp(normed, path=path).x
        cache.lengths_B[slots_N] = ends_N
        last = x[torch.arange(len(x), device=x.device), counts_N - 1]
        return self.model.norm(last, path)

    def cast(self, dtype: torch.dtype) -> None:
        """Parameters to `dtype`; router biases stay, frequencies are fp32 at least."""
        routers = [module for module in self.modules() if isinstance(module, Router)]
        biases = [router.e_score_correction_bias for router in routers]
        self.to(dtype)  # and not by `data`, which would leave the shards of a parameter as they are
        for router, bias in zip(routers, biases, strict=True):
            router.e_score_correction_bias = bias
        self.reset_frequencies()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.lm_head.weight.device

    @property
    def compute_path(self) -> ComputePath:
        return self.path or path_of(self.device)

    @property
    def layers(self) -> Sequence[DecoderLayer]:
        return cast(Sequence[DecoderLayer], self.model.layers)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.lm_head(hidden)


def _places(ids_BT: Tensor, documents_BT: Tensor | None, path: ComputePath) -> tuple[Tensor, Mask]:
    """Positions within each document, and who may see whom."""
    index_T = torch.arange(ids_BT.shape[1], device=ids_BT.device)
    if documents_BT is None:
        documents_BT = torch.zeros_like(ids_BT)
    starts = F.pad(documents_BT[:, 1:] != documents_BT[:, :-1], (1, 0), value=True)
    starts_BT = (index_T * starts).cummax(-1).values
    positions_BT = index_T - starts_BT
    if path is ComputePath.CPU:
        return positions_BT, cpu.blocks_of(documents_BT, starts_BT)
    return positions_BT, fused.visibility(documents_BT)
