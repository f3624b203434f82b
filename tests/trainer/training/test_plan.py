"""More steps for a run that had fewer: the rate goes on where it is, and nothing starts over."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from tests.trainer.small_run import config_of
from trainer.optim.schedule import DECAY, FLOOR, REWARMING, RateExtension, Schedule, extended, wsd
from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.plan import Plan, PlannedSteps, learning_rates, plan_of

PEAK, FIRST, MORE = 2e-3, 10_000, 4_000

WAYS: tuple[RateExtension, ...] = ("hold", "redecay")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("times", [1, 2])
def test_an_extended_schedule_is_continuous_and_begins_as_before(
    way: RateExtension, times: int
) -> None:
    plain = made = wsd(PEAK, FIRST)
    for _ in range(times):
        made = extended(made, MORE, way, peak=PEAK)
    assert [made.lr_at(n) for n in range(FIRST + 1)] == [plain.lr_at(n) for n in range(FIRST + 1)]
    steepest = (PEAK - FLOOR * PEAK) / (REWARMING * MORE)  # a token; the cosine is less steep
    end = FIRST + times * MORE
    for n in range(FIRST, end + 100):
        assert abs(made.lr_at(n + 1) - made.lr_at(n)) <= steepest * (1 + 1e-9)
    for n in range(times + 1):
        assert made.lr_at(FIRST + n * MORE) == pytest.approx(FLOOR * PEAK)
    assert made.lr_at(10 * end) == pytest.approx(FLOOR * PEAK)


def test_redecaying_is_the_formula_that_is_written_down() -> None:
    made = extended(wsd(PEAK, FIRST), MORE, "redecay", peak=PEAK)
    low, warm, stable = FLOOR * PEAK, REWARMING * MORE, (1 - DECAY) * MORE
    assert made.lr_at(FIRST + round(warm / 4)) == pytest.approx(low + (PEAK - low) / 4)
    assert made.lr_at(FIRST + round(warm)) == PEAK
    assert made.lr_at(FIRST + round(stable)) == PEAK
    assert made.lr_at(FIRST + round(stable + DECAY * MORE / 2)) == pytest.approx((PEAK + low) / 2)
    held = extended(wsd(PEAK, FIRST), MORE, "hold", peak=PEAK)
    assert {held.lr_at(FIRST + n) for n in range(0, 2 * MORE, 7)} == {low}


@pytest.mark.parametrize("decay", [0.2, 0.5, 0.9])
def test_the_rate_falls_over_the_share_of_the_steps_that_is_set(
    decay: float, tmp_path: Path
) -> None:
    config = config_of(tmp_path, tmp_path / "run", decay=decay, peak_lr=PEAK, steps=1000)
    plan: Plan = (PlannedSteps(1000, None), PlannedSteps(2000, "redecay"))
    rates = learning_rates(config, plan)
    for end in (1000, 2000):
        falls = end - decay * 1000
        assert rates.lr_at(round(falls * config.step_tokens)) == pytest.approx(PEAK)
        halfway = round((falls + decay * 500) * config.step_tokens)
        assert rates.lr_at(halfway) == pytest.approx((PEAK + FLOOR * PEAK) / 2, rel=1e-3)


BEGUN: Plan = (PlannedSteps(100, None),)
LONGER: Plan = (*BEGUN, PlannedSteps(200, "redecay"))


@pytest.mark.parametrize(
    ("known", "taken", "settings", "plan"),
    [
        ((), 0, {"steps": 100, "extend": "hold"}, BEGUN),
        (BEGUN, 40, {"steps": 100, "extend": "hold"}, BEGUN),
        (BEGUN, 40, {"steps": 60}, BEGUN),  # ends sooner, at the same rates
        (BEGUN, 40, {"steps": 40}, BEGUN),
        (BEGUN, 40, {"steps": 200, "extend": "redecay"}, LONGER),
        (LONGER, 150, {"steps": 200, "extend": None}, LONGER),
        (LONGER, 200, {"steps": 300, "extend": "hold"}, (*LONGER, PlannedSteps(300, "hold"))),
        (BEGUN, 100, {"steps": 300, "schedule": wsd(PEAK, FIRST)}, BEGUN),
    ],
)
def test_a_plan_only_ever_grows(
    known: Plan, taken: int, settings: dict[str, Any], plan: Plan, tmp_path: Path
) -> None:
    assert plan_of(config_of(tmp_path, tmp_path / "run", **settings), known, taken) == plan


@pytest.mark.parametrize(
    ("taken", "settings", "told"),
    [
        (100, {"steps": 99}, "steps = 99, but .* has taken 100 steps; set steps to 100"),
        (101, {"steps": 99, "schedule": wsd(PEAK, FIRST)}, "has taken 101 steps"),
        (100, {"steps": 101}, "planned with 100, .* extend = 'hold' .* extend = 'redecay'"),
        (40, {"steps": 101}, "planned with 100"),
    ],
)
def test_what_no_plan_covers_is_refused(
    taken: int, settings: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told):
        plan_of(config_of(tmp_path, tmp_path / "run", **settings), BEGUN, taken)


def test_an_extension_beside_a_schedule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="extend = 'hold' and a schedule are both given"):
        config_of(tmp_path, tmp_path / "run", schedule=wsd(PEAK, FIRST), extend="hold")


def test_a_given_schedule_is_kept_whatever_the_steps(tmp_path: Path) -> None:
    given: Schedule = wsd(PEAK, FIRST)
    config = config_of(tmp_path, tmp_path / "run", steps=1000, schedule=given)
    assert learning_rates(config, BEGUN) == given


@pytest.mark.usefixtures("undrawn")
def test_raising_the_steps_of_a_run_starts_no_rate_over(data: Path, tmp_path: Path) -> None:
    config = config_of(data, tmp_path / "run", steps=6)
    train(config)
    settings, model = config.folder / "config.json", config.folder / "model"
    before = settings.read_bytes()
    with pytest.raises(ConfigError, match=r"steps = 9, .* was planned with 6"):
        train(config.model_copy(update={"steps": 9}))
    assert settings.read_bytes() == before
    assert model.exists()
    for steps, way in ((9, "hold"), (12, "redecay")):
        train(config.model_copy(update={"steps": steps, "extend": way}))
    rates = [line["lr"] for line in read_metrics(config.folder)]
    plain = wsd(config.peak_lr, 6 * config.step_tokens)
    low = FLOOR * config.peak_lr
    assert rates[:6] == [plain.lr_at(n * config.step_tokens) for n in range(1, 7)]
    assert rates[5:9] == [low] * 4
    assert rates[9] == config.peak_lr  # a tenth of three steps is less than one
    assert rates[11] == low
    assert all(a >= b for a, b in itertools.pairwise(rates[9:]))
