"""Lists and facets: what they count is what SQL counts, also while a dataset is being written."""

from pathlib import Path
from typing import get_args

import pytest

from records.store.dataset import Dataset
from records.tables.splits import SPLITS
from synth.browser.facets import FACETS, ORDERS, TrajectoryFilter, page_of, value_in_words
from synth.browser.index import NONE, TrajectoryIndex
from synth.episode.endings import Reason
from synth.render.yields import YieldCounts, yields
from synth.tasks.goals.goals import Variant
from tests.records.rows import row
from tests.synth.browser.shown import client_of, regrade
from tests.synth.publish.judged import curate, decision, verdict
from tests.synth.small_dataset import trajectory, write_dataset


def write(folder: Path) -> Dataset:
    variants = ["normal", "normal", "no_tool", "missing_tool", None]
    reasons = [None, "failed_state", "max_turns", "failed_state", None]
    rows = [
        (trajectory(f"t{i}", variant=variant, split="train" if i else "heldout_tool"), reason)
        for i, (variant, reason) in enumerate(zip(variants, reasons, strict=True))
    ]
    return write_dataset(folder / "data", rows)


def shown(index: TrajectoryIndex) -> list[tuple[object, ...]]:
    index.refresh()
    return [tuple(row.values()) for row in index.rows("SELECT * FROM shown ORDER BY ALL")]


def ids(index: TrajectoryIndex, **chosen: tuple[str, ...]) -> set[str]:
    found = page_of(index, TrajectoryFilter(chosen), order="trajectory_id", page=0)
    assert found.total == len(found.rows)
    return {row["trajectory_id"] for row in found.rows}


