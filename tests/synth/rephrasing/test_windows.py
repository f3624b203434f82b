"""Windows: a large plan in parts, with the items and rows of the plan as a whole."""

import gc
import json
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset, ItemStatus
from synth.engine.plans import StageReport
from synth.engine.stages import WINDOW_SHARDS
from synth.render.yields import yields
from synth.rephrasing import repeats, stage
from synth.rephrasing.repeats import TextCounts
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from tests.flows.pipeline_work import content_of
from tests.flows.rephrase_work import LENIENT, run_rephrase

TEXT = "The pump moves water to the tank. It stops when the tank is full. Then the lamp is lit."

BAD = '{"text": null}'


def corpus(path: Path, number: int) -> Path:
    """Lines: different texts, with every seventh the same, and a bad one in the middle."""
    names = [f"{path.stem}{0 if n % 7 == 3 else n + 1}" for n in range(number)]
    texts = [f"{TEXT} Pump {name}." for name in names]
    rows = [json.dumps({"text": text}) for text in texts]
    path.write_text("\n".join([*rows[: number // 2], BAD, *rows[number // 2 :]]) + "\n")
    return path


def config_of(*paths: Path, rewrites: int = 1, most: int | None = None) -> RephraseConfig:
    sources = [SourceConfig(path=str(p), language="en", max_documents=most) for p in paths]
    return RephraseConfig(
        sources=tuple(sources), rewrites=rewrites, fidelity=LENIENT, shard_size=3, max_failed=1.0
    )


def planned(config: RephraseConfig) -> dict[str, int | None]:
    """Item -> window."""
    run = SimpleNamespace(config=config)
    windows = RephraseStage(run).windows()  # type: ignore[arg-type]
    return {item.item_id: window.window for window in windows for item in window.plan()}


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "WINDOW_ROWS", 5)


@pytest.mark.usefixtures("small_windows")
def test_other_counts_add_items_to_windows_and_move_none(tmp_path: Path) -> None:
    paths = [corpus(tmp_path / "a.jsonl", 40), corpus(tmp_path / "b.jsonl", 23)]
    few = planned(config_of(*paths, most=8))
    more = planned(config_of(*paths, rewrites=3, most=20))
    most = planned(config_of(*paths, rewrites=3))
    assert few.items() < more.items() < most.items()
    assert len(set(most.values())) == 9 + 5
    sizes = Counter(most.values())
    assert max(sizes.values()) <= 5 * 3


def test_windows_change_no_row_and_account_for_every_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(corpus(tmp_path / "a.jsonl", 17), corpus(tmp_path / "b.jsonl", 6))
    whole = run_rephrase(tmp_path / "whole", config)
    monkeypatch.setattr(stage, "WINDOW_ROWS", 4)
    first = config.model_copy(
        update={"sources": tuple(s.model_copy(update={"max_documents": 6}) for s in config.sources)}
    )
    run_rephrase(tmp_path / "parts", first)
    parts = run_rephrase(tmp_path / "parts", config)
    made, wanted = content_of(tmp_path / "parts"), content_of(tmp_path / "whole")
    decided = "rephrasing_decisions"
    assert made.pop(decided) != wanted.pop(decided)  # it was decided once more
    assert made == wanted
    dataset = Dataset.open(tmp_path / "parts")
    shards = {commit.shard // WINDOW_SHARDS for commit in dataset.commits()}
    assert shards == {0, 2, 4, 6, 8, 1, 3}
    report, in_one = parts[0], whole[0]
    assert report.requested == 17 + 6 + 2 == in_one.requested
    assert report.reused == 6 + 6 + 1
    assert (report.kept, report.dropped, report.reasons, report.pending) == (
        *(in_one.kept, in_one.dropped, in_one.reasons, 0),
    )
    assert report.reasons["null_text"] == 2
    assert report.examples["null_text"].startswith(("a.jsonl@", "b.jsonl@"))
    counted = next(row for row in yields(dataset) if row["stage"] == "rephrase")
    assert counted["requested"] == report.requested
    assert dict(counted["reasons"]) == report.reasons
    told = [line for line in lines(summarise(dataset)) if line.startswith("left out")]
    assert len(told) == 1
    assert "null_text 2, as " in told[0]


def test_the_memory_of_a_plan_does_not_grow_with_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "WINDOW_ROWS", 25)
    monkeypatch.setattr(repeats, "FEWEST_SLOTS", 1 << 11)  # 8 to 30 bytes a text are no plan

    def peak(number: int) -> int:
        config = config_of(corpus(tmp_path / f"{number}.jsonl", number), rewrites=2)
        run = SimpleNamespace(config=config)
        made = RephraseStage(run)  # type: ignore[arg-type]
        gc.collect()
        gc.freeze()  # else the collector waits the longer, the more the tests before have left
        tracemalloc.start()
        items = sum(len(window.plan()) for window in made.windows())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        gc.unfreeze()
        assert items == 2 * number + 1
        return most

    peak(75)  # what is made once
    small, large = (min(peak(number) for _ in range(2)) for number in (75, 600))
    assert large < 2 * small  # other threads of the process add to it; kept plans would be 8 times


def test_texts_are_counted_as_a_counter_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "FEWEST_SLOTS", 4)
    rng = random.Random(0)
    many = [rng.getrandbits(64) for _ in range(3000)]
    digests = [0, 2**64 - 1, *many, *rng.choices(many, k=3000), *[many[0]] * 300, 0]
    counts, wanted = TextCounts(), Counter[int]()
    for digest in digests:
        assert counts.add(digest) == wanted[digest]
        wanted[digest] += 1


def test_the_commits_of_some_items_are_found_and_few_others(tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path / "d")
    rng = random.Random(1)
    for shard in range(40):
        named = {f"item-{rng.randrange(300)}": ItemStatus("kept", None) for _ in range(5)}
        name = "rephrase" if shard % 3 else "selection"
        dataset.commit(run_id="r", stage=name, shard=shard, tables={}, items=named)
    every = list(dataset.items_of("rephrase"))
    for _ in range(20):
        asked = {f"item-{rng.randrange(320)}" for _ in range(rng.randrange(6))}
        assert list(dataset.items_of("rephrase", asked)) == [c for c in every if asked & c.keys()]


def test_the_report_of_a_stage_is_the_sum_of_its_windows() -> None:
    def report(kept: int, reason: str, words: str) -> StageReport:
        return StageReport(
            stage="rephrase",
            requested=kept + 3,
            kept=kept,
            dropped=1,
            failed=1,
            pending=1,
            reused=0,
            reasons={reason: 2, "declined": 1},
            vain={reason: 1},
            troubles={reason: 2},
            examples={reason: words},
        )

    whole = StageReport.of_windows(
        [report(2, "a", "first"), report(5, "b", "x"), report(1, "a", "y")]
    )
    assert (whole.requested, whole.kept, whole.failed) == (17, 8, 3)
    assert whole.reasons == {"a": 4, "declined": 3, "b": 2}
    assert whole.troubles == {"a": 4, "b": 2}
    assert whole.example == "first"


@pytest.mark.scale
def test_a_gigabyte_is_planned_within_half_a_gigabyte_of_memory() -> None:
    command = [sys.executable, "-m", "benchmarks.bench_corpora", "--bytes", "1e9"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["items"] == 2 * figures["parameters"]["texts"]
    assert figures["peak_rss_mb"] < 500


def test_a_window_that_cannot_be_read_stops_the_run_once_those_before_it_are_made(
    tmp_path: Path,
) -> None:
    wrong = tmp_path / "b.parquet"
    config = config_of(corpus(tmp_path / "a.jsonl", 6), wrong)
    pq.write_table(pa.table({"body": [TEXT]}), wrong)
    with pytest.raises(ConfigError, match=r"b\.parquet has no column 'text'"):
        run_rephrase(tmp_path / "d", config)
    assert len(Dataset.open(tmp_path / "d").item_statuses("rephrase")) == 7
    pq.write_table(pa.table({"text": [f"{TEXT} Another."]}), wrong)
    report = run_rephrase(tmp_path / "d", config)[0]
    assert (report.requested, report.reused, report.pending) == (8, 7, 0)
