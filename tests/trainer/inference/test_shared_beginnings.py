"""A beginning that prompts share is read once, and nothing that is drawn tells the difference."""

import pytest
import torch

from tests.trainer.configs import CONFIGS
from trainer.inference.drawing import Sampling
from trainer.inference.sampler import AnswerDraft, Sampler
from trainer.model.initialization import new_decoder

NEVER = 10**6
SAMPLING = Sampling(temperature=1.0, max_tokens=9)


def numbers(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 97, (count,), generator=generator).tolist()


class Counted(Sampler):
    """Counts the tokens that are fed."""

    fed = 0

    def _feed(self, sequences, new):  # type: ignore[no-untyped-def]
        self.fed += sum(map(len, new))
        return super()._feed(sequences, new)


def sampler_of(slots: int, name: str = "plain") -> Counted:
    return Counted(new_decoder(CONFIGS[name]).eval(), slots=slots, routes=True)


def drawn(drafts: list[AnswerDraft]) -> list[tuple[list[int], list[float], list[float]]]:
    return [(draft.ids, draft.logprobs, draft.model_logprobs) for draft in drafts]


@pytest.mark.parametrize("slots", [8, 3])
@pytest.mark.parametrize("name", ["plain", "all_dense"])
def test_samples_of_one_prompt_read_it_once(
    slots: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, seeds = [numbers(60, 1)] * 6, list(range(6))
    sharing = sampler_of(slots, name)
    made = sharing.generate(prompts, SAMPLING, stop=NEVER, seeds=seeds)
    answers = 6 * 8  # all tokens of an answer but the last are read
    assert sharing.fed == 60 + answers + (3 if slots == 3 else 0)  # a token of what slots hold
    for module in ("sampler", "slots"):
        monkeypatch.setattr(f"trainer.inference.{module}.COPIED_TOKENS", 10**6)
    apart = sampler_of(slots, name)
    expected = apart.generate(prompts, SAMPLING, stop=NEVER, seeds=seeds)
    assert apart.fed >= min(slots, 6) * 60 + answers
    assert [draft.ids for draft in made] == [draft.ids for draft in expected]
    for own, other in zip(made, expected, strict=True):
        assert own.routes is not None
        assert other.routes is not None
        assert torch.equal(own.routes.sort(-1).values, other.routes.sort(-1).values)
        assert own.model_logprobs == pytest.approx(other.model_logprobs, abs=1e-5)


@pytest.mark.parametrize("name", ["plain", "all_dense"])
def test_a_copy_is_to_the_bit_what_its_slot_would_have_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside prompts that are read one by one. Only the head then sees one row at a time, and not
    all: the first token has its log-probability to rounding."""
    prompts = [numbers(60, 1)] * 5
    sharing = sampler_of(5, name)
    made = sharing.generate(prompts, SAMPLING, stop=NEVER)
    monkeypatch.setattr("trainer.inference.sampler.READ_KEYS", 1)
    for module in ("sampler", "slots"):
        monkeypatch.setattr(f"trainer.inference.{module}.COPIED_TOKENS", 10**6)
    apart = sampler_of(5, name)
    expected = apart.generate(prompts, SAMPLING, stop=NEVER)
    for own, other in zip(made, expected, strict=True):
        assert own.ids == other.ids
        assert own.logprobs[1:] == other.logprobs[1:]
        assert own.model_logprobs[1:] == other.model_logprobs[1:]
        assert own.logprobs[0] == pytest.approx(other.logprobs[0], abs=1e-5)
    assert torch.equal(sharing.cache.latent_LBSC, apart.cache.latent_LBSC)
    assert torch.equal(sharing.cache.key_LBSR, apart.cache.key_LBSR)
    assert sharing.fed < apart.fed


def test_the_same_prompts_in_the_same_company_draw_the_same_to_the_bit() -> None:
    prompts = [*[numbers(40, 1)] * 3, [*numbers(40, 1)[:30], *numbers(9, 2)], numbers(12, 3)]
    made = [sampler_of(3).generate(prompts, SAMPLING, stop=NEVER) for _ in range(2)]
    assert drawn(made[0]) == drawn(made[1])
    again = sampler_of(3)
    again.generate([numbers(33, 4)], SAMPLING, stop=NEVER)
    again.forget()
    assert drawn(again.generate(prompts, SAMPLING, stop=NEVER)) == drawn(made[0])


def test_prompts_that_begin_alike_share_that_much() -> None:
    common = numbers(40, 1)
    prompts = [[*common, *numbers(n, 10 + n)] for n in (5, 9, 2, 7)]
    sampler = sampler_of(4)
    made = sampler.generate(prompts, SAMPLING, stop=NEVER)
    assert sampler.fed == 40 + (5 + 9 + 2 + 7) + 4 * 8
    for number, prompt in enumerate(prompts):
        [alone] = sampler_of(1).generate([prompt], SAMPLING, stop=NEVER, seeds=[number])
        assert made[number].ids == alone.ids


def test_a_conversation_keeps_its_slot_while_another_begins_alike() -> None:
    common = numbers(30, 1)
    sampler = sampler_of(2)
    [said] = sampler.generate([[*common, 5]], SAMPLING, stop=NEVER)
    sampler.generate([[*common, 6]], SAMPLING, stop=NEVER)
    assert sampler.fed == 31 + 8 + 1 + 8
    sampler.fed = 0
    sampler.generate([[*common, 5, *said.ids, 7]], SAMPLING, stop=NEVER)
    assert sampler.fed == 2 + 8  # the last drawn token was never read, and one is new
