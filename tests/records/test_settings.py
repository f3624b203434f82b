"""Values of `--set` are TOML, JSON or text; an error shows how a list or a table is written."""

from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as, with_overrides
from synth.pipeline.config import RunConfig


def set_(*overrides: str) -> dict[str, Any]:
    return with_overrides({}, overrides)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("true", True),
        ('["a"]', ["a"]),
        ('[{name = "a"}]', [{"name": "a"}]),
        ('[{"name": "a", "weight": 2}]', [{"name": "a", "weight": 2}]),
        ('{"a": {"b": null}}', {"a": {"b": None}}),
        ("null", None),
        ("some words", "some words"),
        ('[{"name": "a"', '[{"name": "a"'),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
    ],
)
def test_a_value_is_toml_or_json_or_text(text: str, value: Any) -> None:
    assert set_(f"key={text}") == {"key": value}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("domains=clinic_desk", "domains = 'clinic_desk': wants a list, such as [\"...\"]"),
        ("extensions=a.py", 'wants a list, such as [{path = "..."}]'),
        ("budget=5", "budget = 5: wants a table, such as {usd = 1.0}"),
        ("budget.stages=5", "budget.stages = 5: wants a table, such as {NAME = {usd = 1.0}}"),
        ("stage_seconds=5", "wants a table, such as {NAME = 1.0}"),
        ("roles.agent=my-model", 'wants a table, such as {endpoint = "..."}'),
        ("roles.agent.models=3", 'wants a list, such as [{name = "..."}]'),
        ("roles.agent.models=[3]", 'roles.agent.models.0 = 3: wants a table, such as {name = "'),
    ],
)
def test_a_list_or_table_that_is_none_is_shown_as_it_is_written(override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_as(RunConfig, set_(override), where="here")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my-model", ["my-model"]),
        ('["one", "two"]', ["one", "two"]),
        ('[{"name": "one", "weight": 2}, "two"]', ["one", "two"]),
    ],
)
def test_names_are_enough_for_models(text: str, names: list[str]) -> None:
    config = validate_as(RunConfig, set_(f"roles.agent.models={text}"), where="here")
    assert [model.name for model in config.roles["agent"].models] == names
