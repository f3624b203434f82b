"""Wrong values at any place of a row: it is taken or refused, and costs the others nothing."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from tests.synth.importing.examples import (
    ASKED,
    lines,
    openai,
    results,
    sharegpt,
    simulation,
    toucan,
    toucan_selection,
)
from tests.synth.importing.test_importing import take

WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "\ud800",
    "{",
    "[]",
    "null",
    "1e999",
    "a" * 300,
    [],
    [None],
    [[]],
    [{}],
    [1, {"type": "x"}],
    {},
    {"a": 1},
    {"\ud800": 1},
    {"type": "text"},
    {"role": []},
]

Place = tuple[str | int, ...]


def opened(row: dict[str, Any]) -> dict[str, Any]:
    """With columns that are JSON text as what they hold, so that there is a place within them."""
    is_json = {name: isinstance(v, str) and v[:1] in ("[", "{") for name, v in row.items()}
    return {name: json.loads(v) if is_json[name] else v for name, v in row.items()}


SHAPES: dict[str, dict[str, Any]] = {
    "openai": openai(),
    "toucan": opened(toucan()),
    "selection": opened(toucan_selection()),
    "sharegpt": opened(sharegpt()),
    "tau2": simulation(),
}


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    if at:
        yield at
    keys = value if isinstance(value, dict) else range(len(value)) if _is_list(value) else ()
    for key in keys:
        yield from places(value[key], (*at, key))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def changed(row: dict[str, Any], at: Place, wrong: Any, mark: int) -> Any:
    """With words of its own, so that no row repeats another."""
    new = json.loads(json.dumps(row).replace(ASKED, f"{ASKED} {mark}"))
    within: Any = new
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = copy.deepcopy(wrong)
    return new


def wrong_rows() -> list[Any]:
    found = [(row, at, wrong) for row in SHAPES.values() for at in places(row) for wrong in WRONG]
    return [changed(row, at, wrong, number) for number, (row, at, wrong) in enumerate(found)]


@pytest.mark.parametrize("share", [0.03, pytest.param(0.25, marks=pytest.mark.slow)])
def test_a_row_with_a_wrong_value_is_taken_or_refused(share: float, tmp_path: Path) -> None:
    every = wrong_rows()
    rows = random.Random(7).sample(every, round(share * len(every)))
    report = take(tmp_path / "d", lines(tmp_path / "f.jsonl", [*rows, openai()]))
    accounted = report.added + report.known + report.repeated + report.refused.total()
    assert report.read == len(rows) + 1 == accounted
    assert report.refused.total() > len(rows) // 10
    dataset = Dataset.open(tmp_path / "d")
    assert len(dataset.ids("trajectories")) == len(dataset.ids("imports")) == report.added
    dropped = [r for r in dataset.item_statuses("import_trajectories").values() if r.reason]
    assert len(dropped) == report.refused.total()


@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_what_results_say_of_all_conversations_may_be_wrong(share: float, tmp_path: Path) -> None:
    whole = results(simulation(), tool_defs={"look_out": {"doc": "Look.", "params": {}}})
    every = [(at, wrong) for at in places({"info": whole["info"]}) for wrong in WRONG]
    wanted = random.Random(7).sample(every, round(share * len(every)))
    for number, (at, wrong) in enumerate(wanted):
        file = tmp_path / f"r{number}.json"
        file.write_text(json.dumps(changed(whole, at, wrong, number)))
    report = take(tmp_path / "d", tmp_path)
    assert report.read == len(wanted) == report.added + report.repeated + report.refused.total()
    assert set(report.formats) == {"tau2"}
