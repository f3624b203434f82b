"""The terminal view: one trajectory found by the beginning of its id, and no escape sequences."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.publish.conversations import pick
from synth.publish.view import show_trajectory
from synth.render.transcript import (
    BESIDE,
    LONG_FIELD,
    ShownField,
    changes_shown,
    turns_of,
    where_they_differ,
)
from tests.synth.small_dataset import conversation, trajectory, write_dataset

ESCAPES = "\x1b[2J\x1b]0;owned\x07 [red]markup[/red] \u202e:smile:"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    messages = conversation(ESCAPES)
    messages[2]["tool_calls"][0]["function"] = {"name": ESCAPES, "arguments": ESCAPES}
    messages[3]["content"] = ESCAPES
    rows = [
        (trajectory("aa1", messages, variant=ESCAPES), None),
        (trajectory("ab2"), "failed_state"),
    ]
    return write_dataset(tmp_path_factory.mktemp("view") / "data", rows, words=ESCAPES)


def shown(dataset: Dataset, trajectory_id: str) -> str:
    buffer = io.StringIO()
    show_trajectory(dataset, trajectory_id, console=Console(file=buffer, width=120))
    return buffer.getvalue()


def test_what_models_wrote_reaches_the_terminal_as_text(dataset: Dataset) -> None:
    text = shown(dataset, "aa1")
    for character in ("\x1b", "\x07", "\u202e"):
        assert character not in text
    assert "[U+001B][2J[U+001B]]0;owned[U+0007] [red]markup[/red] [U+202E]:smile:" in text


def test_calls_stand_with_their_results_and_the_reasons_at_the_end(dataset: Dataset) -> None:
    text = shown(dataset, "ab")
    assert text.index("rate limited") < text.index("Done, it costs 20 EUR.")
    assert "injected: rate_limit" in text
    assert "rejected: failed_state" in text
    assert text.count("fail") >= 2


def test_evidence_stands_with_what_failed_and_is_never_cut(tmp_path: Path) -> None:
    rows = [(trajectory("good"), None), (trajectory("bad"), "failed_state")]
    dataset = write_dataset(tmp_path / "data", rows)
    narrow = io.StringIO()
    show_trajectory(dataset, "bad", console=Console(file=narrow, width=70))
    assert "code looked at goal" in shown(dataset, "bad")
    assert "code looked at told" not in shown(dataset, "bad")
    assert "looked at" not in shown(dataset, "good")
    assert "\u2026" not in narrow.getvalue()


def test_an_id_must_begin_one_trajectory(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match="2 trajectories begin with 'a': aa1, ab2; give more"):
        shown(dataset, "a")
    with pytest.raises(ConfigError, match=r"no trajectory of .* begins with 'zz'"):
        shown(dataset, "zz")


def test_every_message_is_shown_once_whatever_is_missing() -> None:
    stray = {"role": "tool", "tool_call_id": "nobody", "name": "x", "content": "stray"}
    unanswered = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "f"}]}
    turns = turns_of([stray, unanswered, {"role": "user"}], [], None)
    assert [turn.role for turn in turns] == ["tool", "assistant", "user"]
    assert turns[1].calls[0].result is None


def test_picked_conversations_show_every_reason_before_one_twice(tmp_path: Path) -> None:
    reasons = ["failed_state"] * 5 + ["max_turns", "near_duplicate"]
    rows = [(trajectory(f"t{i}"), reason) for i, reason in enumerate(reasons)]
    dataset = write_dataset(tmp_path / "data", rows)
    picked = pick(dataset, accepted=3, rejected=3, seed=1)
    assert {"t5", "t6"} < set(picked)
    assert len(picked) == 3
    assert picked == pick(dataset, accepted=3, rejected=3, seed=1)


@pytest.mark.parametrize(
    ("before", "after"), [("old", "new"), ("old", ""), ("", "new"), ("aa", "a"), ("a", "aa")]
)
@pytest.mark.parametrize(("head", "tail"), [(0, 0), (500, 0), (0, 500), (500, 500), (30, 1000)])
def test_of_a_long_text_the_place_is_shown_that_changed(
    before: str, after: str, head: int, tail: int
) -> None:
    first, last = ("line of a file " * 100)[:head], ("another line " * 100)[:tail]
    texts = [f"{first}{middle}{last}" for middle in (before, after)]
    shown = where_they_differ(*texts)
    if min(map(len, texts)) <= LONG_FIELD:
        assert shown == tuple(texts)
        return
    for side, text, middle in zip(shown, texts, (before, after), strict=True):
        assert side is not None
        assert len(side) < 2 * BESIDE + 20
        assert middle in side
        assert side.removeprefix("... ").removesuffix(" ...") in text
    assert shown[0] != shown[1]
    assert where_they_differ(None, texts[1]) == (None, texts[1])


def test_a_row_that_is_its_own_id_is_told_once() -> None:
    line = '{"type":"entity","name":"market hall"}'
    gone = {"op": "delete", "entity": "item", "id": line, "before": {"line": line}, "after": None}
    timer = {"op": "delete", "entity": "timer", "id": "T-1", "after": None}
    timer |= {"before": {"timer_id": "T-1", "action": "turn_on"}}
    [one, other] = changes_shown([gone, timer])
    assert one.fields == ()
    assert other.fields == (ShownField("action", "turn_on", None),)
