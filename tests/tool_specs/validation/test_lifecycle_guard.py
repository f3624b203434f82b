"""What a call may change of fields that moves of other rows set by their effects."""

from typing import Any

import pytest

from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.validation.lifecycle_guard import LifecycleGuard

NOW = "2026-06-01T09:00:00"


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """About a hive's change, where `apply` of treatments sets its `seen_at` and `mites`."""
    (domain,) = load_taxonomy(["bee_yards"])
    state = domain.seed_state
    key = next(iter(domain.seed["hive"]))["hive_id"]
    change = {"entity": "hive", "op": "update", "id": key, "before": before, "after": after}
    return list(LifecycleGuard(domain).bypassed([change], state, state))  # type: ignore[list-item]


def test_a_rows_own_move_sets_its_own_stamp() -> None:
    before = {"status": "queenless", "seen_at": None}
    assert told(before, {"status": "building", "seen_at": NOW}) == []


def test_a_field_with_a_verb_is_changed_by_hand_too() -> None:
    assert told({"mites": 4.5}, {"mites": 2.0}) == []


@pytest.mark.parametrize("status", ["building", "dead"])
def test_a_stamp_without_its_move_is_refused(status: str) -> None:
    moved = {} if status == "building" else {"status": status}
    before = {"status": "queenless", "seen_at": None}
    assert any("hive.seen_at past" in words for words in told(before, moved | {"seen_at": NOW}))
