"""Labels from the page: written down at once, committed by the next writer, then counted."""

import json
import threading
from pathlib import Path

import pytest

from records.errors import ConfigError, SynthError
from records.store.dataset import Dataset
from records.store.lease import hold
from records.store.waiting import lines_waiting, say_later, waiting_path
from synth.judging.judge_report import judge_report
from synth.judging.labels import (
    commit_waiting_labels,
    import_labels,
    label_later,
    label_rates,
    labels_waiting,
)
from tests.synth.browser.shown import BASE, client_of, form_of, regrade
from tests.synth.small_dataset import trajectory, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = write_dataset(tmp_path / "data", [(trajectory(i), None) for i in ("t1", "t2")])
    regrade(made, ["t1", "t2"])
    return made


def say(dataset: Dataset, label: str, *, who: str = "ann", of: str = "t1", **more: object) -> None:
    words = {"trajectory_id": of, "criterion_id": "truth", "label": label, "labeller": who}
    with dataset.connect() as db:
        label_later(dataset, db, words | {"note": "", "verdict_shown": True} | more)


def test_a_label_of_the_page_waits_is_shown_and_is_committed(dataset: Dataset) -> None:
    client = client_of(dataset)
    at = "/d/data/trajectories/t1"
    data = {"form": form_of(client.get(at).text), "trajectory_id": "t1", "criterion_id": "truth"}
    data |= {"label": "pass", "labeller": "ben", "note": "<b>It was told</b>"}
    sent = client.post(
        "/d/data/labels", data=data, headers={"origin": BASE}, follow_redirects=False
    )
    assert (sent.status_code, sent.headers["location"]) == (303, f"{at}#criterion-truth")
    page = client.get(at).text
    assert "waits for the next run" in page
    assert "&lt;b&gt;It was told" in page
    assert 'name="labeller" value="ben"' in page
    assert dataset.rows("labels") == []

    assert import_labels(dataset, None)[:3] == (1, 0, 0)
    [row] = dataset.rows("labels")
    given = ("trajectory_id", "criterion_id", "label", "labeller", "note", "kind", "split")
    assert [row[name] for name in given] == [
        *("t1", "truth", "pass", "ben", "<b>It was told</b>", "nl", "train"),
    ]
    assert row["verdict_shown"]
    assert labels_waiting(dataset) == []
    page = client.get(at).text
    assert "waits for the next run" not in page
    assert "says <bdi>ben" in page


def test_labels_of_the_page_count_and_say_that_the_verdict_was_in_view(dataset: Dataset) -> None:
    say(dataset, "fail")
    say(dataset, "pass", of="t2")
    import_labels(dataset, None)
    rates = label_rates(dataset.connect(), "grading-2")["nl"]
    assert (rates.num_failures, rates.num_fine) == (1, 1)
    report = judge_report(dataset, "grading-2")
    assert (report.num_labels, report.num_in_view) == (2, 2)
    assert "2 labels, 2 with the verdict in view" in report.words


def test_a_label_can_be_said_while_a_run_holds_the_dataset(dataset: Dataset) -> None:
    with hold(dataset, run_id="run-9", what="a run"):
        say(dataset, "pass")
        done = commit_waiting_labels(dataset)
        say(dataset, "fail")
    assert done.added == 1
    assert [row["label"] for row in dataset.rows("labels")] == ["pass"]
    assert import_labels(dataset, None)[:3] == (0, 1, 0)
    assert [row["label"] for row in dataset.rows("labels")] == ["fail"]


def test_the_last_word_of_a_labeller_counts_and_saying_it_again_changes_nothing(
    dataset: Dataset,
) -> None:
    for label in ("pass", "unsure", "fail"):
        say(dataset, label)
    say(dataset, "pass", who="ben")
    assert import_labels(dataset, None)[:3] == (2, 0, 0)
    before = dataset.rows("labels")
    say(dataset, "fail")
    assert import_labels(dataset, None)[:3] == (0, 0, 1)
    assert dataset.rows("labels") == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"label": "maybe"}, "allowed: pass, fail, unsure"),
        ({"labeller": ""}, "labeller is empty"),
        ({"labeller": "x" * 101}, "at most 100"),
        ({"criterion_id": "nope"}, "no such verdict"),
        ({"trajectory_id": "t9"}, "no such verdict"),
    ],
)
def test_a_wrong_label_is_refused_at_once(
    dataset: Dataset, words: dict[str, str], told: str
) -> None:
    good = {"trajectory_id": "t1", "criterion_id": "truth", "label": "pass", "labeller": "ann"}
    with dataset.connect() as db, pytest.raises(ConfigError, match=told):
        label_later(dataset, db, good | {"note": "", "verdict_shown": True} | words)
    assert labels_waiting(dataset) == []


def test_what_cannot_be_committed_any_more_is_told_and_kept(dataset: Dataset) -> None:
    path = waiting_path(dataset.root, "labels")
    say_later(
        path,
        {
            "trajectory_id": "gone",
            "criterion_id": "x",
            "labeller": "a",
            "label": "pass",
            "note": "n",
            "verdict_shown": True,
        },
    )
    say(dataset, "pass")
    with path.open("a") as file:
        file.write("not json\n")
    done = import_labels(dataset, None)
    assert (done.added, len(done.refused)) == (1, 2)
    kept = [
        json.loads(line)["line"]
        for line in lines_waiting(waiting_path(dataset.root, "labels_refused"))
    ]
    assert "not json" in kept
    assert any('"gone"' in line for line in kept)
    assert import_labels(dataset, None) == (0, 0, 0, 0, [])


def test_no_line_is_written_through_a_link(dataset: Dataset, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    path = waiting_path(dataset.root, "labels")
    path.parent.mkdir()
    path.symlink_to(elsewhere)
    with pytest.raises(SynthError, match=r"labels\.jsonl"):
        say(dataset, "pass")
    assert elsewhere.read_text() == "mine\n"


def test_many_who_say_and_one_who_takes_lose_nothing(dataset: Dataset) -> None:
    """Every label is either committed or still waits, whoever comes first."""

    def talk(who: str) -> None:
        path = waiting_path(dataset.root, "labels")
        for i in range(20):
            say_later(
                path,
                {
                    "trajectory_id": "t1",
                    "criterion_id": "truth",
                    "label": "pass",
                    "labeller": f"{who}{i}",
                    "note": "",
                    "verdict_shown": True,
                },
            )

    threads = [threading.Thread(target=talk, args=(who,)) for who in "abc"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        import_labels(dataset, None)
    import_labels(dataset, None)
    found = {row["labeller"] for row in dataset.rows("labels")}
    assert found == {f"{who}{i}" for who in "abc" for i in range(20)}
