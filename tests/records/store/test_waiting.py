"""Lines that wait for the next writer: none is lost, none comes twice."""

from pathlib import Path

import pytest

from records.errors import SynthError
from records.store.waiting import lines_waiting, say_later, taken, waiting_path


def test_what_was_said_is_taken_once_in_order(tmp_path: Path) -> None:
    path = waiting_path(tmp_path, "labels")
    with taken(path) as lines:
        assert lines == []
    for number in range(3):
        say_later(path, {"n": number, "text": "two\nlines \u2028 and \ud800"})
    assert len(lines_waiting(path)) == 3
    with taken(path) as lines:
        assert [line[:7] for line in lines] == ['{"n": 0', '{"n": 1', '{"n": 2']
    assert lines_waiting(path) == []
    say_later(path, {"n": 3})
    assert lines_waiting(path) == ['{"n": 3}']


def test_a_taker_that_fails_leaves_everything(tmp_path: Path) -> None:
    path = waiting_path(tmp_path, "labels")
    say_later(path, {"n": 1})
    with pytest.raises(ZeroDivisionError), taken(path):
        raise ZeroDivisionError
    assert lines_waiting(path) == ['{"n": 1}']


def test_a_full_file_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("records.store.waiting.MOST_BYTES", 20)
    path = waiting_path(tmp_path, "labels")
    say_later(path, {"n": 1})
    with pytest.raises(SynthError, match="takes no more"):
        say_later(path, {"text": "x" * 20})
    assert lines_waiting(path) == ['{"n": 1}']
