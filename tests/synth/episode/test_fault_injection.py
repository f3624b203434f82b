"""Controlled stochasticity: declared rates, seeded draws, bounded runs of errors."""

import json
import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synth.episode.tools.fault_injection import (
    BEFORE_EXECUTION,
    FAULTS,
    Draw,
    FaultInjectionConfig,
    FaultInjector,
    OutcomeKind,
    RecordedFaults,
    fault_of,
    reshaped,
)

ALL_KINDS = FaultInjectionConfig(
    weights={
        "success": 0.5,
        "transient_error": 0.1,
        "rate_limit": 0.1,
        "permission_denied": 0.05,
        "empty": 0.05,
        "partial": 0.05,
        "stale": 0.05,
        "malformed": 0.1,
    },
    max_in_a_row=1000,
)


def drawn(config: FaultInjectionConfig, num: int, *, read_only: bool = True) -> list[str]:
    """First draws of `num` different calls of one episode."""
    faults = FaultInjector(config, seed=7)
    return [faults.draw("t", {"i": i}, read_only=read_only).kind for i in range(num)]


def test_each_kind_comes_at_its_declared_rate():
    num = 20_000
    kinds = drawn(ALL_KINDS, num)
    for kind, rate in ALL_KINDS.weights.items():
        spread = 4 * math.sqrt(num * rate * (1 - rate))
        assert abs(kinds.count(kind) - num * rate) < spread, kind


def test_by_default_three_in_ten_episodes_of_five_calls_meet_an_error():
    met = 0
    for seed in range(4000):
        faults = FaultInjector(FaultInjectionConfig(), seed)
        draws = [faults.draw("t", {"i": i}, read_only=False) for i in range(5)]
        met += any(draw.kind in ("transient_error", "rate_limit") for draw in draws)
    assert 0.27 < met / 4000 < 0.34


def test_by_default_every_kind_occurs_and_mostly_what_another_call_gets_over():
    weights = FaultInjectionConfig().weights
    assert weights.keys() == set(get_args(OutcomeKind))
    hard = weights.keys() - {"success", "transient_error", "rate_limit"}
    assert all(0 < weights[kind] <= 0.005 for kind in hard)
    assert sum(weights.values()) == pytest.approx(1.0)


def test_a_call_that_may_write_is_only_ever_refused_before_it_runs():
    assert set(drawn(ALL_KINDS, 2000, read_only=False)) <= BEFORE_EXECUTION | {"success"}


@given(order=st.permutations(range(12)))
def test_draws_do_not_depend_on_the_order_of_calls(order: list[int]):
    config = ALL_KINDS
    faults = FaultInjector(config, seed=3)
    kinds = {i: faults.draw(f"tool_{i}", {"i": i}, read_only=True).kind for i in order}
    assert [kinds[i] for i in range(12)] == [
        FaultInjector(config, seed=3).draw(f"tool_{i}", {"i": i}, read_only=True).kind
        for i in range(12)
    ]


def test_another_seed_draws_otherwise():
    def kinds(seed: int) -> list[str]:
        faults = FaultInjector(ALL_KINDS, seed)
        return [faults.draw("t", {"i": i}, read_only=True).kind for i in range(50)]

    assert kinds(1) == kinds(1) != kinds(2)


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_a_tool_goes_through_after_so_many_errors_in_a_row(limit: int):
    config = FaultInjectionConfig(weights={"transient_error": 1.0}, max_in_a_row=limit)
    faults = FaultInjector(config, seed=1)
    kinds = [faults.draw("t", {"a": 1}, read_only=False).kind for _ in range(3 * (limit + 1))]
    assert kinds == (["transient_error"] * limit + ["success"]) * 3


