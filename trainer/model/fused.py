"""Attention on a device: flex attention, which tells each head's largest logit without the matrices
of scores.

It is chosen over attention for rows of various lengths (`torch.nn.attention.varlen`) because that
tells only the logarithm of the sum, which is an upper bound of the maximum; QK-Clip clips by the
maximum itself.

Shape suffixes in this file: B = sequences, H = heads, T = tokens, K = features of a query and key,
V = of a value.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import (
    AuxOutput,
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)

from trainer.model.precision import widened

# The compiler is imported where it is used first: that takes a second or two, which processes that
# compute on a CPU do without.


@cache
def _compiled_attention() -> Callable[..., tuple[Tensor, AuxOutput]]:
    """For a layer that is not compiled: as it comes, flex attention makes whole matrices of
    scores."""
    return torch.compile(flex_attention)


@cache
def _compiled_mask() -> Callable[..., BlockMask]:
    """As it comes, it makes a whole matrix of who sees whom."""
    return torch.compile(create_block_mask)


def visibility(documents_BT: Tensor) -> BlockMask:
    """A token sees the earlier ones of its own document, and itself."""
    rows, length = documents_BT.shape

    def visible(b: Tensor, _h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (q >= k) & (documents_BT[b, q] == documents_BT[b, k])

    return _compiled_mask()(visible, rows, None, length, length, device=documents_BT.device)


def attend(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    mask: BlockMask,
    *,
    scale: float,
    real_BT: Tensor | None,
    track_logits: bool,
) -> tuple[Tensor, Tensor | None]:
    """softmax(scale q k) v, and the largest visible scale q k of each head over the tokens that are
    real, (H,), detached; None where it is not asked for."""
    run = flex_attention if torch.compiler.is_compiling() else _compiled_attention()
    out, aux = run(
        q_BHTK,
        k_BHTK,
        v_BHTV,
        block_mask=mask,
        scale=scale,
        return_aux=AuxRequest(max_scores=track_logits),
    )
    if aux.max_scores is None:
        return out, None
    top_BHT = widened(aux.max_scores.detach())
    if real_BT is not None:
        top_BHT = top_BHT.masked_fill(~real_BT[:, None], float("-inf"))
    return out, top_BHT.amax(dim=(0, 2))
