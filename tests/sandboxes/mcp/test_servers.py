"""Server definitions: the ones that come with the project, and what is wrong with others."""

from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from sandboxes.mcp.launch import load_server
from sandboxes.mcp.servers import Communicated, ServerConfig, builtin_servers, fill


def test_builtin_servers_give_enough_to_make_varied_tasks() -> None:
    servers = builtin_servers()
    assert set(servers) == {"filesystem", "git", "memory", "time"}
    for config in servers.values():
        assert len(config.goals) >= 8
        assert all(len(set(values)) >= 8 for values in config.slots.values())
        sequences = [tuple(call.tool for call in goal.calls) for goal in config.goals]
        assert len(set(sequences)) >= 5
        assert all(set(goal.labels) <= parameters(config, goal) for goal in config.goals)


def parameters(config, goal) -> set[str]:
    return {name for call in goal.calls for name in call.arguments}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\ncommand: [a]\ncomand: [b]", "comand: Extra inputs are not permitted"),
        ("name: X\ncommand: [a]", "name: String should match"),
        ("name: x\ncommand: []", "command: Tuple should have at least 1 item"),
        ("name: x\ncommand: [a", r"server\.yaml: line 3, column 1: did not find expected"),
        ("name: x\ncommand: " + "[" * 100_000, "line 2, column 39: nested deeper than 30 levels"),
        (
            "name: x\ncommand: [a]\ngoals: [{id: g, wish: '{s}', calls: [{tool: t}]}]",
            r"names \['s'\]",
        ),
        (
            "name: x\ncommand: [a]\nfixtures: {default: {}, shop: {description: a shop}}",
            "fixtures shop have a description, which only `default` may have",
        ),
    ],
)
def test_a_wrong_definition_is_refused_with_file_and_field(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_server(path)
    assert str(path) in str(caught.value)


def test_slots_keep_their_type_when_they_are_all_of_a_value() -> None:
    arguments = {"count": "{n}", "paths": ["{name}.txt", "{n}"], "deep": {"a": "{name}"}}
    filled = fill(arguments, {"n": 3, "name": "x"})
    assert filled == {"count": 3, "paths": ["x.txt", 3], "deep": {"a": "x"}}
    with pytest.raises(KeyError):
        fill("{unknown}", {})


def test_values_to_tell_are_read_from_text_and_json() -> None:
    observation = '{"a": [{"b": "+5.5h"}], "flag": true}'
    rule = {"label": "x", "path": "a.0.b", "regex": r"([0-9.]+)h", "number": True}
    assert Communicated.model_validate(rule).value_in(observation) == 5.5
    for path in ("a.1.b", "a.b", "flag", "c"):
        assert Communicated(label="x", path=path).value_in(observation) is None
    assert Communicated(label="x", regex="^On (.+)$").value_in("a\nOn main\nb") == "main"
    assert Communicated(label="x", path="a").value_in("no JSON") is None
    with pytest.raises(ValueError, match="needs a group"):
        Communicated(label="x", regex="no group")
    for both in ({}, {"path": "a", "value": "b"}):
        with pytest.raises(ValueError, match="either value, or path or regex"):
            Communicated.model_validate({"label": "x"} | both)


def test_a_value_to_tell_is_no_part_of_another() -> None:
    place = Communicated(label="x", value="12.5")
    assert place.value_in('{"total": 12.5}') == "12.5"
    assert place.value_in("It is 12.5.") == "12.5"
    for text in ("112.5", "12.50", "12.5.1", "x12.5"):
        assert place.value_in(text) is None


@pytest.mark.parametrize("writes", [None, True, False])
@pytest.mark.parametrize("reach", [{}, {"hosts": ("a.example",)}, {"secrets": ("A_TOKEN",)}])
@pytest.mark.parametrize("try_writes", [True, False])
def test_only_a_server_that_reaches_nothing_may_write_unasked(
    writes: bool | None, reach: dict[str, Any], try_writes: bool
) -> None:
    config = ServerConfig.model_validate(
        {"name": "a", "command": ("a",), "writes": writes, "try_writes": try_writes} | reach
    )
    assert config.may_write == (writes if writes is not None else not reach)
    assert config.may_try_writes == (config.may_write and (try_writes or not reach))
