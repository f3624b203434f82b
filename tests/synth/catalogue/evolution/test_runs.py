"""Whole runs: the same rows after a kill, whatever the count; quotas fill the empty cells first."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.catalogue.evolution.quotas import CellCount, next_cells
from synth.catalogue.evolution.rounds import read_rounds, rounds_of, rounds_path
from synth.pipeline.config_files import recorded_config
from tests.synth.catalogue.evolution.boats import generator, plain_tools
from tests.synth.catalogue.evolution.work import config_for, content_of, rows_of, run_evolution

SOME = ("clinic_desk", "web_shop", "parcel_depot")


WHOLE: dict[str, Any] = {"count": 28, "batch_size": 8, "domains": SOME}
"""Two rounds: three batches, and two more for what was not kept of them."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with generator(plain_tools) as found:
        yield found


@pytest.fixture(scope="module")
def whole(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run of `WHOLE`."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    run_evolution(folder, config_for(url, **WHOLE))
    return folder


@pytest.mark.slow
def test_a_batch_is_the_same_whatever_the_count(url: str, whole: Path, tmp_path: Path) -> None:
    run_evolution(tmp_path / "few", config_for(url, **WHOLE | {"count": 5}))
    run_evolution(tmp_path / "few", config_for(url, **WHOLE, shard_size=3))
    assert content_of(tmp_path / "few") == content_of(whole)
    assert len(rows_of(whole, "proposals")) > 28


@pytest.mark.slow
def test_running_again_asks_for_nothing(tmp_path: Path) -> None:
    asked: list[Any] = []

    def answer(request: dict[str, Any]) -> Any:
        asked.append(request)
        return plain_tools(request)

    with generator(answer) as url:
        run_evolution(tmp_path / "data", config_for(url, count=8))
        before, first = content_of(tmp_path / "data"), len(asked)
        assert first > 0
        assert run_evolution(tmp_path / "data", config_for(url, count=8)) == []
        assert content_of(tmp_path / "data") == before
    assert len(asked) == first


@pytest.mark.slow
def test_results_do_not_depend_on_processes_or_tasks_in_flight(
    url: str, whole: Path, tmp_path: Path
) -> None:
    two = config_for(url, **WHOLE, workers=2, shard_size=3, concurrency=2)
    run_evolution(tmp_path / "two", two)
    assert content_of(tmp_path / "two") == content_of(whole)


def batches_of(folder: Path) -> list[str]:
    """Stages of the commits that hold proposals; a commit has its name once it counts."""
    paths = (folder / "commits").glob("[0-9]*.json")
    commits = (json.loads(path.read_text()) for path in paths)
    return [c["stage"] for c in commits if any(p["table"] == "proposals" for p in c["parts"])]


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_rows(url: str, whole: Path, tmp_path: Path) -> None:
    """Killed with -9 in the middle of a round; its workers end with it."""
    killed = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-m", __name__, url, str(killed)])
    while not batches_of(killed):
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    done = len(rows_of(killed, "proposals"))
    run_evolution(killed, config_for(url, **WHOLE))
    assert content_of(killed) == content_of(whole)
    assert 0 < done < len(rows_of(killed, "proposals"))


@pytest.mark.slow
def test_lineage_leads_back_to_a_tool_that_was_there_before(tmp_path: Path) -> None:
    with generator(plain_tools) as url:
        run_evolution(tmp_path / "data", config_for(url, count=18))
    tools = {row["tool_id"]: row for row in rows_of(tmp_path / "data", "tools")}
    proposals = {p["tool_id"]: p for p in rows_of(tmp_path / "data", "proposals") if p["tool_id"]}
    operators = Counter(row["evolve_op"] for row in tools.values())
    assert operators.keys() > {"derive"}
    for row in tools.values():
        if row["parent_id"] is None:
            assert (row["evolve_op"], row["generation"]) == ("derive", 0)
            continue
        parent = tools[row["parent_id"]]
        assert row["generation"] > parent["generation"]
        assert proposals[row["tool_id"]]["batch"] > proposals[parent["tool_id"]]["batch"]


@pytest.mark.slow
def test_a_dataset_says_how_an_evolution_is_resumed(tmp_path: Path) -> None:
    with generator(plain_tools) as url:
        config = config_for(url, count=3)
        run_evolution(tmp_path / "data", config)
    with pytest.raises(ConfigError, match="synth tools evolve"):
        recorded_config(Dataset.open(tmp_path / "data"), config.run_id)


QUOTAS = {"idea_in_domain": 1, "idea_domains": 1, "idea_share": 0.0, "novelty": 0.3}


@pytest.mark.slow
def test_ideas_are_written_once_and_a_run_ends_where_little_is_new(tmp_path: Path) -> None:
    """Rows are the same when the process is killed in the middle of a round."""
    with generator(plain_tools) as url:
        config = config_for(url, count=60, batch_size=8, domains=SOME, quotas=QUOTAS)
        run_evolution(tmp_path / "whole", config)
        run_evolution(tmp_path / "killed", config.model_copy(update={"count": 1}))
        path = rounds_path(Dataset.open(tmp_path / "killed"), config.run_id)
        planned = read_rounds(rounds_path(Dataset.open(tmp_path / "whole"), config.run_id))
        path.write_text(json.dumps(planned[:1]))  # as if it had been killed after its first batch
        run_evolution(tmp_path / "killed", config)
    assert content_of(tmp_path / "killed") == content_of(tmp_path / "whole")
    proposals = rows_of(tmp_path / "whole", "proposals")
    assert "idea_repeated" in {row["drop_reason"] for row in proposals}
    figures = rounds_of(Dataset.open(tmp_path / "whole"), config)
    assert sum(one.kept for one in figures) < config.count
    assert [one.novelty >= 0.3 for one in figures] == [True] * (len(figures) - 1) + [False]


def cells(*counts: int) -> list[CellCount]:
    return [CellCount("abc"[i % 3], f"d{i}", n) for i, n in enumerate(counts)]


def test_empty_cells_are_filled_before_others_get_more() -> None:
    chosen = next_cells(cells(20, 0, 20, 0, 20, 20), missing=20, per_batch=10, seed=1)
    assert set(chosen) == {"d1", "d3"}


def test_among_empty_cells_the_category_with_the_fewest_tools_comes_first() -> None:
    counts = [*cells(0, 0, 0), CellCount("a", "d3", 30), CellCount("b", "d4", 5)]
    assert next_cells(counts, missing=25, per_batch=10, seed=1) == ["d2", "d1", "d0"]


def test_categories_take_turns_within_a_round() -> None:
    chosen = next_cells(cells(*[0] * 30), missing=60, per_batch=10, seed=3)
    by_category = Counter("abc"[int(name[1:]) % 3] for name in chosen)
    assert set(by_category.values()) == {2}


def test_a_round_gives_a_domain_one_batch_and_stops_in_sight_of_the_count() -> None:
    assert len(next_cells(cells(5, 5, 5), missing=11, per_batch=10, seed=0)) == 2
    assert len(next_cells(cells(5, 5, 5), missing=500, per_batch=10, seed=0)) == 3


@pytest.mark.slow
def test_quotas_steer_a_run_to_the_empty_cells(tmp_path: Path) -> None:
    """One domain has tools already; a second run gives the others theirs first."""
    with generator(plain_tools) as url:
        run_evolution(tmp_path / "data", config_for(url, count=8, domains=SOME[:1]))
        run_evolution(tmp_path / "data", config_for(url, count=20, domains=SOME))
    tools = [row for row in rows_of(tmp_path / "data", "tools") if row["evolve_op"] == "derive"]
    names = {row["domain_id"]: row["name"] for row in rows_of(tmp_path / "data", "domains")}
    counts = Counter(names[row["domain_id"]] for row in tools)
    assert len(counts) == 2
    assert counts[SOME[0]] < 14


if __name__ == "__main__":
    run_evolution(Path(sys.argv[2]), config_for(sys.argv[1], **WHOLE))
