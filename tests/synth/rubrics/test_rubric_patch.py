"""Other rubrics for stored tasks."""

from pathlib import Path

import pytest

from records.errors import ConfigError
from synth.judging.grading import grading_id_of
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.patch import RubricPatch, load_rubric

TASK = {
    "task_id": "k",
    "variant": "normal",
    "rubric": {
        "pass_threshold": 0.7,
        "criteria": [
            {"id": "goal", "kind": "state", "words": "w", "weight": 3, "mandatory": True},
            {"id": "manner", "kind": "nl", "words": "w", "weight": 1, "mandatory": False},
        ],
    },
}
TEXT = """
pass_threshold: 0.9
drop: [goal, never_1]
change:
  - {id: manner, weight: 2, mandatory: true}
  - {id: absent, weight: 2}
add:
  - {id: brief, words: The assistant is brief., variants: [normal]}
  - {id: asks, words: The assistant asks., variants: [missing_parameter]}
"""


def test_criteria_are_dropped_changed_and_added(tmp_path: Path) -> None:
    path = tmp_path / "rubric.yaml"
    path.write_text(TEXT)
    task = load_rubric(path).of(TASK)
    assert task["rubric"]["pass_threshold"] == 0.9
    found = {c["id"]: (c["kind"], c["weight"], c["mandatory"]) for c in task["rubric"]["criteria"]}
    assert found == {"manner": ("nl", 2.0, True), "brief": ("nl", 1.0, False)}
    assert [c["id"] for c in TASK["rubric"]["criteria"]] == ["goal", "manner"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("add: [{id: brief}]", r"add\[brief\].words: Field required"),
        ("pass_threshold: 2", "pass_threshold: .*, got 2"),
        ("weights: 1", "weights"),
        ("[", "line 2, column 1"),
    ],
)
def test_a_wrong_file_is_refused_with_the_field(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "rubric.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_rubric(path)


def test_what_nobody_can_check_is_refused() -> None:
    patch = RubricPatch.model_validate({"add": [{"id": "x", "kind": "call", "words": "w"}]})
    with pytest.raises(ConfigError, match="criterion 'x'"):
        patch.check(BUILT_IN)
    with pytest.raises(ConfigError, match="without any criterion"):
        RubricPatch(drop=("goal", "manner")).of(TASK)


def test_another_rubric_is_another_grading() -> None:
    one, two = RubricPatch(drop=("a",)), RubricPatch(drop=("b",))
    ids = {grading_id_of(RoleConfig(), BUILT_IN, patch) for patch in (None, one, two)}
    assert len(ids) == 3


def test_a_criterion_that_no_rubric_has_is_named_with_those_there_are() -> None:
    patch = RubricPatch.model_validate({"change": [{"id": "gaol", "weight": 2}]})
    with pytest.raises(ConfigError, match=r"names gaol, which no .*; its criteria: goal, manner"):
        patch.check_ids({"goal", "manner"})
    patch.check_ids({"goal", "gaol"})
