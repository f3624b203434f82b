"""What a person sees of a run that waits."""

import logging

import pytest

from flows.runtime.progress import OVER, StageProgress

URL, OTHER = "http://llm.example/v1", "http://other.example/v1"
WORDS = f"waiting for {URL} since 14:03, next try in 20 s: [red]gone\x1b[31m"
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
            progress.waiting(URL, WORDS)
        waited = capfd.readouterr().err
        progress.waiting(URL, None)
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
        StageProgress().waiting(URL, None)
    assert caplog.records == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("terminal", [False, True])
def test_waits_for_several_endpoints_end_one_by_one(
    terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    progress = StageProgress()
    other = f"waiting for {OTHER} since 14:04"
    with caplog.at_level(logging.INFO, logger="synth"):
        progress.waiting(URL, WORDS)
        progress.waiting(OTHER, other)
        both = capfd.readouterr().err
        progress.waiting(URL, None)
        one = capfd.readouterr().err
        progress.waiting(URL, None)
        progress.waiting(OTHER, None)
    progress.close()
    last = capfd.readouterr().err
    assert SHOWN in both
    assert other in both
    assert OVER not in one
    assert f"waiting for {URL}" not in one
    assert OTHER in one
    assert OTHER not in last
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2 + ["INFO"] * 2
    said = [record.getMessage() for record in caplog.records]
    assert said == [SHOWN, other, f"{URL} answers again; the run still waits for {OTHER}", OVER]
