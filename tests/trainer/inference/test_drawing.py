"""Tokens are drawn from the distribution that is told, and its log-probabilities are those that the
training forward gives."""

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.trainer.configs import CONFIGS
from trainer.inference.drawing import Sampling, draw, sampling_logprobs, uniform_of
from trainer.inference.sampler import Sampler
from trainer.model.initialization import new_decoder

NEVER = 10**6


def defined(logits: list[float], sampling: Sampling, allowed: list[bool]) -> list[float]:
    """The shares by their definition, one token after the other."""
    order = sorted((n for n, may in enumerate(allowed) if may), key=lambda n: (-logits[n], n))
    if sampling.temperature == 0:
        return [float(n == order[0]) for n in range(len(logits))]
    top = logits[order[0]]
    weights = {
        n: torch.tensor((logits[n] - top) / sampling.temperature, dtype=torch.double).exp().item()
        for n in order
    }
    kept, before = {}, 0.0
    for n in order:
        if before >= sampling.top_p:
            break
        kept[n] = weights[n]
        before += weights[n] / sum(weights.values())
    return [kept.get(n, 0.0) / sum(kept.values()) for n in range(len(logits))]


@given(
    st.lists(st.integers(-24, 24).map(lambda n: n / 4), min_size=2, max_size=9, unique=True),
    st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    st.sampled_from([0.03, 0.41, 0.87, 1.0]),
    st.data(),
)
@settings(max_examples=examples(60), deadline=None)
def test_shares_are_those_of_the_definition(
    logits: list[float], temperature: float, top_p: float, data: Any
) -> None:
    may = st.lists(st.booleans(), min_size=len(logits), max_size=len(logits)).filter(any)
    allowed = data.draw(may)
    sampling = Sampling(temperature=temperature, top_p=top_p)
    given_ = torch.tensor([logits], dtype=torch.double)
    found = sampling_logprobs(given_, sampling, torch.tensor([allowed])).exp()[0]
    expected = torch.tensor(defined(logits, sampling, allowed), dtype=torch.double)
    torch.testing.assert_close(found, expected)


def test_draws_follow_the_shares_and_never_fall_where_there_is_none() -> None:
    logits = torch.tensor([[2.0, -1.0, 1.0, 0.5, 2.0]])
    allowed = torch.tensor([[True, True, True, True, False]])
    sampling = Sampling(temperature=0.8, top_p=0.95)
    shares = sampling_logprobs(logits, sampling, allowed).exp()[0]
    n = 4000
    drawn = draw(
        logits.expand(n, -1),
        sampling,
        [uniform_of(7, place) for place in range(n)],
        allowed.expand(n, -1),
    )
    counts = Counter(drawn.ids)
    for token, share in enumerate(shares.tolist()):
        assert abs(counts[token] / n - share) < 4 * (share * (1 - share) / n) ** 0.5 + 1e-9
    assert drawn.logprobs == pytest.approx([shares[token].log().item() for token in drawn.ids])
    edges = draw(logits.expand(2, -1), sampling, [0.0, 1 - 2**-53], allowed.expand(2, -1))
    assert all(shares[token] > 0 for token in edges.ids)


@pytest.mark.parametrize("temperature", [1e-30, 1e-40, 1e-300])
def test_the_least_of_temperatures_takes_the_likeliest(temperature: float) -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0], [5.0, -2.0, 5.0, 9.0]])
    allowed = torch.tensor([[True] * 4, [True, True, False, False]])
    drawn = draw(logits, Sampling(temperature=temperature), [0.1, 0.9], allowed)
    assert drawn.ids == [1, 0]
    assert drawn.logprobs == [0.0, 0.0]


class Even:
    """Lets even tokens through, and no token beyond 80."""

    def allowed(self) -> torch.Tensor:
        return torch.arange(81) % 2 == 0

    def take(self, token: int) -> None:
        assert token % 2 == 0


@pytest.mark.parametrize("name", ["plain", "yarn"])
def test_logprobs_are_those_of_the_training_forward(name: str) -> None:
    """fp32, within 1e-4: the cache reads by other products than training does."""
    model = new_decoder(CONFIGS[name]).eval()
    prompts = [[3, 1, 4, 1, 5], [9, 2, 6]]
    sampling = Sampling(temperature=1.4, top_p=0.8, max_tokens=12)
    for guides in (None, [Even(), Even()]):
        made = Sampler(model, slots=2).generate(prompts, sampling, stop=NEVER, guides=guides)
        for draft in made:
            ids = torch.tensor([[*draft.prompt, *draft.ids]])
            with torch.no_grad():
                logits = model.logits(model(ids).hidden_BTD)[0, len(draft.prompt) - 1 : -1]
            allowed = torch.zeros(logits.shape, dtype=torch.bool)
            allowed[:, : 81 if guides else None : 2 if guides else 1] = True
            places = range(len(draft.ids))
            own = logits.log_softmax(-1)[places, draft.ids]
            under = sampling_logprobs(logits, sampling, allowed)[places, draft.ids]
            assert draft.model_logprobs == pytest.approx(own.tolist(), abs=1e-4)
            assert draft.logprobs == pytest.approx(under.tolist(), abs=1e-4)
            assert draft.logprobs != pytest.approx(own.tolist(), abs=1e-2)
