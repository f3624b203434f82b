"""What a run passed over is counted by reason, over kills, and shown in its curves."""

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.trainer.small_run import config_of, rows
from trainer.training.account import AccountLine, account_of, as_lines
from trainer.training.curves import FILE, MOST_MARKS, PLOTS, RED, marked, pictures, write_curves
from trainer.training.loop import train
from trainer.training.metrics import MetricsLine
from trainer.training.step import AFTER, StepFault, Stepper


def mixed(path: Path) -> Path:
    """60 rows to learn from, and six others."""
    silent = {"messages": [{"role": "user", "content": "Hello?"}]}
    long = {"messages": [{"role": "assistant", "content": "on and " * 200}]}
    kept = [row | {"split": "heldout_task"} for row in rows(3)]
    made = [*rows(), *kept, silent, silent, long]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def test_rows_and_steps_add_up_over_runs_that_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = mixed(tmp_path / "rows.jsonl")
    plan = {"warmup_tokens": 512, "phases": [{"tokens": 10_000, "to": 5e-3}]}
    plain = Stepper._fault

    def two_are_bad(self: Stepper, loss: float, norm: float) -> StepFault | None:
        return plain(self, math.inf if len(self.norms) in (1, 2) else loss, norm)

    first = config_of(data, tmp_path / "run", steps=4, schedule=plan)
    monkeypatch.setattr(Stepper, "_fault", two_are_bad)
    assert train(first).begun == 0  # two steps are taken, two are skipped
    monkeypatch.undo()
    done = train(first.model_copy(update={"steps": 6}))
    assert done.begun == 4
    counts = account_of(done.folder)
    assert counts == [
        AccountLine("rows", 59, "learnt from", "", ""),
        AccountLine("rows", 3, "left out", "held_out", "kept for tests"),
        AccountLine("rows", 2, "left out", "nothing_to_learn", "without a token to be learnt"),
        AccountLine("rows", 1, "left out", "too_long", counts[3].meaning),
        AccountLine("rows", 1, "left out", "validation", "kept for the validation loss"),
        AccountLine("steps", 4, "taken", "", ""),
        AccountLine(
            "steps", 2, "skipped", "no_number", "loss or gradient is no number; at step 2, 3"
        ),
    ]
    assert as_lines(counts) == [
        "rows: 59 learnt from; left out: 3 held_out, 2 nothing_to_learn, 1 too_long, 1 validation",
        "steps: 4 taken; skipped: 2 no_number",
    ]
    page = (done.folder / "curves.html").read_text()
    assert all(f"<td>{one.reason}</td><td>{one.meaning}</td>" in page for one in counts)
    lines = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:  # what was not measured is no zero, which curves would show as a fall
        assert all((line[name] is None) == bool(line["skipped"]) for name in AFTER)


def line_of(step: int, **other: Any) -> MetricsLine:
    """Every picture takes a part of a second: only what is told here has one."""
    return {"step": step, "skipped": None, **other}


def full_line(step: int, **other: Any) -> MetricsLine:
    names = (name for plot in PLOTS for name in plot.names)
    return line_of(step, **dict.fromkeys(names, 1.0 * step) | other)


def texts_of(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)  # as an image it must be XML
    return [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_pictures_stand_alone_and_share_their_steps() -> None:
    skipped = full_line(2, skipped="spike", update_rms=None)
    lines = [full_line(1), skipped, full_line(3, update_rms=None)]
    made = pictures(lines)
    assert [picture.title for picture in made] == [plot.title for plot in PLOTS]
    steps = {"1", "2", "3"}  # also where the last that was measured is not the last step
    for title, svg in made:
        assert any(text.startswith(title) for text in texts_of(svg))
        assert steps <= set(texts_of(svg))
        assert svg.count(f"stroke: {RED}") == 1  # a mark for the skipped step
    assert marked(lines) == "Red: steps that were skipped."
    assert marked(lines[:1]) == ""


def test_validation_lies_beside_the_training_loss() -> None:
    lines = [line_of(n, loss=3.0 - n, validation_loss=3.5 if n == 2 else None) for n in (1, 2)]
    [loss] = pictures(lines)
    assert loss.title == "Loss, nats a learnt token"
    assert f"{loss.title}: 1, validation 3.5" in texts_of(loss.svg)
    assert {"training", "validation"} <= set(texts_of(loss.svg))
    assert pictures(lines) == [loss]  # the same metrics give the same bytes
    without = [line | {"validation_loss": None} for line in lines]
    assert "validation" not in pictures(without)[0].svg


def test_pictures_of_little_or_much_can_be_drawn(tmp_path: Path) -> None:
    assert pictures([]) == []
    [one] = pictures([line_of(1, loss=2.0)])
    assert "<use " in one.svg  # a line of one point would not be seen
    many = [line_of(n, skipped="spike", loss=1e7 * n) for n in range(1, 3 * MOST_MARKS)]
    [loss] = pictures(many)
    assert any("2.99e+09" in text for text in texts_of(loss.svg))
    assert loss.svg.count(f"stroke: {RED}") == MOST_MARKS
    assert f"the first {MOST_MARKS}" in marked(many)
    flat = [line_of(n, loss=None, lr=math.nan, max_logit=5.0) for n in (1, 2)]
    assert [p.title for p in pictures(flat)] == ["Largest attention logit"]
    write_curves(tmp_path, flat, title="<b>", about="&", counts=[])
    assert "<b>" not in (tmp_path / FILE).read_text()


def test_without_matplotlib_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.training.curves.can_draw", lambda: False)
    write_curves(tmp_path, [line_of(1)], title="run", about="", counts=[])
    page = (tmp_path / FILE).read_text()
    assert "the extra `curves` brings it" in page
    assert "<svg" not in page
