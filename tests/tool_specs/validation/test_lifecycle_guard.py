"""What a call may change of fields that moves of other rows set by their effects."""

from typing import Any

from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.validation.lifecycle_guard import LifecycleGuard

NOW = "2026-06-01T09:00:00"


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """About a hive's change, where `apply` of treatments sets its `seen_at` and `mites`."""
    (domain,) = load_taxonomy(["bee_yards"])
    state = domain.seed_state
    key = next(iter(domain.seed["hive"]))["hive_id"]
    change = {"entity": "hive", "op": "update", "id": key, "before": before, "after": after}
    return list(LifecycleGuard(domain).told([change], state, state, {}))  # type: ignore[list-item]


def test_a_rows_own_move_sets_its_own_stamp() -> None:
    before = {"status": "queenless", "seen_at": None}
    assert told(before, {"status": "building", "seen_at": NOW}) == []


def test_a_field_with_a_verb_is_changed_by_hand_too() -> None:
    assert told({"mites": 4.5}, {"mites": 2.0}) == []


def test_a_stamp_without_its_move_is_refused() -> None:
    assert any("hive.seen_at past" in words for words in told({"seen_at": None}, {"seen_at": NOW}))


def test_a_stamp_of_another_move_is_refused() -> None:
    before, after = {"status": "queenless", "seen_at": None}, {"status": "dead", "seen_at": NOW}
    assert any("hive.seen_at past" in words for words in told(before, after))
