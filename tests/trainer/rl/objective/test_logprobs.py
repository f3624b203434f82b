"""Log-probabilities and entropies in stretches are torch's own, value and gradient."""

import pytest
import torch
from torch import Tensor

from tests.trainer.configs import small
from trainer.data.packing import IGNORE
from trainer.model.initialization import new_decoder
from trainer.optim import loss
from trainer.optim.loss import learnt_places
from trainer.rl.objective.logprobs import token_logprobs


def batch() -> tuple[Tensor, Tensor]:
    """Hidden states and targets, some of which are not learnt."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 97, (2, 6), generator=generator)
    targets[0, 2:4], targets[1, 5] = IGNORE, IGNORE
    hidden = torch.randn(2, 6, 32, generator=generator, dtype=torch.double)
    return hidden.requires_grad_(), targets


@pytest.mark.parametrize("tokens", [1, 4, 512])
@pytest.mark.parametrize("of", ["both", "logprobs", "entropies"])
def test_values_and_gradients_are_those_of_log_softmax(
    tokens: int, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "TOKENS", tokens)
    model = new_decoder(small())
    model.cast(torch.float64)
    hidden, targets = batch()
    places, weight = learnt_places(targets), model.lm_head.weight
    made = token_logprobs(model, hidden, targets, places)
    logs = model.logits(hidden).log_softmax(-1).flatten(0, 1)[places]
    expected = logs.gather(1, targets.flatten()[places, None])[:, 0]
    torch.testing.assert_close(made.logprobs_N, expected)
    entropies = -(logs.exp() * logs).sum(-1)
    torch.testing.assert_close(made.entropies_N, entropies)
    factors = torch.randn(2, len(places), dtype=torch.double)
    factors *= torch.tensor([of != "entropies", of != "logprobs"])[:, None]
    ours = [
        (values * factor).sum()
        for values, factor, name in zip(made, factors, ("logprobs", "entropies"), strict=True)
        if of in ("both", name)
    ]
    plain = (expected * factors[0] + entropies * factors[1]).sum()
    for a, b in zip(
        torch.autograd.grad(sum(ours[1:], ours[0]), (hidden, weight)),
        torch.autograd.grad(plain, (hidden, weight)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_what_is_not_learnt_has_no_gradient_whatever_it_is() -> None:
    model = new_decoder(small())
    model.cast(torch.float64)
    hidden, targets = batch()
    with torch.no_grad():
        hidden[targets == IGNORE] = float("nan")
    made = token_logprobs(model, hidden, targets, learnt_places(targets))
    [gradient] = torch.autograd.grad(made.logprobs_N.sum(), hidden)
    assert (gradient[targets == IGNORE] == 0).all()
    assert (gradient[targets != IGNORE] != 0).any(-1).all()


def test_narrow_weights_have_wide_logprobs() -> None:
    model = new_decoder(small())
    model.cast(torch.bfloat16)
    hidden, targets = batch()
    narrow = hidden.detach().bfloat16().requires_grad_()
    made = token_logprobs(model, narrow, targets, learnt_places(targets))
    assert made.logprobs_N.dtype == made.entropies_N.dtype == torch.float32
    gradients = torch.autograd.grad(made.logprobs_N.sum(), (narrow, model.lm_head.weight))
    assert all(gradient.dtype == torch.bfloat16 for gradient in gradients)
