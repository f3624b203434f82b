"""What a person sees of a run that waits."""

import logging

import pytest

from flows.runtime.progress import StageProgress

WORDS = "waiting for http://llm.example/v1 since 14:03, next try in 20 s: [red]gone\x1b[31m"
SHOWN = WORDS.replace("\x1b", "[U+001B]")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_wait_is_shown_as_it_is_said_and_logged_at_its_ends(
    terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    progress = StageProgress()
    progress("rollouts", 3, 10)
    with caplog.at_level(logging.INFO, logger="synth"):
        for _ in range(3):
            progress.waiting(WORDS)
        waited = capfd.readouterr().err
        progress.waiting(None)
        progress("rollouts", 7, 10)
    progress.close()
    assert SHOWN in waited
    assert terminal or waited.count(SHOWN) == 1  # not at every call
    after = capfd.readouterr().err
    assert "waiting for" not in after
    assert "rollouts" in after
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert caplog.records[0].getMessage() == SHOWN


def test_nothing_is_said_of_a_wait_that_was_none(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="synth"):
        StageProgress().waiting(None)
    assert caplog.records == []
    assert capfd.readouterr().err == ""
