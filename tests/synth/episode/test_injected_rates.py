"""Declared rates of injected outcomes hold over the calls that can have them, which are counted."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from synth.engine.stages import KEPT
from synth.episode.environment import EpisodeConfig
from synth.episode.injected_rates import injected_rates
from synth.episode.tools.fault_injection import FaultInjectionConfig, OutcomeKind
from tests.synth.clinic import CANCEL, FIND, TOOLS, calls, environment, play, says
from tests.synth.small_dataset import row

LIST = ("list_appointments", {"patient_id": "PT-1003"})
EPISODE = [calls(FIND, LIST), calls(CANCEL), calls(LIST, FIND), says("Done.")]
"""Two reads, a change, the same reads: one of them is another now."""


def played(folder: Path, num: int, weights: dict[OutcomeKind, float]) -> Dataset:
    config = EpisodeConfig(fault_injection=FaultInjectionConfig(weights=weights, max_in_a_row=99))
    env, rows = environment(config), []
    for seed in range(num):
        asyncio.run(play(env, *EPISODE, seed=seed))
        made: list[dict[str, Any]] = [r._asdict() for r in env.state.caller.records]
        rows += [row("tool_calls", **(one | {"trajectory_id": f"t{seed:04d}"})) for one in made]
    dataset = Dataset.create_or_open(folder)
    tools = [row("tools", **tool) for tool in TOOLS]
    tables = {"tools": tools, "tool_calls": json.loads(json.dumps(rows))}
    dataset.commit(run_id="r", stage="x", shard=0, tables=tables, items={"x": KEPT})
    return dataset


def test_what_a_call_cannot_have_is_not_counted_for_it(tmp_path: Path) -> None:
    counted = {row["outcome"]: row for row in injected_rates(played(tmp_path, 1, {"success": 1.0}))}
    could = {outcome: row["could"] for outcome, row in counted.items()}
    assert could["transient_error"] == could["permission_denied"] == 5
    assert could["malformed"] == could["empty"] == 4  # the cancelling call writes
    assert could["stale"] == 2  # before it nothing was changed
    assert all(row["injected"] == 0 for row in counted.values())


@pytest.mark.parametrize("kind", ["permission_denied", "empty"])
def test_the_declared_rate_holds_over_the_calls_that_can_have_it(
    kind: OutcomeKind, tmp_path: Path
) -> None:
    dataset = played(tmp_path, 150, {"success": 0.8, kind: 0.2})
    (found,) = (row for row in injected_rates(dataset) if row["outcome"] == kind)
    assert found["injected"] > 0
    assert found["low"] <= 0.2 <= found["high"]
