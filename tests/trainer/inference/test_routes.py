"""The experts that are told of a token are those that training would send it to."""

import pytest
import torch

from tests.trainer.configs import CONFIGS
from trainer.inference.drawing import Sampling
from trainer.inference.routes import ROUTE_DTYPE, empty_routes, recorded_routes
from trainer.inference.sampler import Sampler
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder

NEVER = 10**6


def routes_of(model: Decoder, ids: torch.Tensor) -> torch.Tensor:
    """Of one sequence of tokens by the training forward: (tokens, layers, experts of a token)."""
    with torch.no_grad(), recorded_routes(model) as seen:
        model(ids[None])
    return torch.stack(seen, dim=1) if seen else empty_routes(model, len(ids))


@pytest.mark.parametrize("name", ["plain", "groups", "no_dense", "all_dense"])
def test_routes_are_those_of_training_however_tokens_were_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows padded together, a long prompt in parts, and beginnings that a slot held already. Random
    weights leave no near tie that rounding could turn."""
    monkeypatch.setattr("trainer.inference.sampler.READ_TOKENS", 24)
    model = new_decoder(CONFIGS[name]).eval()
    sampler = Sampler(model, slots=2, routes=True)
    first = [[5, 6, 7], [*range(40)], [9, 8, 7, 6, 5, 4]]
    longer = [[*range(40), 90, 91], [5, 6, 7]]
    for prompts in (first, longer):
        for draft in sampler.generate(prompts, Sampling(max_tokens=5), stop=NEVER):
            ids = torch.tensor([*draft.prompt, *draft.ids])
            assert draft.routes is not None
            assert draft.routes.dtype == ROUTE_DTYPE
            expected = routes_of(model, ids)[:-1]
            assert torch.equal(draft.routes.sort(-1).values, expected.sort(-1).values)
            assert draft.routes.shape == (len(ids) - 1, *expected.shape[1:])
    assert not any(module._forward_hooks for module in model.modules())
    [plain] = Sampler(model).generate([[1, 2]], Sampling(max_tokens=1), stop=NEVER)
    assert plain.routes is None
