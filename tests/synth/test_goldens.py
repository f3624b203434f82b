"""A golden fails on any change, says the rule of versions and shows what changed."""

from pathlib import Path

import pytest

from records.digest import canonical_json
from tests.synth.golden import LONG, VARIABLE, assert_golden, readable

MADE = {"rows": [{"id": "a", "score": 1.0, "text": "one\ntwo"}, {"id": "b", "score": 1}]}


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "golden/stage.yaml"
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, "1")
        assert_golden(path, 3, MADE)
    monkeypatch.delenv(VARIABLE, raising=False)
    return path


def test_what_was_written_is_kept_to(golden: Path) -> None:
    assert_golden(golden, 3, MADE)


def test_a_change_under_the_same_version_asks_for_a_new_one_and_is_shown(golden: Path) -> None:
    changed = {"rows": [{"id": "a", "score": 1.0, "text": "one\nthree"}, MADE["rows"][1]]}
    with pytest.raises(pytest.fail.Exception, match="raise its STAGE_VERSION") as failed:
        assert_golden(golden, 3, changed)
    shown = str(failed.value).splitlines()
    assert {line.replace(" ", "") for line in shown if line[:1] in "+-"} >= {"-two", "+three"}


def test_a_new_version_is_written_anew(golden: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=rf"version 4 now.*{VARIABLE}"):
        assert_golden(golden, 4, MADE)


@pytest.mark.parametrize("other", [1.5, "1", True, None, [], {}, "x" * LONG, "x" * LONG + "y"])
def test_unequal_values_have_unequal_texts(other: object) -> None:
    values = (1, 1.0, "1.0", "null", "true", "[]", "{}", "x\n" * LONG, ["x" * LONG] * 2)
    for value in values:
        assert canonical_json(value) != canonical_json(other)
        assert readable(1, value) != readable(1, other)
