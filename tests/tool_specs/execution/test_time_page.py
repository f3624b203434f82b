"""The files of the page on time load, and time does in them what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.loading import parse_yaml

PAGE = (Path(__file__).parents[3] / "docs" / "time.md").read_text()
FILES = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def environment(name: str) -> DomainEnvironment:
    data = parse_yaml(FILES[name].encode(), origin=name)
    return DomainEnvironment.of(Domain.of(data, origin=name))


def row(of: DomainEnvironment, entity: str, key: str, *fields: str) -> list[Any]:
    found = of.get(entity, key)
    assert found is not None
    return [found[field] for field in fields]


def test_the_oven_is_hot_25_minutes_after_it_was_switched_on() -> None:
    bakery = environment("oven.yaml")
    bakery.call("heat_oven", {"oven_id": "OV-1001"})
    assert bakery.state.now == "2026-03-02T05:01:30"
    waits = [bakery.call("wait_at_ovens", {"minutes": n}).observation for n in (23, 1)]
    assert waits[0] == {"now": "2026-03-02T05:24:30", "hot": ["Stone oven"]}
    assert waits[1] == {"now": "2026-03-02T05:25:30", "hot": ["Deck oven", "Stone oven"]}


def test_the_hold_lapses_unless_it_is_extended() -> None:
    left, extended = environment("hold.yaml"), environment("hold.yaml")
    extended.call("extend_hold", {"hold_id": "HO-1001"})
    for restaurant in (left, extended):
        restaurant.pass_time(15 * 60)
    assert row(left, "hold", "HO-1001", "status", "until") == ["lapsed", None]
    assert row(extended, "hold", "HO-1001", "status") == ["held"]
    assert left.call("extend_hold", {"hold_id": "HO-1001"}).error_code == "not_held"


def test_the_robot_charges_until_it_is_full() -> None:
    dock = environment("robot.yaml")
    result = dock.call("dock_robot", {"robot_id": "RB-1001", "way": 10})
    assert [(c["id"], c["at"][11:16]) for c in result.jobs_after] == [
        ("RB-1002", "09:03"),
        ("RB-1002", "09:08"),
    ]
    assert row(dock, "robot", "RB-1002", "mode", "battery") == ["idle", 100]
    dock.pass_time(15 * 60)
    assert row(dock, "robot", "RB-1001", "mode", "battery") == ["idle", 100]


@pytest.mark.parametrize("name", ["oven.yaml", "hold.yaml", "robot.yaml"])
def test_each_file_has_time(name: str) -> None:
    assert list(FILES) == ["oven.yaml", "hold.yaml", "robot.yaml"]
    assert environment(name).domain.has_time
