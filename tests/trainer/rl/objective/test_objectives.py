"""The objectives come out where their formulas say they do, and parts of a step add up."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.trainer.rl.objective.made_samples import OBJECTIVES
from trainer.rl.objective.objectives import (
    LearntTokens,
    StepTotals,
    grpo,
    k3,
    masked,
    objective_loss,
    squared,
)
from trainer.rl.objective.settings import (
    GrpoSettings,
    MaskedSettings,
    ObjectiveSettings,
    SquaredSettings,
)

COUNTS = (4, 2, 1, 1)
"""How often each arm of the bandit was drawn: the old policy is exactly that."""

ARM_REWARDS = (0.2, 1.0, 0.0, 0.6)


def tokens_of(
    logprobs: Tensor, old: Tensor, advantages: list[float], **other: Tensor
) -> LearntTokens:
    """Samples of one token each, of one prompt."""
    count = len(logprobs)
    return LearntTokens(
        logprobs,
        old,
        torch.arange(count),
        torch.tensor(advantages, dtype=torch.double),
        torch.full((count,), 1 / count, dtype=torch.double),
        torch.ones(count),
        **other,
    )


class Bandit:
    """A softmax over arms, and every draw of the old policy in its exact frequency."""

    def __init__(self, advantage: Callable[[Tensor, Tensor], Tensor]) -> None:
        """`advantage`: of the rewards of all arms, given the old policy."""
        self.old_A = torch.tensor(COUNTS, dtype=torch.double) / sum(COUNTS)
        self.rewards_A = torch.tensor(ARM_REWARDS, dtype=torch.double)
        self.drawn = torch.repeat_interleave(torch.arange(4), torch.tensor(COUNTS))
        self.advantages = advantage(self.rewards_A, self.old_A)[self.drawn].tolist()

    def converged(self, settings: SquaredSettings) -> Tensor:
        """The policy that the objective leads to from the old one, by arm."""
        scores_A = self.old_A.log().requires_grad_()
        search = torch.optim.LBFGS(
            [scores_A],
            max_iter=500,
            tolerance_grad=1e-12,
            tolerance_change=1e-16,
            line_search_fn="strong_wolfe",
        )

        def loss() -> Tensor:
            search.zero_grad()
            logprobs = scores_A.log_softmax(-1)[self.drawn]
            given = tokens_of(logprobs, self.old_A.log()[self.drawn], self.advantages)
            made = squared(given, settings).loss
            made.backward()
            return made

        search.step(loss)
        return scores_A.detach().softmax(-1)


def mean_baseline(rewards_A: Tensor, old_A: Tensor) -> Tensor:
    return rewards_A - (old_A * rewards_A).sum()


def bisected(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def best_policy(bandit: Bandit, tau: float) -> Tensor:
    """Of all distributions the one with the least squared objective, with the mean as baseline: by
    Lagrange's condition advantage - tau l = m e^l for each arm's log-ratio l, with the m that makes
    the shares add up to 1."""
    advantages = mean_baseline(bandit.rewards_A, bandit.old_A).tolist()

    def ratios(m: float) -> list[float]:
        found = [
            bisected(lambda x, a=a: a - tau * x - m * math.exp(x), -60, 60) for a in advantages
        ]
        return [math.exp(x) for x in found]

    def over(m: float) -> float:
        return float(bandit.old_A @ torch.tensor(ratios(m), dtype=torch.double)) - 1

    return bandit.old_A * torch.tensor(ratios(bisected(over, 0.0, 50.0)), dtype=torch.double)


@pytest.mark.parametrize("tau", [0.1, 0.5, 3.0])
def test_a_bandit_comes_to_the_known_solution(tau: float) -> None:
    bandit = Bandit(mean_baseline)
    found = bandit.converged(SquaredSettings(tau=tau))
    torch.testing.assert_close(found, best_policy(bandit, tau), atol=1e-6, rtol=1e-5)
    assert found @ bandit.rewards_A > bandit.old_A @ bandit.rewards_A


@pytest.mark.parametrize("tau", [0.1, 0.5, 3.0])
def test_with_the_exact_baseline_the_solution_is_the_tilted_policy(tau: float) -> None:
    """pi_old e^(r / tau) / Z, whose baseline is tau log Z; the mean reward is it for large tau, and
    then the same policy is found with the mean."""

    def exact(rewards_A: Tensor, old_A: Tensor) -> Tensor:
        return rewards_A - tau * (old_A * (rewards_A / tau).exp()).sum().log()

    bandit = Bandit(exact)
    tilted = bandit.old_A * (bandit.rewards_A / tau).exp()
    tilted /= tilted.sum()
    settings = SquaredSettings(tau=tau)
    torch.testing.assert_close(bandit.converged(settings), tilted, atol=1e-6, rtol=1e-5)
    apart = (Bandit(mean_baseline).converged(settings) - tilted).abs().max()
    assert apart < 0.003 if tau == 3.0 else apart > 0.003


def random_tokens(requires_grad: bool = True) -> tuple[LearntTokens, StepTotals]:
    generator = torch.Generator().manual_seed(2)
    lengths = torch.tensor([3, 1, 7, 4])
    logprobs, old, reference = (
        torch.randn(15, generator=generator, dtype=torch.double) * 0.4 - 2 for _ in range(3)
    )
    tokens = LearntTokens(
        logprobs.requires_grad_(requires_grad),
        old,
        torch.repeat_interleave(torch.arange(4), lengths),
        torch.tensor([0.5, -0.25, 0.75, -1.0], dtype=torch.double),
        torch.tensor([0.25, 0.25, 0.125, 0.375], dtype=torch.double),
        lengths.double(),
        reference,
    )
    return tokens, StepTotals(samples=5, tokens=20)


def test_the_squared_form_is_policy_gradient_with_a_penalty() -> None:
    """Its gradient is -2 tau that of the mean of A log pi - tau / 2 (log-ratio)^2: the surrogate of
    Kimi K1.5."""
    tokens, _ = random_tokens()
    made = squared(tokens, SquaredSettings(tau=0.7))
    log_ratios_N = tokens.logprobs_N - tokens.old_N
    ratios_S = torch.stack([log_ratios_N[tokens.sample_N == n].sum() for n in range(4)])
    gains_S = tokens.advantages_S * ratios_S - 0.35 * ratios_S.square()
    expected = -1.4 * (tokens.shares_S * gains_S).sum()
    gradients = [torch.autograd.grad(x, tokens.logprobs_N)[0] for x in (made.loss, expected)]
    torch.testing.assert_close(*gradients)


def only(tokens: LearntTokens, samples: list[int]) -> LearntTokens:
    kept = torch.isin(tokens.sample_N, torch.tensor(samples))
    numbers = torch.tensor([samples.index(int(n)) for n in tokens.sample_N[kept]])
    assert tokens.reference_N is not None
    return LearntTokens(
        tokens.logprobs_N[kept],
        tokens.old_N[kept],
        numbers,
        tokens.advantages_S[samples],
        tokens.shares_S[samples],
        tokens.lengths_S[samples],
        tokens.reference_N[kept],
    )


@pytest.mark.parametrize(
    "settings", [*OBJECTIVES.values(), GrpoSettings(kl_weight=0.4)], ids=[*OBJECTIVES, "reference"]
)
def test_parts_of_whole_samples_add_up(settings: ObjectiveSettings) -> None:
    tokens, totals = random_tokens()
    whole = objective_loss(tokens, totals, settings)
    parts = [objective_loss(only(tokens, some), totals, settings) for some in ([2, 0], [3], [1])]
    torch.testing.assert_close(sum(part.loss for part in parts), whole.loss)
    assert sum(int(part.cut_N.sum()) for part in parts) == int(whole.cut_N.sum())


def test_out_of_bounds_the_reward_moves_nothing_whatever_its_sign() -> None:
    logprobs = torch.tensor([-1.0, -9.0, -1.0, -9.0, -2.0], dtype=torch.double, requires_grad=True)
    old = torch.tensor([-3.0, -3.0, -3.0, -3.0, -2.1], dtype=torch.double)
    tokens = tokens_of(logprobs, old, [1.0, 1.0, -1.0, -1.0, 1.0])
    for tau in (0.0, 0.2):
        settings = MaskedSettings(tau=tau, lowest=-0.5, highest=0.5)
        made = masked(tokens, StepTotals(5, 5), settings)
        assert made.cut_N.tolist() == [True] * 4 + [False]
        [gradient] = torch.autograd.grad(made.loss, logprobs)
        pulled = 2 * tau * (logprobs - old).detach() / 5
        torch.testing.assert_close(gradient[:4], pulled[:4])
        assert gradient[4] < pulled[4]


@pytest.mark.parametrize("impossible", [-math.inf, -1e30])
def test_a_token_out_of_bounds_may_even_be_impossible(impossible: float) -> None:
    logprobs = torch.tensor([impossible, -2.0], dtype=torch.double, requires_grad=True)
    tokens = tokens_of(logprobs, torch.tensor([-3.0, -2.1], dtype=torch.double), [1.0, -1.0])
    for made in (
        masked(tokens, StepTotals(2, 2), MaskedSettings(tau=0.0)),
        grpo(only_negative(tokens), StepTotals(2, 2), GrpoSettings()),
    ):
        [gradient] = torch.autograd.grad(made.loss, logprobs)
        assert gradient[0] == 0.0
        assert gradient[1].isfinite()
        assert gradient[1] != 0.0


def only_negative(tokens: LearntTokens) -> LearntTokens:
    """With advantages below 0, by which a small ratio is clipped."""
    return tokens._replace(advantages_S=torch.full((2,), -1.0, dtype=torch.double))


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_ratio_beyond_all_numbers_gives_finite_gradients(advantage: float) -> None:
    logprobs = torch.tensor([-1.0], requires_grad=True)
    tokens = tokens_of(logprobs, torch.tensor([-1000.0]), [advantage])
    made = grpo(tokens, StepTotals(1, 1), GrpoSettings())
    [gradient] = torch.autograd.grad(made.loss, logprobs)
    assert made.loss.isfinite()
    assert gradient.item() == 0.0


def test_k3_is_the_divergence_on_average_and_never_below_zero() -> None:
    p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.5, 0.2, 0.3])
    log_ratios = (q / p).log()
    torch.testing.assert_close((p * k3(log_ratios)).sum(), (p * (p / q).log()).sum())
    assert (k3(torch.linspace(-5, 5, 101)) >= 0).all()


def test_a_weight_of_the_reference_needs_one() -> None:
    tokens, totals = random_tokens()
    with pytest.raises(ValueError, match=r"kl_weight = 0\.1"):
        grpo(tokens._replace(reference_N=None), totals, GrpoSettings(kl_weight=0.1))
