"""A step learns what the formulas say, however it is packed, and nothing where it is bad."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from records.errors import ConfigError
from tests.trainer.configs import small
from tests.trainer.dense_attention import standing_in
from tests.trainer.rl.objective.made_samples import (
    OBJECTIVES,
    REWARDS,
    gradients_of,
    plain_cross_entropy,
    plain_logprobs,
    plain_loss,
    samples,
    sequence,
)
from trainer.data.packing import IGNORE, PackedBatch
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.model.paths import ComputePath
from trainer.rl.lines import metrics_of_steps
from trainer.rl.objective.measures import LearningMeasures
from trainer.rl.objective.minibatches import minibatch_of
from trainer.rl.objective.rows import LearntSample
from trainer.rl.objective.settings import (
    GrpoSettings,
    LearningSettings,
    ObjectiveSettings,
    PtxSettings,
    SquaredSettings,
)
from trainer.rl.objective.stepper import RLStepper
from trainer.training import step as steps
from trainer.training.step import BEFORE_JUDGING

SHAPE = small(num_layers=2, init_std=0.1, moe_intermediate_size=24)

VERSION = 5


def exact_model(seed: int = 0) -> Decoder:
    model = new_decoder(SHAPE, seed)
    model.cast(torch.float64)
    return model


def settings_of(**other: Any) -> LearningSettings:
    """A gradient that is not clipped stays in the parameters as it was made."""
    chosen: dict[str, Any] = {"replay_routes": False, "clip_norm": 1e9, "micro_rows": 2}
    return LearningSettings(**(chosen | other))


def known(measures: LearningMeasures) -> dict[str, float]:
    return {name: value for name, value in vars(measures).items() if value is not None}


def close(made: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert made.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(made[name], value, rtol=1e-8, atol=1e-11, msg=name)


@pytest.mark.parametrize("entropy_weight", [0.0, 0.02])
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_gradients_are_those_of_the_definition(
    objective: ObjectiveSettings, entropy_weight: float
) -> None:
    settings = settings_of(objective=objective, entropy_weight=entropy_weight)
    plain = exact_model()
    loss = plain_loss(plain, samples(), settings)
    loss.backward()
    expected = gradients_of(plain)
    stepper = RLStepper.of(exact_model(), settings)
    step = stepper.step(minibatch_of(samples(), settings), version=VERSION)
    assert step.taken is not None
    assert step.taken.loss == pytest.approx(loss.item(), abs=1e-12)
    assert step.taken.skipped is None
    close(gradients_of(stepper.model), expected)
    assert max(g.abs().max().item() for g in expected.values()) > 1e-4


def test_samples_without_a_signal_hold_the_policy_where_they_are_kept() -> None:
    settings = settings_of(without_signal="keep", objective=SquaredSettings(tau=0.5))
    plain = exact_model()
    plain_loss(plain, samples(), settings).backward()
    stepper = RLStepper.of(exact_model(), settings)
    stepper.step(minibatch_of(samples(), settings), version=VERSION)
    close(gradients_of(stepper.model), gradients_of(plain))
    others = RLStepper.of(exact_model(), settings_of(objective=SquaredSettings(tau=0.5)))
    others.step(minibatch_of(samples(), others.config), version=VERSION)
    head = "lm_head.weight"
    assert not torch.allclose(gradients_of(stepper.model)[head], gradients_of(others.model)[head])


def test_the_reference_pulls() -> None:
    objective = GrpoSettings(kl_weight=0.3)
    settings = settings_of(objective=objective, without_signal="keep")
    plain, reference = exact_model(), exact_model(seed=1)
    plain_loss(plain, samples(), settings, reference).backward()
    stepper = RLStepper.of(exact_model(), settings, reference)
    step = stepper.step(minibatch_of(samples(), settings), version=VERSION)
    close(gradients_of(stepper.model), gradients_of(plain))
    assert step.measures is not None
    assert (step.measures.reference_kl or 0.0) > 0.001
    assert not gradients_of(reference)
    for wrong in (GrpoSettings(), SquaredSettings()):
        with pytest.raises(ConfigError, match="kl_weight"):
            RLStepper.of(exact_model(), settings_of(objective=wrong), reference)
    with pytest.raises(ConfigError, match="kl_weight"):
        RLStepper.of(exact_model(), settings)


def test_order_padding_and_passes_change_nothing() -> None:
    given = samples()
    made, told = [], []
    for row_tokens, micro_rows, order in ((None, 4, 1), (64, 1, -1), (40, 3, 1), (200, 1, -1)):
        settings = settings_of(row_tokens=row_tokens, micro_rows=micro_rows)
        stepper = RLStepper.of(exact_model(), settings)
        step = stepper.step(minibatch_of(given[::order], settings), version=VERSION)
        made.append(gradients_of(stepper.model))
        assert step.taken is not None
        assert step.measures is not None
        told.append({"loss": step.taken.loss, "targets": step.taken.targets} | known(step.measures))
    for gradients, numbers in zip(made[1:], told[1:], strict=True):
        close(gradients, made[0])
        assert numbers == pytest.approx(told[0], rel=1e-9)


def test_good_conversations_are_learnt_by_their_weight() -> None:
    settings = settings_of(ptx=PtxSettings(weight=0.7))
    ids = torch.randint(0, 97, (3, 16), generator=torch.Generator().manual_seed(9))
    targets = ids.roll(-1, 1)
    targets[0, 4:], targets[:, -1] = IGNORE, IGNORE
    ptx = PackedBatch(ids, targets, torch.zeros_like(ids))
    plain = exact_model()
    cross_entropy = plain_cross_entropy(plain, ids, targets)
    (plain_loss(plain, samples(), settings) + 0.7 * cross_entropy).backward()
    stepper = RLStepper.of(exact_model(), settings)
    step = stepper.step(minibatch_of(samples(), settings), version=VERSION, ptx=ptx)
    close(gradients_of(stepper.model), gradients_of(plain))
    assert step.measures is not None
    assert step.measures.ptx_loss == pytest.approx(cross_entropy.item())
    equal = [s for s in samples() if s.group == "equal"]
    alone = RLStepper.of(exact_model(), settings).step(
        minibatch_of(equal, settings), version=VERSION, ptx=ptx
    )
    assert alone.taken is not None
    assert alone.taken.loss == pytest.approx(0.7 * cross_entropy.item())
    line, other = metrics_of_steps([step, alone]), metrics_of_steps([step])
    assert line["entropy"] == other["entropy"] == step.measures.entropy
    assert line["ptx_loss"] == pytest.approx(cross_entropy.item())
    assert metrics_of_steps([alone]).get("entropy") is None
    with pytest.raises(ValueError, match=r"ptx\.weight above 0"):
        stepper.step(minibatch_of(samples(), settings), version=VERSION)


def test_measures_are_those_of_the_definition() -> None:
    given = samples()
    for old in (given[0].sequences[0], given[3].sequences[0]):
        old.versions_T[old.drawn_T.nonzero()[0]] = VERSION - 5
    settings = settings_of(objective=OBJECTIVES["masked"])
    model = exact_model()
    with torch.no_grad():
        found = [plain_logprobs(model, s) for s in given if s.group in ("a", "b")]
    new, old, entropies = (torch.cat(column) for column in zip(*found, strict=True))
    ratio = new - old
    step = RLStepper.of(model, settings).step(minibatch_of(given, settings), version=VERSION)
    measures = step.measures
    assert measures is not None
    assert measures.tokens == len(new)
    assert measures.kl_k1 == pytest.approx(-ratio.mean().item())
    assert measures.kl_k3 == pytest.approx((ratio.exp() - 1 - ratio).mean().item())
    assert measures.entropy == pytest.approx(entropies.mean().item())
    assert measures.sampling_kl == pytest.approx(0.1)
    assert measures.log_ratio_abs == pytest.approx(ratio.abs().mean().item())
    assert measures.log_ratio_max == pytest.approx(ratio.abs().max().item())
    outside = ((ratio < -0.2) | (ratio > 0.3)).double().mean().item()
    assert 0 < outside < 1
    assert measures.cut == pytest.approx(outside)
    assert measures.stale == 1.0  # of version 3, and two tokens of version 0
    assert measures.staleness_max == 5
    assert measures.staleness_mean == pytest.approx(2 + 2 * 3 / len(new))
    assert measures.stale_log_ratio_abs == pytest.approx(measures.log_ratio_abs)
    assert (measures.replayed, measures.route_agreement) == (0.0, None)
    assert (step.counts.groups, step.counts.alone, step.counts.equal) == (len(REWARDS), 1, 1)


def everything(stepper: RLStepper) -> dict[str, bytes]:
    found = {n: v.numpy().tobytes() for n, v in stepper.model.state_dict().items()}
    for name, p in stepper.model.named_parameters():
        for what, value in stepper.optimizer.state[p].items():
            bits = value.numpy().tobytes() if isinstance(value, Tensor) else bytes([value])
            found[f"{name} {what}"] = bits
    return found


def test_nothing_to_learn_and_bad_steps_move_nothing() -> None:
    settings = LearningSettings(replay_routes=False, qk_clip_tau=1e-3, balance_rate=1e-3)
    stepper = RLStepper.of(new_decoder(SHAPE), settings)
    first = stepper.step(minibatch_of(samples(), settings), version=VERSION)
    assert first.taken is not None
    assert first.taken.skipped is None
    assert first.taken.clipped_heads == 4
    before = everything(stepper)
    without = [s for s in samples() if s.group in ("equal", "alone")]
    for nothing in (without, []):
        step = stepper.step(minibatch_of(nothing, settings), version=VERSION)
        assert (step.taken, step.measures) == (None, None)
    hook = stepper.model.model.norm.weight.register_hook(lambda gradient: gradient * math.nan)
    bad = stepper.step(minibatch_of(samples(), settings), version=VERSION)
    hook.remove()
    assert bad.taken is not None
    assert bad.taken.skipped == "no_number"
    stepper.norms.extend([1e-9] * BEFORE_JUDGING)
    spike = stepper.step(minibatch_of(samples(), settings), version=VERSION)
    assert spike.taken is not None
    assert spike.taken.skipped == "spike"
    assert everything(stepper) == before


def test_a_device_is_read_once_and_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int] = []
    plain = steps.read_back

    def counted(told: Mapping[str, Tensor]) -> dict[str, list[float]]:
        readings.append(len(told))
        return plain(told)

    monkeypatch.setattr(steps, "read_back", counted)
    made = []
    for path in ComputePath:
        model = new_decoder(SHAPE)
        model.path = path
        stepper = RLStepper.of(model, settings_of(lr=1e-3))
        with standing_in():
            step = stepper.step(minibatch_of(samples(), stepper.config), version=VERSION)
        assert step.measures is not None
        made.append((known(step.measures), [p.detach() for p in model.parameters()]))
    assert len(readings) == 2
    (numbers, weights), (other_numbers, other_weights) = made
    for name, value in numbers.items():
        assert other_numbers[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    for one, other in zip(weights, other_weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "masked", "grpo"])
def test_rewarded_tokens_become_likely(name: str) -> None:
    """Four tokens that may follow a prompt, one of which is rewarded."""
    settings = LearningSettings(
        objective=OBJECTIVES[name], replay_routes=False, lr=3e-3, micro_rows=4
    )
    stepper = RLStepper.of(new_decoder(SHAPE), settings)
    prompt = torch.tensor([1, 2, 3])

    def logs() -> Tensor:
        with torch.no_grad():
            hidden = stepper.model(prompt[None]).hidden_BTD[0, -1]
        return stepper.model.logits(hidden).log_softmax(-1).detach().double()

    before = logs().exp()
    for version in range(30):
        now_V = logs()
        drawn = torch.tensor([False, False, False, True])
        group = []
        for number, token in enumerate((10, 11, 12, 13)):
            old = now_V[token].expand(4)
            one = sequence(
                torch.Generator(),
                4,
                [3],
                ids_T=torch.cat((prompt, torch.tensor([token]))),
                old_T=old,
                sampled_T=old,
                versions_T=torch.where(drawn, version, -1),
            )
            group.append(LearntSample("g", number, "bandit", float(token == 11), (one,)))
        step = stepper.step(minibatch_of(group, settings), version=version)
        assert step.measures is not None
        assert step.measures.log_ratio_max < 1e-4  # it was drawn by the weights that learn
    after = logs().exp()
    assert after[11] > 0.5 > 10 * before[11]
    assert all(after[token] < before[token] for token in (10, 12, 13))
