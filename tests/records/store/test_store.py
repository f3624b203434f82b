"""The store: what is committed is read back, whole and once, whoever wrote it and when."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from records.errors import ConfigError, SynthError
from records.store.dataset import Dataset, ItemStatus
from records.tables.tables import TABLES
from tests.records.rows import commit, row, trajectories


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.create_or_open(tmp_path / "dataset")


def in_new_process(dataset: Dataset) -> Dataset:
    """The dataset without anything that this process remembers of it."""
    copy = dataset.root.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(dataset.root, copy)
    return Dataset.open(copy)


def test_committed_rows_are_read_back_sorted(dataset: Dataset) -> None:
    rows = trajectories("b", "a", messages=[{"role": "user", "content": "h\u00e9"}])
    items = {"a": ItemStatus("kept", None), "c": ItemStatus("dropped", "too_long")}
    assert commit(dataset, trajectories=rows, items=items) == 1
    for reader in (dataset, in_new_process(dataset)):
        assert reader.rows("trajectories") == rows[::-1]
        assert reader.rows("trajectories", ["run_id"]) == [{"run_id": "r"}] * 2
        assert reader.ids("trajectories") == {"a", "b"}
        assert reader.item_statuses("rollouts") == items
        assert reader.has_shard("r", "rollouts", 0)
        assert not reader.has_shard("r", "rollouts", 1)
        assert [commit.number for commit in reader.commits()] == [1]


def test_a_shard_may_have_items_and_no_rows(dataset: Dataset) -> None:
    items = {"a": ItemStatus("failed", "timeout")}
    commit(dataset, trajectories=[], items=items)
    assert dataset.rows("trajectories") == []
    assert dataset.item_statuses("rollouts") == items
    assert dataset.item_statuses("curate") == {}


def test_nothing_is_dropped_without_a_reason(dataset: Dataset) -> None:
    with pytest.raises(SynthError, match="item 'a' is dropped without a reason"):
        commit(dataset, items={"a": ItemStatus("dropped", None)})


def test_threads_commit_side_by_side(dataset: Dataset) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = pool.map(
            lambda shard: commit(dataset, shard, trajectories=trajectories(f"{shard:02d}")),
            range(24),
        )
    assert sorted(numbers) == list(range(1, 25))
    assert in_new_process(dataset).ids("trajectories") == {f"{shard:02d}" for shard in range(24)}


def test_an_owners_key_is_among_the_key_columns_of_its_descriptions() -> None:
    for spec in TABLES.values():
        if spec.owner:
            [key] = TABLES[spec.owner].primary_key
            assert key in spec.primary_key
            assert len(spec.primary_key) > 1


def test_keys_of_several_columns_are_tuples(dataset: Dataset) -> None:
    calls = [row("tool_calls", trajectory_id="a", call_index=index) for index in (10, 9)]
    commit(dataset, tool_calls=calls)
    assert dataset.ids("tool_calls") == {("a", 9), ("a", 10)}
    assert [call["call_index"] for call in dataset.rows("tool_calls")] == [9, 10]


def test_a_shard_is_committed_once(dataset: Dataset) -> None:
    commit(dataset, trajectories=trajectories("a"))
    for writer in (dataset, in_new_process(dataset)):
        with pytest.raises(SynthError, match=r"shard 0 of rollouts .* committed already"):
            commit(writer, trajectories=trajectories("b"))
        assert writer.ids("trajectories") == {"a"}


@pytest.mark.parametrize("ids", [("b", "a"), ("b", "b")], ids=["committed", "twice"])
def test_a_primary_key_is_committed_once(dataset: Dataset, ids: tuple[str, ...]) -> None:
    commit(dataset, trajectories=trajectories("a"))
    before = sorted(dataset.root.rglob("*"))
    for writer in (in_new_process(dataset), dataset):
        with pytest.raises(SynthError, match=rf"1 rows of trajectories .* first '{ids[1]}'"):
            commit(writer, 1, trajectories=trajectories(*ids))
    assert sorted(dataset.root.rglob("*")) == before


def test_a_superseding_row_counts_instead_and_takes_its_descriptions_along(
    dataset: Dataset,
) -> None:
    def calls(one: str, count: int) -> list[dict]:
        return [row("tool_calls", trajectory_id=one, call_index=i) for i in range(count)]

    commit(
        dataset,
        trajectories=trajectories("a", "b"),
        tool_calls=calls("a", 3) + calls("b", 1),
        items={"a": ItemStatus("failed", "infra_error")},
    )
    dataset.ids("tool_calls")  # so that the old keys are known before the new commit
    commit(
        dataset,
        trajectories=trajectories("a", outcome="passed"),
        tool_calls=calls("a", 1),
        items={"a": ItemStatus("kept", None)},
        supersedes=True,
    )
    for reader in (dataset, in_new_process(dataset)):
        assert [one["outcome"] for one in reader.rows("trajectories")] == ["passed", None]
        assert reader.ids("tool_calls") == {("a", 0), ("b", 0)}
        assert len(reader.rows("tool_calls")) == 2
        with reader.connect() as connection:
            query = "SELECT trajectory_id, call_index FROM tool_calls ORDER BY ALL"
            assert connection.execute(query).fetchall() == [("a", 0), ("b", 0)]
            query = "SELECT outcome FROM trajectories ORDER BY trajectory_id"
            assert connection.execute(query).fetchall() == [("passed",), (None,)]
        assert reader.item_statuses("rollouts") == {"a": ItemStatus("kept", None)}
    # what the old attempt had is free again: the retried trajectory is curated anew
    commit(dataset, 9, tool_calls=calls("a", 3)[2:])
    assert dataset.ids("tool_calls") == {("a", 0), ("a", 2), ("b", 0)}


def test_unknown_and_missing_columns_are_named(dataset: Dataset) -> None:
    [bad] = trajectories("a", colour="red")
    del bad["seed"]
    with pytest.raises(SynthError, match=r"'a'.*missing columns \['seed'\].*\['colour'\]"):
        commit(dataset, trajectories=[bad])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("num_turns", "three"),
        ("split", 3),
        ("messages", float("nan")),
        ("messages", {1, 2}),
        ("messages", ["\ud800"]),
        ("executed_by", "mcp"),
    ],
)
def test_a_value_of_the_wrong_type_names_column_and_row(
    dataset: Dataset, column: str, value: object
) -> None:
    rows = [*trajectories("good"), *trajectories("bad", **{column: value})]
    with pytest.raises(SynthError, match=rf"trajectories\.{column} of 'bad' must be"):
        commit(dataset, trajectories=rows)
    assert dataset.commits() == []


def test_a_row_without_its_key_is_refused(dataset: Dataset) -> None:
    with pytest.raises(SynthError, match="no call_index, which is part of the primary key"):
        commit(dataset, tool_calls=[row("tool_calls", trajectory_id="a")])


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden"])
def test_names_that_would_leave_the_folder_are_refused(dataset: Dataset, name: str) -> None:
    with pytest.raises(SynthError, match="cannot name a file"):
        commit(dataset, stage=name)


def test_unknown_tables_and_columns_are_named_when_reading(dataset: Dataset) -> None:
    with pytest.raises(ConfigError, match=r"no table 'trajectory'; tables: .*trajectories"):
        dataset.rows("trajectory")
    with pytest.raises(ConfigError, match=r"tasks has no columns \['colour'\]"):
        dataset.rows("tasks", ["task_id", "colour"])


def test_parts_that_no_commit_names_are_not_read(dataset: Dataset) -> None:
    commit(dataset, trajectories=trajectories("a"))
    [part] = dataset.root.glob("tables/trajectories/*.parquet")
    shutil.copy(part, part.with_name("leftover.parquet"))
    assert len(in_new_process(dataset).rows("trajectories")) == 1


def test_a_part_that_changed_or_went_is_an_error(dataset: Dataset) -> None:
    commit(dataset, trajectories=trajectories("a"))
    [part] = dataset.root.glob("tables/trajectories/*.parquet")
    data = part.read_bytes()
    part.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(SynthError, match="is not what was committed"):
        in_new_process(dataset).rows("trajectories")
    part.unlink()
    with pytest.raises(SynthError, match="is missing though it was committed"):
        in_new_process(dataset).rows("trajectories")


def test_a_missing_or_changed_commit_file_is_an_error(dataset: Dataset) -> None:
    for shard in range(3):
        commit(dataset, shard)
    second = dataset.root / "commits/000002.json"
    text = second.read_text()
    second.unlink()
    with pytest.raises(SynthError, match=r"000002\.json is missing but commit 3 is there"):
        in_new_process(dataset).commits()
    second.write_text(text.replace("rollouts", "\0"))
    with pytest.raises(ConfigError, match=r"000002\.json does not fit this program"):
        in_new_process(dataset).commits()
    second.write_text((dataset.root / "commits/000003.json").read_text())
    with pytest.raises(ConfigError, match="says that it is commit 3"):
        in_new_process(dataset).commits()


def with_column(table: str, name: str, kind: pa.DataType, **defaults: object) -> dict:
    """The tables as a newer program has them: one column more."""
    spec = TABLES[table]
    schema = spec.schema.insert(3, pa.field(name, kind))
    return {table: replace(spec, schema=schema, defaults=defaults)}


def test_older_parts_get_the_default_of_a_newer_column(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(dataset, trajectories=trajectories("old"))
    newer = with_column("trajectories", "mood", pa.utf8(), mood="it's fine")
    monkeypatch.setitem(TABLES, *newer.popitem())
    commit(dataset, 1, trajectories=trajectories("new", mood="good"))
    moods = {one["trajectory_id"]: one["mood"] for one in dataset.rows("trajectories")}
    assert moods == {"old": "it's fine", "new": "good"}
    query = "SELECT trajectory_id, mood FROM trajectories"
    assert dict(dataset.connect().execute(query).fetchall()) == moods


def test_a_dataset_of_a_newer_program_is_refused(dataset: Dataset) -> None:
    newer = with_column("trajectories", "mood", pa.utf8())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setitem(TABLES, *newer.popitem())
        commit(dataset, trajectories=trajectories("a", mood="good"))
    for read in ("rows", "ids"):
        with pytest.raises(ConfigError, match=r"newer than the program: part .* has mood"):
            getattr(in_new_process(dataset), read)("trajectories")
    marker = dataset.root / "dataset.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 2}))
    with pytest.raises(ConfigError, match="is newer than the program: its format is 2"):
        Dataset.create_or_open(dataset.root)


def test_only_a_missing_or_empty_folder_becomes_a_dataset(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"is not empty .* 'thesis.txt'"):
        Dataset.create_or_open(foreign)
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    with pytest.raises(ConfigError, match="cannot make a dataset"):
        Dataset.create_or_open(foreign / "thesis.txt")
    (foreign / "dataset.json").write_text('{"name": "of another program"}')
    for opening in (Dataset.create_or_open, Dataset.open):
        with pytest.raises(ConfigError, match="is not a marker of agentic-synth"):
            opening(foreign)
    (tmp_path / "empty").mkdir()
    Dataset.create_or_open(tmp_path / "empty")
    Dataset.create_or_open(tmp_path / "deeply" / "missing")


def test_readers_make_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no dataset: there is no such folder"):
        Dataset.open(tmp_path / "missing")
    with pytest.raises(ConfigError, match=r"is no dataset: it has no dataset\.json"):
        Dataset.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_anew_is_another_dataset(dataset: Dataset) -> None:
    commit(dataset, trajectories=trajectories("a"))
    shutil.rmtree(dataset.root)
    assert Dataset.create_or_open(dataset.root).ids("trajectories") == set()