def test_restored_counters_go_on_as_if_nothing_had_happened():
    faults = FaultInjector(ALL_KINDS, seed=5)
    for _ in range(3):
        faults.draw("t", {}, read_only=True)
    snapshot = faults.snapshot()

    def further() -> list[tuple[str, float]]:
        draws = [faults.draw("t", {}, read_only=True) for _ in range(20)]
        return [(draw.kind, draw.rng.random()) for draw in draws]

    first = further()
    faults.restore(snapshot)
    assert further() == first


def test_recorded_outcomes_take_the_same_form_again():
    config = FaultInjectionConfig(weights={"success": 1, "transient_error": 2, "rate_limit": 2})
    calls = [("a", {"x": i % 3}) for i in range(30)]
    first = FaultInjector(config, seed=9)
    draws = [first.draw(tool, arguments, read_only=False) for tool, arguments in calls]
    recorded = [(*call, draw.kind) for call, draw in zip(calls, draws, strict=True)]
    again = RecordedFaults(recorded, seed=9)
    for (tool, arguments), draw in zip(calls, draws, strict=True):
        other = again.draw(tool, arguments, read_only=False)
        assert other.kind == draw.kind
        if draw.kind in FAULTS:
            assert fault_of(other, tool) == fault_of(draw, tool)


def test_error_messages_vary_and_are_well_formed():
    config = FaultInjectionConfig(
        weights={"transient_error": 1, "rate_limit": 1}, max_in_a_row=1000
    )
    faults = FaultInjector(config, seed=2)
    texts = set()
    for i in range(200):
        draw = faults.draw("book_room", {"i": i}, read_only=False)
        code, text = fault_of(draw, "book_room")
        error = json.loads(text)["error"]
        assert error["code"] == code
        assert "{" not in error["message"]
        texts.add(text)
    assert len(texts) >= 10


def draw_of(kind: str) -> Draw:
    config = FaultInjectionConfig(weights={kind: 1.0}, max_in_a_row=1)  # pyright: ignore[reportArgumentType]
    return FaultInjector(config, seed=1).draw("t", {}, read_only=True)


def test_partial_results_are_the_first_half_and_say_so():
    text = json.dumps({"rooms": [1, 2, 3, 4], "next": None})
    assert json.loads(reshaped(draw_of("partial"), text) or "") == {
        "rooms": [1, 2],
        "next": None,
        "partial": True,
        "message": "2 of 4 results returned.",
    }
    assert json.loads(reshaped(draw_of("partial"), "[1, 2, 3]") or "")["results"] == [1]
    assert (reshaped(draw_of("partial"), "a\nb\nc\nd") or "").splitlines()[:2] == ["a", "b"]


def test_empty_results_keep_their_shape():
    assert reshaped(draw_of("empty"), '{"rooms": [1, 2], "n": 2}') == '{"rooms": [], "n": 2}'
    assert reshaped(draw_of("empty"), "[1, 2]") == "[]"


@pytest.mark.parametrize("text", ['{"a": 1}', "7", '"x"', '{"rows": [1]}'])
def test_a_result_without_a_list_to_cut_is_left_alone(text: str):
    assert reshaped(draw_of("partial"), text) is None
    emptied = '{"rows": []}' if "rows" in text else None
    assert reshaped(draw_of("empty"), text) == emptied


@given(st.dictionaries(st.text(), st.lists(st.integers()), min_size=1))
def test_a_malformed_result_is_a_piece_that_does_not_parse(value: dict[str, list[int]]):
    text = json.dumps(value)
    piece = reshaped(draw_of("malformed"), text)
    assert piece is not None
    assert text.startswith(piece)
    with pytest.raises(ValueError, match=r".+"):
        json.loads(piece)


@pytest.mark.parametrize(
    "weights", [{}, {"success": 0.0}, {"success": -1.0}, {"success": float("inf")}, {"other": 1.0}]
)
def test_weights_that_are_no_distribution_are_refused(weights: dict[str, float]):
    with pytest.raises(ValidationError, match="weights"):
        FaultInjectionConfig(weights=weights)  # pyright: ignore[reportArgumentType]