def test_a_filter_finds_what_sql_finds(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    index = TrajectoryIndex(dataset)
    index.refresh()
    everything = page_of(index, TrajectoryFilter(), order="score", page=0)
    assert everything.total == 5
    with dataset.connect() as db:
        for facet, values in everything.facets.items():
            assert sum(one.n for one in values) == 5, facet
        for variant in ("normal", "no_tool", "missing_tool"):
            query = "SELECT trajectory_id FROM trajectories WHERE variant = $1"
            wanted = {i for (i,) in db.execute(query, [variant]).fetchall()}
            assert ids(index, variant=(variant,)) == wanted
    assert ids(index, variant=(NONE,)) == {"t4"}
    assert ids(index, decision=("rejected",), variant=("normal", "no_tool")) == {"t1", "t2"}
    assert ids(index, attributed_to=("nobody such",)) == set()


def test_values_of_a_facet_are_counted_as_if_none_were_chosen(tmp_path: Path) -> None:
    index = TrajectoryIndex(write(tmp_path))
    index.refresh()
    chosen = TrajectoryFilter({"decision": ("rejected",), "variant": ("no_tool",)})
    facets = page_of(index, chosen, order="trajectory_id", page=0).facets
    assert {one.value: one.n for one in facets["decision"]} == {"rejected": 1}
    assert {one.value: one.n for one in facets["variant"]} == {
        "missing_tool": 1,
        "no_tool": 1,
        "normal": 1,
    }
    assert [one.value for one in facets["variant"] if one.chosen] == ["no_tool"]


def test_what_is_committed_meanwhile_is_read_as_if_all_were_read_anew(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    index, counted = TrajectoryIndex(dataset), YieldCounts(dataset)
    index.refresh()
    counted.rows()
    more = trajectory("u1", variant="no_tool")
    dataset.commit(run_id="run-1", stage="rollouts", shard=1, tables={"trajectories": [more]})
    assert ids_of(index) == {"t0", "t1", "t2", "t3", "t4", "u1"}
    regrade(dataset, ["t0", "u1"])
    assert shown(index) == shown(TrajectoryIndex(dataset))
    assert ids(index, failed_criterion=("truth",)) == {"t0", "u1"}
    again = trajectory("u1", variant="missing_tool")
    dataset.commit(
        run_id="run-1",
        stage="rollouts",
        shard=1,
        tables={"trajectories": [again]},
        supersedes=True,
    )
    assert shown(index) == shown(TrajectoryIndex(dataset))
    assert ids(index, variant=("no_tool",)) == {"t2"}
    assert counted.rows() == yields(dataset)


def test_what_replaces_no_listed_row_is_no_reason_to_read_all_anew(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    index = TrajectoryIndex(dataset)
    index.refresh()
    index.rows("UPDATE shown SET model = 'as it was read'")
    label = row("labels", trajectory_id="t1", criterion_id="goal", labeller="ann", label="pass")
    dataset.commit(run_id="l", stage="l", shard=0, tables={"labels": [label]}, supersedes=True)
    assert index.refresh() == len(dataset.commits())
    assert ids(index, model=("as it was read",)) == {"t0", "t1", "t2", "t3", "t4"}


def ids_of(index: TrajectoryIndex) -> set[str]:
    index.refresh()
    return ids(index)


def test_few_parts_tell_of_a_trajectory_and_they_tell_all(tmp_path: Path) -> None:
    dataset = write(tmp_path)
    regrade(dataset, ["t1"])
    index = TrajectoryIndex(dataset)
    index.refresh()
    for table in ("tool_calls", "verdicts", "trajectories", "curation"):
        query = f"SELECT * FROM {table} WHERE trajectory_id = 't1' ORDER BY ALL"
        with dataset.connect() as whole, index.views_of("t1") as few:
            assert few.execute(query).fetchall() == whole.execute(query).fetchall()


@pytest.mark.parametrize("order", ORDERS)
def test_pages_of_a_list_hold_each_row_once(tmp_path: Path, order: str) -> None:
    rows = [(trajectory(f"t{i:03}", num_messages=i % 7), None) for i in range(120)]
    index = TrajectoryIndex(write_dataset(tmp_path / "data", rows))
    index.refresh()
    pages = [page_of(index, TrajectoryFilter(), order=order, page=page) for page in range(4)]
    found = [row["trajectory_id"] for page in pages for row in page.rows]
    assert [len(page.rows) for page in pages] == [50, 50, 20, 0]
    assert sorted(found) == [one["trajectory_id"] for one, _ in rows]


def test_a_query_filters_and_a_wrong_one_says_so(tmp_path: Path) -> None:
    client = client_of(write(tmp_path))
    at = "/d/data/trajectories"
    query = "select trajectory_id from trajectories where variant = 'no_tool'"
    page = client.get(at, params={"sql": query}).text
    assert "1 trajectory" in page
    assert "/d/data/trajectories/t2" in page
    page = client.get(at, params={"sql": "select 1 as one"}).text
    assert "a filter needs a column trajectory_id" in page
    assert "No trajectory passes" in page
    assert "only one reading statement" in client.get(at, params={"sql": "drop table x"}).text
    assert client.get(at, params={"order": "evil"}).status_code == 400
    assert client.get(at, params={"page": "-1"}).status_code == 400


def test_every_value_that_a_run_can_write_has_words(tmp_path: Path) -> None:
    known = {"variant": get_args(Variant), "split": SPLITS, "termination_reason": get_args(Reason)}
    for facet, values in known.items():
        assert all(value_in_words(facet, value) for value in values), facet
    assert value_in_words("variant", "of somebody's own") == ""
    page = client_of(write(tmp_path)).get("/d/data/trajectories").text
    words = value_in_words("variant", "no_tool")
    assert f'title="{words}"' in page
    assert f'<li class="meaning soft">{words}</li>' in page


def test_a_list_tells_what_failed_in_each_row_by_one_query(tmp_path: Path) -> None:
    rows = [(trajectory(f"t{n}"), "failed_state") for n in range(4)]
    dataset = write_dataset(tmp_path / "data", rows)
    said = "Expected the user to be told {}; told 0; not told: {}."
    verdicts = [
        verdict(f"t{n}", "told_1", "code", False, kind="communicate", evidence=said.format(n, n))
        for n in range(3)
    ]
    verdicts.append(verdict("t0", "told_1", "judge", False, kind="communicate"))
    more = {"failed_criterion": "told_1"}
    decisions = [decision(f"t{n}", "failed_communicate", **more) for n in range(3)]
    curate(dataset, [*decisions, decision("t3", "max_turns")], verdicts)
    page = client_of(dataset).get("/d/data/trajectories").text
    assert [f"told_1: {n} was not told" in page for n in range(4)] == [True, True, True, False]
    assert "The conversation took more turns than are allowed." in page
    assert "The user was not told something" not in page


def test_every_facet_has_a_link_that_chooses_it_and_one_that_takes_it_away(tmp_path: Path) -> None:
    client = client_of(write(tmp_path))
    page = client.get("/d/data/trajectories").text
    assert 'href="/d/data/trajectories?decision=rejected"' in page
    page = client.get("/d/data/trajectories", params={"decision": "rejected"}).text
    assert 'class="chip" href="/d/data/trajectories"' in page
    assert set(FACETS) >= {"domain", "variant", "complexity", "outcome", "drop_reason", "run_id"}
