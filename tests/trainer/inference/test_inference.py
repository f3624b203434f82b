"""Generation with a cache gives what the model without one says, whatever shares the batch."""

from typing import Any

import pytest
import torch

from records.errors import ConfigError
from tests.trainer.configs import CONFIGS, small
from trainer.inference.drawing import Sampling
from trainer.inference.sampler import Sampler
from trainer.model.cache import LatentCache
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder

NEVER = 10**6


def model_of(name: str) -> Decoder:
    return new_decoder(CONFIGS[name]).eval()


def prompts_of(*lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(0, 97, (n,), generator=generator).tolist() for n in lengths]


def greedy_without_cache(model: Decoder, prompt: list[int], count: int) -> list[int]:
    ids = list(prompt)
    for _ in range(count):
        hidden = model(torch.tensor([ids])).hidden_BTD[:, -1]
        ids.append(int(model.logits(hidden).argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("name", ["plain", "uncompressed_queries", "yarn_uneven", "groups"])
def test_greedy_answers_are_those_without_a_cache(name: str) -> None:
    model = model_of(name)
    prompts = prompts_of(3, 17, 1, 9, 30)
    made = Sampler(model, slots=2).generate(prompts, Sampling(max_tokens=12), stop=NEVER)
    for prompt, generated in zip(prompts, made, strict=True):
        assert generated.ids == greedy_without_cache(model, prompt, 12)
        assert generated.finish_reason == "length"


def test_tokens_appended_in_parts_are_as_those_read_at_once() -> None:
    model = model_of("yarn")
    (ids,) = prompts_of(40)
    whole = model(torch.tensor([ids])).hidden_BTD[0]
    cache = LatentCache(
        model.config, slots=3, tokens=64, device=torch.device("cpu"), dtype=torch.float32
    )
    at = 0
    for count in (11, 1, 1, 20, 7):
        part = torch.tensor([ids[at : at + count]])
        hidden = model.extend(part, torch.tensor([count]), torch.tensor([1]), cache)
        at += count
        torch.testing.assert_close(hidden[0], whole[at - 1], rtol=1e-4, atol=1e-5)
    assert cache.lengths_B.tolist() == [0, 40, 0]


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_what_is_drawn_hangs_on_the_seed_and_not_on_the_company(slots: int) -> None:
    model = model_of("plain")
    prompts = prompts_of(5, 8, 2, 12, 7, 3)
    sampling = Sampling(temperature=1.2, top_p=0.9, max_tokens=10)
    seeds = [11, 12, 13, 14, 15, 16]
    made = Sampler(model, slots=slots).generate(prompts, sampling, stop=NEVER, seeds=seeds)
    alone = [
        Sampler(model, slots=1).generate([p], sampling, stop=NEVER, seeds=[s])[0]
        for p, s in zip(prompts, seeds, strict=True)
    ]
    assert [g.ids for g in made] == [g.ids for g in alone]
    assert made[0].ids != Sampler(model).generate(
        prompts[:1], sampling, stop=NEVER, seeds=[99]
    )[0].ids  # fmt: skip


def test_a_stop_token_ends_an_answer_and_frees_its_slot() -> None:
    model = model_of("plain")
    prompts = prompts_of(4, 4, 4, 4)
    first = [greedy_without_cache(model, p, 6) for p in prompts]
    stop = first[0][3]
    made = Sampler(model, slots=1).generate(prompts, Sampling(max_tokens=6), stop=stop)
    for whole, generated in zip(first, made, strict=True):
        cut = whole.index(stop) + 1 if stop in whole else 6
        assert generated.ids == whole[:cut]
        assert generated.finish_reason == ("stop" if stop in whole else "length")


def test_top_p_draws_only_from_the_likeliest() -> None:
    model = model_of("plain")
    (prompt,) = prompts_of(6)
    likeliest = greedy_without_cache(model, prompt, 5)
    narrow = Sampling(temperature=1.0, top_p=1e-6, max_tokens=5)
    (made,) = Sampler(model).generate([prompt], narrow, stop=NEVER)
    assert made.ids == likeliest


def test_prompts_that_do_not_fit_are_refused() -> None:
    sampler = Sampler(new_decoder(small()), slots=1, tokens=8)
    for prompt in ([], [1] * 8):
        with pytest.raises(ConfigError, match="a slot holds 8"):
            sampler.generate([prompt], stop=NEVER)
    (made,) = sampler.generate([[1] * 6], Sampling(max_tokens=50), stop=NEVER)
    assert len(made.ids) == 2


@pytest.mark.parametrize("tokens", [0, -1, 257])
def test_slots_are_no_larger_than_the_model_takes_and_hold_a_token(tokens: int) -> None:
    model = new_decoder(small(max_positions=256))
    with pytest.raises(ConfigError, match=rf"a slot of {tokens} tokens: the model takes 256"):
        Sampler(model, tokens=tokens)
    with pytest.raises(ConfigError, match="slots = 0"):
        Sampler(model, slots=0)
    assert Sampler(model, slots=1, tokens=256).cache.capacity == 256


def test_a_conversation_is_read_on_from_what_its_slot_holds() -> None:
    """Same answers as without anything held, and only the new tokens are fed."""
    model = model_of("plain")
    sampler = Sampler(model, slots=2)
    fed: list[int] = []
    extend = model.extend

    def counted(ids: torch.Tensor, counts: torch.Tensor, *rest: Any) -> torch.Tensor:
        fed.append(int(counts.sum()))
        return extend(ids, counts, *rest)

    model.extend = counted  # type: ignore[method-assign]
    sampling = Sampling(max_tokens=4)
    first = prompts_of(20, 31)
    said = sampler.generate(first, sampling, stop=NEVER)
    longer = [[*p, *g.ids, 7, 8] for p, g in zip(first, said, strict=True)]
    branch = [*first[0][:10], 3, 4, 5]
    fed.clear()
    made = sampler.generate([*longer[::-1], branch], sampling, stop=NEVER)
    assert fed[0] == 2 * 3  # the last drawn token was never read, and two are new
    for prompt, generated in zip([*longer[::-1], branch], made, strict=True):
        assert generated.ids == greedy_without_cache(model, prompt, 4)


def test_prompts_are_read_in_bounded_passes_to_the_same_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainer.inference.sampler.READ_TOKENS", 16)
    monkeypatch.setattr("trainer.inference.sampler.READ_KEYS", 60)
    model = model_of("plain")
    passes: list[tuple[int, int]] = []
    extend = model.extend

    def noted(ids: torch.Tensor, *rest: Any) -> torch.Tensor:
        passes.append((ids.shape[0], ids.shape[1]))
        return extend(ids, *rest)

    model.extend = noted  # type: ignore[method-assign]
    prompts = prompts_of(5, 41, 7, 3, 40, 8)
    made = Sampler(model, slots=6).generate(prompts, Sampling(max_tokens=2), stop=NEVER)
    assert all(rows * length <= 16 for rows, length in passes)
    assert passes[0] == (2, 5)  # alike in length
    assert sum(rows for rows, length in passes if length == 1) >= 6
    for prompt, generated in zip(prompts, made, strict=True):
        assert generated.ids == greedy_without_cache(model, prompt, 2)


class Mute:
    def allowed(self) -> torch.Tensor:
        return torch.zeros(97, dtype=torch.bool)

    def take(self, token: int) -> None:
        raise AssertionError


def test_a_guide_that_allows_nothing_is_an_error_and_no_endless_loop() -> None:
    sampler = Sampler(model_of("plain"), slots=1)
    with pytest.raises(ConfigError, match="no token of the vocabulary"):
        sampler.generate([[1, 2]], Sampling(), stop=0, guides=[Mute()])
