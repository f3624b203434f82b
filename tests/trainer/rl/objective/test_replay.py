"""Tokens go to the experts that the sampler sent them to, and are then as likely as they were.

A router's bias decides who is chosen and never how much is heard, so turning it round makes a
router choose others while the same choice, given to it, means the same as before.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from records.errors import ConfigError
from tests.trainer.configs import CONFIGS, small
from tests.trainer.rl.objective.made_samples import episode_of, gradients_of
from trainer.inference.drawing import Sampling
from trainer.inference.routes import recorded_routes
from trainer.inference.sampler import Sampler
from trainer.model.decoder import Decoder
from trainer.model.experts import Router
from trainer.model.initialization import new_decoder
from trainer.optim.balance import router_biases
from trainer.rl.objective.minibatches import minibatch_of
from trainer.rl.objective.rows import LearntSample, sample_of
from trainer.rl.objective.settings import LearningSettings
from trainer.rl.objective.stepper import LearntStep, RLStepper

ROUNDING = 2e-5
"""Of fp32: the sampler reads its cache in another order than training adds up."""


def drawn_from(model: Decoder, *, routes: bool = True) -> list[LearntSample]:
    """Two answers to each of two prompts, drawn at a temperature and cut short."""
    sampler = Sampler(model, slots=3, routes=routes)
    sampler.version = 4
    prompts = [[1, 2, 3], [1, 2, 3], [*range(30)], [*range(30)]]
    sampling = Sampling(temperature=0.8, top_p=0.9, max_tokens=12)
    drafts = sampler.generate(prompts, sampling, stop=96)
    return [
        sample_of([episode_of(d)], group=str(n // 2), number=n % 2, family="f", reward=n % 2)
        for n, d in enumerate(drafts)
    ]


def turn_round(model: Decoder) -> None:
    for bias_E in router_biases(model):
        bias_E.copy_(torch.linspace(-3.0, 3.0, len(bias_E)))


def stepped(model: Decoder, samples: list[LearntSample], **other: Any) -> LearntStep:
    chosen: dict[str, Any] = {"lr": 1e-9, "clip_norm": 1e9}
    settings = LearningSettings(**(chosen | other))
    return RLStepper.of(model, settings).step(minibatch_of(samples, settings), version=4)


@pytest.mark.parametrize("name", ["plain", "groups", "no_dense", "raw_weights", "all_dense"])
def test_training_gives_the_sampler_s_logprobs(name: str) -> None:
    model = new_decoder(CONFIGS[name])
    step = stepped(model, drawn_from(model))
    assert step.measures is not None
    assert step.measures.log_ratio_max < ROUNDING
    assert step.measures.sampling_kl > 0.01
    if name == "all_dense":
        assert (step.measures.replayed, step.measures.route_agreement) == (0.0, None)
    else:
        assert 0.8 < step.measures.replayed < 1.0  # the last drawn token was never fed
        assert step.measures.route_agreement == 1.0


def test_replay_stands_against_routers_that_choose_otherwise() -> None:
    model = new_decoder(CONFIGS["plain"])
    samples = drawn_from(model)
    turn_round(model)
    replayed = stepped(model, samples).measures
    assert replayed is not None
    assert replayed.log_ratio_max < ROUNDING
    assert (replayed.route_agreement or 1.0) < 0.7
    free = stepped(model, samples, replay_routes=False).measures
    assert free is not None
    assert free.log_ratio_max > 0.01
    assert (free.replayed, free.route_agreement) == (0.0, None)


@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_reach_the_scores_of_experts_that_the_router_would_not_choose(
    recompute: bool,
) -> None:
    """They are those of a model whose routers choose the same by themselves."""
    made = []
    for turned in (False, True):
        model = new_decoder(CONFIGS["plain"])
        model.cast(torch.float64)
        samples = drawn_from(model)
        if turned:
            turn_round(model)
        stepped(model, samples, recompute=recompute)
        made.append(gradients_of(model))
    assert made[0].keys() == made[1].keys()
    for name, gradient in made[0].items():
        torch.testing.assert_close(made[1][name], gradient, rtol=1e-9, atol=1e-12, msg=name)
    gates = [gradient for name, gradient in made[0].items() if name.endswith("gate.weight")]
    assert all((gradient != 0).any() for gradient in gates)


def test_a_router_sends_where_it_is_told_and_chooses_where_it_is_not() -> None:
    torch.manual_seed(0)
    router = Router(small())
    torch.nn.init.normal_(router.weight)
    x = torch.randn(5, 32)
    own = router(x)
    given = own.experts_NK.clone()
    given[1], given[3] = torch.tensor([0, 7]), -1
    told = router(x, given)
    assert told.experts_NK[1].tolist() == [0, 7]
    others = [0, 2, 3, 4]
    assert torch.equal(told.experts_NK[others], own.experts_NK[others])
    scores = told.scores_NE[1, [0, 7]]
    expected = scores / scores.sum() * router.config.routed_scale
    torch.testing.assert_close(told.weights_NK[1], expected)
    same = len({0, 7} & set(own.experts_NK[1].tolist()))
    assert told.agreed_2 is not None
    assert told.agreed_2.tolist() == [8, 6 + same]


def test_loads_are_those_of_the_given_experts() -> None:
    model = new_decoder(CONFIGS["plain"])
    ids: Tensor = torch.arange(12)[None]
    with torch.no_grad(), recorded_routes(model) as seen:
        free = model(ids)
    turn_round(model)
    routes = torch.stack(seen, dim=1)[None]
    with torch.no_grad():
        told, others = model(ids, routes_BTLK=routes), model(ids)
    assert torch.equal(told.load_LE, free.load_LE)
    assert not torch.equal(others.load_LE, free.load_LE)
    torch.testing.assert_close(told.hidden_BTD, free.hidden_BTD)
    with pytest.raises(ValueError, match=r"\(1, 2\), and the model has \(2, 2\)"):
        model(ids, routes_BTLK=routes[:, :, :1])


def test_routes_that_were_not_kept_cannot_be_replayed() -> None:
    model = new_decoder(CONFIGS["plain"])
    samples = drawn_from(model, routes=False)
    with pytest.raises(ConfigError, match=r"sequence 0 of sample 0 of group 0 has no routes"):
        stepped(model, samples)
    step = stepped(model, samples, replay_routes=False)
    assert step.measures is not None
    assert step.measures.log_ratio_max < ROUNDING
