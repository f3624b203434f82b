"""Learning rates by tokens: phases one after another, over the tokens that were asked for."""

import pytest

from trainer.optim.schedule import Phase, Schedule, wsd


def tokens_of(schedule: Schedule) -> int:
    return schedule.warmup_tokens + sum(phase.tokens for phase in schedule.phases)


def test_schedule_goes_through_its_phases() -> None:
    schedule = Schedule(
        warmup_tokens=100,
        phases=(
            Phase(tokens=1000, to=2e-4),
            Phase(tokens=500, to=2e-5, shape="cosine"),
            Phase(tokens=400, to=7e-6, shape="linear"),
        ),
    )
    assert tokens_of(schedule) == 2000
    assert schedule.lr_at(0) == 0
    assert schedule.lr_at(50) == pytest.approx(1e-4)
    assert schedule.lr_at(100) == schedule.lr_at(1099) == 2e-4
    assert schedule.lr_at(1350) == pytest.approx((2e-4 + 2e-5) / 2)
    assert schedule.lr_at(1600) == pytest.approx(2e-5)
    assert schedule.lr_at(1800) == pytest.approx((2e-5 + 7e-6) / 2)
    assert schedule.lr_at(2000) == schedule.lr_at(10**9) == pytest.approx(7e-6)


def test_wsd_covers_the_tokens_it_was_given() -> None:
    schedule = wsd(1e-3, 10_000, warmup=0.1, decay=0.3, floor=0.05)
    assert tokens_of(schedule) == 10_000
    assert max(schedule.lr_at(t) for t in range(0, 10_000, 50)) == 1e-3
    assert schedule.lr_at(10_000) == pytest.approx(5e-5)


def test_a_schedule_cannot_begin_with_a_decay_from_nowhere() -> None:
    with pytest.raises(ValueError, match="must be constant"):
        Schedule(phases=(Phase(tokens=5, to=1e-3, shape="cosine"),))
