"""What has its gradients written out gives what torch's own operations give, value and gradient."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.trainer.configs import small
from trainer.data.packing import IGNORE
from trainer.model.cpu import attend, blocked, blocks_of, grouped_swiglu
from trainer.model.initialization import new_decoder
from trainer.model.norm import RmsNorm
from trainer.optim import loss
from trainer.optim.loss import summed_loss


def agree(ours: Callable[..., Tensor], theirs: Callable[..., Tensor], *inputs: Tensor) -> None:
    """The same value, and the same gradients for the same gradient of it."""
    made = []
    for run in (ours, theirs):
        own = [x.detach().clone().requires_grad_() for x in inputs]
        value = run(*own)
        torch.manual_seed(1)
        made.append([value, *torch.autograd.grad(value, own, torch.randn_like(value))])
    for a, b in zip(*made, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("queries", [1, 3, 4, 64])
def test_attention_by_blocks_is_attention(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "QUERIES", queries)
    torch.manual_seed(0)
    documents = torch.tensor([[0] * 7 + [1] * 3 + [2] * 2, [0] * 2 + [1] * 10])
    starts = torch.tensor([[0] * 7 + [7] * 3 + [10] * 2, [0] * 2 + [2] * 10])
    blocks = blocks_of(documents, starts)
    visible = torch.ones(12, 12, dtype=torch.bool).tril()
    visible = (visible & (documents[:, :, None] == documents[:, None]))[:, None]
    q, k, v = torch.randn(2, 3, 12, 6), torch.randn(2, 3, 12, 6), torch.randn(2, 3, 12, 4)

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=0.7)

    agree(lambda q, k, v: attend(q, k, v, blocks, 0.7)[0], plain, q, k, v)
    scores = (q @ k.mT * 0.7).masked_fill(~visible, float("-inf"))
    torch.testing.assert_close(attend(q, k, v, blocks, 0.7)[1], scores.amax(dim=(0, 2, 3)))


def test_keys_before_the_first_document_of_a_block_are_not_touched() -> None:
    documents = torch.arange(200)[None] // 70
    blocks = blocks_of(documents, documents * 70)
    assert [(b.first, b.start, b.end) for b in blocks] == [
        (0, 0, 64),
        (0, 64, 128),
        (70, 128, 192),
        (140, 192, 200),
    ]


@pytest.mark.parametrize("ends", [(2, 5, 9), (0, 9, 9), (9, 9, 9)])
def test_a_grouped_network_is_one_for_each_group(ends: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    counts = [b - a for a, b in zip((0, *ends), ends, strict=False)]
    rows, down = torch.randn(9, 4), torch.randn(3, 4, 5)
    gate, up = torch.randn(3, 5, 4), torch.randn(3, 5, 4)

    def one_by_one(rows: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        parts = zip(rows.split(counts), gate, up, down, strict=True)
        return torch.cat([(F.silu(x @ g.T) * (x @ u.T)) @ d.T for x, g, u, d in parts])

    agree(partial(grouped_swiglu, counts=counts), one_by_one, rows, gate, up, down)


def test_the_norm_is_torch_s() -> None:
    torch.manual_seed(0)
    norm = RmsNorm(6, 1e-5)

    def theirs(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (6,), weight, 1e-5)

    def ours(x: Tensor, weight: Tensor) -> Tensor:
        return torch.func.functional_call(norm, {"weight": weight}, (x,))

    agree(ours, theirs, torch.randn(3, 5, 6), torch.randn(6))


@pytest.mark.parametrize("tokens", [1, 4, 512])
def test_the_loss_in_stretches_is_the_loss(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "TOKENS", tokens)
    torch.manual_seed(0)
    model = new_decoder(small())
    targets = torch.randint(0, 97, (2, 6))
    targets[0, 2:4] = IGNORE

    hidden = torch.randn(2, 6, 32, requires_grad=True)
    weight = model.lm_head.weight
    plain = F.cross_entropy(
        model.logits(hidden).flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum"
    )
    made = summed_loss(model, hidden, targets)
    torch.testing.assert_close(made, plain)
    for a, b in zip(
        torch.autograd.grad(made * 0.3, (hidden, weight)),
        torch.autograd.grad(plain * 0.3, (hidden, weight)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(summed_loss(model, hidden, targets), plain)


class Made(TorchDispatchMode):
    """Notes of each operation its name, and of what it gives the size and the place."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[tuple[str, int, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if isinstance(given, Tensor):
            name = func.overloadpacket.__name__
            self.tensors.append((name, given.numel(), given.data_ptr()))
        return given


def test_a_loss_that_nobody_learns_from_makes_no_gradient() -> None:
    """One product, of the logits, and nothing as large as the head."""
    model = new_decoder(small())
    hidden, targets = torch.randn(2, 6, 32), torch.randint(0, 97, (2, 6))
    with torch.no_grad(), Made() as made:
        summed_loss(model, hidden, targets)
    assert [size for name, size, _ in made.tensors if name == "mm"] == [2 * 6 * 97]
    head = model.lm_head.weight
    assert max(size for _, size, at in made.tensors if at != head.data_ptr()) < head.numel()
