"""`docs/settings.md` holds every setting, as the models have it now, each with its words."""

import re
from collections import Counter

import pytest

from flows.settings_page import PAGE, Section, page, sections, settings_of
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

pytest.importorskip("torch")  # the trainer's settings are read from it


@pytest.fixture(scope="module")
def found() -> list[Section]:
    return sections()


def test_the_page_is_what_the_models_say() -> None:
    assert PAGE.read_text() == page(), "docs/settings.md is stale; `make settings` writes it"


def test_every_setting_says_what_it_does(found: list[Section]) -> None:
    silent = [one.name for section in found for one in section.settings if not one.words]
    assert not silent, "give each a docstring under the field"


def test_every_setting_of_a_run_stands_once_in_what_is_about_it(found: list[Section]) -> None:
    by_title = {section.title: section.settings for section in found}
    every, judging = by_title["Every run"], by_title["Pipelines and gradings"]
    for kind, parts in (
        (RunConfig, [every, judging, by_title["Pipelines"]]),
        (RephraseConfig, [every, by_title["Rephrasings"]]),
    ):
        names = Counter(one.name for part in parts for one in part)
        assert names == Counter(one.name for one in settings_of(kind))


def test_what_is_part_of_an_id_is_told() -> None:
    told = {one.name: one.in_id for one in settings_of(RunConfig)}
    assert told["seed"] == "yes"
    assert told["num_tasks"] == told["budget.stages.NAME.usd"] == "no"
    assert told["roles.NAME.models.weight"] == "yes"
    assert told["roles.NAME.base_url"] == told["rollouts.attempts"] == "no"
    assert told["tasks.pass_threshold"] == told["tasks.max_turns.base"] == "changed"


def test_types_units_bounds_and_defaults_are_told() -> None:
    told = {one.name: one for one in settings_of(RunConfig)}
    assert told["roles.NAME.timeout_s"][1:3] == ("number, seconds, above 0", "`600.0`")
    assert told["tasks.max_turns.base"].type == "whole number, at least 1, at most 10000"
    assert told["judging.rubric"][1:3] == ("table or none", "none")
    assert told["personas.styles"].default == "10 entries"


def test_every_line_of_a_table_has_as_many_cells() -> None:
    rows = [line for line in page().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
