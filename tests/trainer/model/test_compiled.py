"""Layers as a compiler sees them, on the device's path: one graph for all of a kind, no break; and
the device's attention as far as a CPU can run it: its mask, and its values."""

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tests.trainer import dense_attention
from tests.trainer.configs import small
from trainer.data.packing import PADDING
from trainer.model import fused
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.model.paths import ComputePath
from trainer.optim.reductions import accumulate_wide

DOCUMENTS = torch.tensor([[0] * 70 + [1] * 100 + [PADDING] * 30, [0] * 200])

SHAPE = small(moe_intermediate_size=24)


def ids_of(length: int) -> Tensor:
    return torch.randint(0, 97, (2, length), generator=torch.Generator().manual_seed(0))


def passed(model: Decoder) -> dict[str, Tensor]:
    model.zero_grad(set_to_none=True)
    output = model(ids_of(40), documents_BT=DOCUMENTS[:, 60:100], track_logits=True)
    (output.hidden_BTD.float().square().sum() + output.imbalance).backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return {"hidden": output.hidden_BTD, "top": output.max_logit_LH} | gradients


def test_layers_of_a_kind_share_a_graph_without_a_break() -> None:
    torch._dynamo.reset()
    model = new_decoder(SHAPE.model_copy(update={"num_dense_layers": 0}))
    model.cast(torch.bfloat16)
    accumulate_wide(model)
    model.path, model.recompute = ComputePath.DEVICE, True
    with dense_attention.standing_in():
        plain = passed(model)
        graphs = CompileCounterWithBackend("aot_eager")
        model.compile_layers(graphs)
        compiled = passed(model)
    assert graphs.frame_count == 1
    assert compiled.keys() == plain.keys()
    for name, value in plain.items():
        error = (compiled[name] - value).float().norm() / value.float().norm()
        assert error < 0.02, name  # of bf16: the compiler rounds in other places


def test_a_layer_has_no_break_at_flex_attention(by_hand: None) -> None:
    """Forward, since its backward pass has no form for a CPU."""
    torch._dynamo.reset()
    model = new_decoder(SHAPE.model_copy(update={"num_layers": 2}))
    model.cast(torch.bfloat16)
    with torch.no_grad():
        expected = model(ids_of(200), documents_BT=DOCUMENTS).hidden_BTD
        model.path = ComputePath.DEVICE
        model.compile_layers("eager")
        made = model(ids_of(200), documents_BT=DOCUMENTS).hidden_BTD
    assert (made - expected).float().norm() < 0.06 * expected.float().norm()  # in bf16


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as they come: a CPU's compiler takes a minute."""
    monkeypatch.setattr(fused, "_compiled_mask", lambda: create_block_mask)
    monkeypatch.setattr(fused, "_compiled_attention", lambda: flex_attention)


def test_the_block_mask_shows_what_may_be_seen(by_hand: None) -> None:
    for documents in (DOCUMENTS, DOCUMENTS.flip(0)):
        mask = fused.visibility(documents)
        index = torch.arange(200)
        visible = dense_attention.visibility(documents)[:, 0]
        shown = mask.mask_mod(torch.arange(2)[:, None, None], index, index[:, None], index)
        assert torch.equal(shown, visible)
        blocks = mask.to_dense()[:, 0].bool()
        for b, q, k in ((0, 0, 1), (0, 1, 0), (1, 1, 0), (0, 1, 1)):
            own = visible[b, 128 * q : 128 * q + 128, 128 * k : 128 * k + 128]
            assert bool(blocks[b, q, k]) == bool(own.any())


def test_flex_attention_is_attention(by_hand: None) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 200, 24), torch.randn(2, 3, 200, 24), torch.randn(2, 3, 200, 16)
    made, told = fused.attend(
        q, k, v, fused.visibility(DOCUMENTS), scale=0.3, real_BT=None, track_logits=False
    )
    visible = dense_attention.visibility(DOCUMENTS)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=visible, scale=0.3
    )
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
    assert told is None


def test_what_stands_in_for_it_is_attention_with_its_maxima() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 200, 24), torch.randn(2, 3, 200, 24), torch.randn(2, 3, 200, 16)
    visible, real = dense_attention.visibility(DOCUMENTS), DOCUMENTS != PADDING
    made, top = dense_attention.attend(q, k, v, visible, scale=0.3, real_BT=real, track_logits=True)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=visible, scale=0.3
    )
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
    pairs = (q @ k.mT * 0.3).masked_fill(~(visible & real[:, None, :, None]), float("-inf"))
    torch.testing.assert_close(top, pairs.amax(dim=(0, 2, 3)))
