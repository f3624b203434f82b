"""People's labels: out as CSV that no spreadsheet obeys, back in once and for all."""

import csv
from pathlib import Path

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.judging.judge_report import judge_report
from synth.judging.labels import (
    COLUMNS,
    Shared,
    export_labels,
    import_labels,
    label_rates,
    shared_labels,
)
from synth.judging.transcript import ANOTHER
from tests.records.rows import row
from tests.synth.small_dataset import conversation, trajectory, write_dataset

EVIL = '=HYPERLINK("http://x.example","win")'


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    ones = [trajectory(f"t{i}", conversation(EVIL)) for i in range(4)]
    made = write_dataset(tmp_path / "d", [(one, None) for one in ones], words=EVIL)
    nl = [
        row(
            "verdicts",
            grading_id="grading-1",
            trajectory_id=one["trajectory_id"],
            criterion_id="tone",
            kind="nl",
            checked_by="judge",
            passed=i != 3,
            score=1.0,
            split="train",
        )
        for i, one in enumerate(ones)
    ]
    made.commit(run_id="run-1", stage="more", shard=0, tables={"verdicts": nl})
    return made


def filled(path: Path, *labels: tuple[str, str]) -> list[dict[str, str]]:
    """Write label and labeller into the lines in order; the lines."""
    with path.open(newline="") as handle:
        lines = list(csv.DictReader(handle))
    for line, (label, labeller) in zip(lines, labels, strict=False):
        line |= {"label": label, "labeller": labeller}
    with path.open("w", newline="") as handle:
        writer: csv.DictWriter[str] = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(lines)
    return lines


def test_no_cell_begins_like_a_formula(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    assert export_labels(dataset, out, count=3) == 3
    with out.open(newline="") as handle:
        cells = [cell for line in csv.reader(handle) for cell in line]
    assert any(EVIL in cell for cell in cells)
    assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@\t\r")]
    with pytest.raises(ConfigError, match="exists already"):
        export_labels(dataset, out)
    with pytest.raises(ConfigError, match="kind 'policy'"):
        export_labels(dataset, tmp_path / "m.csv", kind="policy")


def test_labels_come_back_once(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    export_labels(dataset, out, count=4)
    filled(out, ("pass", "ann"), ("FAIL", "ann"), ("unsure", "=ann"), ("", ""))
    first = import_labels(dataset, out)
    assert (first.added, first.unlabelled, first.refused) == (3, 1, [])
    before = dataset.rows("labels")
    again = import_labels(dataset, out)
    assert (again.added, again.changed, again.same) == (0, 0, 3)
    assert dataset.rows("labels") == before
    assert {r["label"] for r in before} == {"pass", "fail", "unsure"}
    assert export_labels(dataset, tmp_path / "rest.csv") == 1  # what has no label yet

    filled(out, ("fail", "ann"))
    assert import_labels(dataset, out)[:3] == (0, 1, 2)
    assert len(dataset.rows("labels")) == 3


def test_bad_lines_are_told_and_the_others_kept(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    export_labels(dataset, out, count=4)
    lines = filled(out, ("maybe", "ann"), ("pass", ""), ("pass", "ann"), ("pass", "ann"))
    text = out.read_text().replace(lines[3]["trajectory_id"] + ",", "nobody,")
    out.write_text(text)
    done = import_labels(dataset, out)
    assert done.added == 1
    assert len(done.refused) == 3
    told = "\n".join(done.refused)
    assert "(row 2): label = 'maybe'; allowed: pass, fail, unsure" in told
    assert "(row 3): labeller is empty" in told
    assert "(row 5): trajectory_id = 'nobody'" in told


def test_a_file_without_the_columns_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("trajectory_id,label\nt0,pass\n")
    with pytest.raises(ConfigError, match="lacks criterion_id, labeller"):
        import_labels(dataset, path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        import_labels(dataset, path)


def test_rates_by_labels_leave_out_the_unsure(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    export_labels(dataset, out, count=4)
    filled(out, ("pass", "a"), ("pass", "a"), ("fail", "a"), ("unsure", "a"))
    import_labels(dataset, out)
    rates = label_rates(dataset.connect(), "grading-1")
    assert rates["nl"].num_fine == 2
    assert rates["nl"].num_failures == 1
    assert not rates["nl"].is_calibrated


def test_a_standing_criterion_is_labelled_by_its_words(dataset: Dataset, tmp_path: Path) -> None:
    rude = row(
        "verdicts",
        grading_id="grading-1",
        trajectory_id="t0",
        criterion_id="manners",
        kind="nl",
        checked_by="judge",
        passed=True,
        score=1.0,
        split="train",
    )
    dataset.commit(run_id="run-1", stage="more", shard=1, tables={"verdicts": [rude]})
    out = tmp_path / "l.csv"
    export_labels(dataset, out, count=9)
    words = {line["criterion_id"]: line["criterion"] for line in filled(out)}
    assert words["manners"].startswith("The assistant is civil")


def test_a_criterion_with_many_labellers_counts_once_by_their_majority(
    dataset: Dataset, tmp_path: Path
) -> None:
    out = tmp_path / "l.csv"
    export_labels(dataset, out, count=4)
    by_person = {
        "a": ("pass", "pass", "fail", "unsure"),
        "b": ("pass", "fail", "fail", "pass"),
        "c": ("fail", "unsure", "fail", "unsure"),
    }
    for person, labels in by_person.items():
        filled(out, *((label, person) for label in labels))
        import_labels(dataset, out)
    assert len(dataset.rows("labels")) == 12
    rates = label_rates(dataset.connect(), "grading-1")
    # passed by most, a tie, failed by all, passed by the only one who is sure
    assert (rates["nl"].num_fine, rates["nl"].num_failures) == (2, 1)
    assert shared_labels(dataset.connect()) == {"nl": Shared(num=3, agreed=1)}
    report = judge_report(dataset, "grading-1")
    assert (report.num_labels, report.calibrated) == (3, False)
    assert "(3 labels, labellers agreed on 1 of 3)" in report.words


def test_an_episode_of_several_conversations_is_read_as_a_whole(tmp_path: Path) -> None:
    said = [[{"role": "system", "content": "S"}, {"role": "user", "content": t}] for t in "12"]
    first = trajectory("t0", said[0]) | {"episode_id": "t0", "session": 0}
    later = first | {"trajectory_id": "t1", "messages": said[1], "session": 1}
    made = write_dataset(tmp_path / "d", [(first, None), (later, None)])
    tone = {"criterion_id": "tone", "kind": "nl", "checked_by": "judge", "passed": True}
    verdict = row("verdicts", grading_id="grading-1", trajectory_id="t0", split="train", **tone)
    made.commit(run_id="run-1", stage="more", shard=0, tables={"verdicts": [verdict]})
    assert export_labels(made, tmp_path / "l.csv") == 1
    [line] = filled(tmp_path / "l.csv")
    assert line["conversation"] == f"USER: 1\n{ANOTHER}\nUSER: 2"
