"""What commands make of a dataset of schema version 1: they go on with it, pay nothing twice, and
its ids are those that today's program gives."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.stages import CurationStage
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, GradingStage
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_config, recorded_config
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import run_pipeline
from tests.records.kept import KILLED, copy_of_schema_1
from tests.synth.curation.curated import curate

MADE = ("agents", "personas", "tasks", "trajectories", "tool_calls", "verdicts")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return copy_of_schema_1(tmp_path)


def made_by(dataset: Dataset, run_id: str, table: str) -> list[Row]:
    runs = dataset.arrow(table)["run_id"].to_pylist()
    return [row for row, by in zip(dataset.rows(table), runs, strict=True) if by == run_id]


def graded_by(dataset: Dataset) -> list[str]:
    """Ids of the calls that grading has made."""
    return sorted(row["call_id"] for row in dataset.rows("llm_calls") if row["stage"] == "grading")


def answered(folder: Path) -> set[tuple[str, str, str]]:
    """Requests whose answers the killed run has journalled: item, step, hash."""
    found = set()
    for path in (folder / "journal" / KILLED).glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as db:
            for (text,) in db.execute("SELECT response FROM answers"):
                entry = json.loads(text)
                if "answer" in entry:
                    row = entry["row"]
                    found.add((row["item_id"], row["step"], row["request_hash"]))
    return found


def test_a_killed_run_goes_on_and_pays_nothing_twice(kept: Path, tmp_path: Path) -> None:
    """Its tasks stay as they are; tasks have had another version since, so it plays today's."""
    paid = answered(kept)
    assert len(paid) >= 4
    config = recorded_config(Dataset.open(kept), KILLED, ["offline.latency_s=0"])
    assert isinstance(config, RunConfig)
    assert config.run_id == KILLED
    before = {table: made_by(Dataset.open(kept), KILLED, table) for table in MADE}
    assert before["tasks"]
    assert not before["trajectories"]
    run_pipeline(kept, config)
    dataset = Dataset.open(kept)
    calls = [c for c in made_by(dataset, KILLED, "llm_calls") if c["stage"] != "probe"]
    place = [(c["item_id"], c["step"], c["request_hash"]) for c in calls]
    asked = [
        w for c, w in zip(calls, place, strict=True) if c["status"] == "ok" and not c["cache_hit"]
    ]
    assert len(asked) == len(set(asked))
    assert paid.isdisjoint(asked)
    assert {c["model"] for c in calls} == {"offline-model"}
    run_pipeline(tmp_path / "fresh", config)
    fresh = Dataset.open(tmp_path / "fresh")
    played = {row["trajectory_id"] for row in fresh.rows("trajectories")}
    for table in MADE:
        made, today = made_by(dataset, KILLED, table), fresh.rows(table)
        assert today, table
        if table == "verdicts":  # what the earlier run has played is graded by today's rules, too
            made = [row for row in made if row["trajectory_id"] in played]
        assert all(row in made for row in (*today, *before[table])), table
        assert all(row in today or row in before[table] for row in made), table


def test_the_rows_are_those_of_today(kept: Path, tmp_path: Path) -> None:
    """The finished run, made again by this program, as far as no stage has had another version
    since: the same ids and the same rows."""
    store = Dataset.open(kept)
    first = next(
        r
        for r in store.rows("runs", ["run_id", "command"])
        if r["command"] == "synth run tiny.toml" and r["run_id"] != KILLED
    )
    config = recorded_config(store, first["run_id"])
    assert isinstance(config, RunConfig)
    assert config.run_id == first["run_id"]
    run_pipeline(tmp_path / "fresh", config)
    for table in ("domains", "tools"):
        rows, now = made_by(store, first["run_id"], table), Dataset.open(tmp_path / "fresh")
        assert rows, table
        assert unversioned(now.rows(table)) == unversioned(rows), table


def test_its_verdicts_decide_as_they_did(kept: Path) -> None:
    store = Dataset.open(kept)
    rows = curate(
        grading_id=store.rows("verdicts")[0]["grading_id"],
        trajectories=[
            t for t in store.rows("trajectories") if t["trajectory_id"] in curated_in(store)
        ],
        tool_calls=store.rows("tool_calls"),
        verdicts=store.rows("verdicts"),
        tasks=store.rows("tasks"),
    )
    assert any(v["kind"] == "unsupported_claims" for v in store.rows("verdicts"))
    told = ("trajectory_id", "accepted", "drop_reason", "judge_status", "train_turns")
    assert {tuple(map(str, map(row.get, told))) for row in rows} == {
        tuple(map(str, map(row.get, told))) for row in store.rows("curation")
    }
    before = {row["trajectory_id"]: row["score"] for row in store.rows("curation")}
    assert {row["trajectory_id"]: row["score"] for row in rows} == pytest.approx(before)


def curated_in(store: Dataset) -> set[str]:
    return {row["trajectory_id"] for row in store.rows("curation")}


def unversioned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [{k: v for k, v in row.items() if k != "curation_id"} for row in rows]
    return sorted(found, key=str)


def test_grading_again_adds_a_grading_of_today_and_leaves_the_earlier_ones(kept: Path) -> None:
    store = Dataset.open(kept)
    tables = ("verdicts", "calibration", "curation")
    before = {table: store.rows(table) for table in tables}
    config = GradeConfig.model_validate({"code": [], "judging": {"perturbed_share": 0.6}})

    async def grade() -> None:
        async with open_run(config, str(kept), command="test") as opened:
            for kind in (GradingStage, CalibrationStage, CurationStage):
                await opened.run_stage(kind(opened))

    asyncio.run(grade())
    after = Dataset.open(kept)
    for table in tables:
        rows = after.rows(table)
        assert all(row in rows for row in before[table]), table
        added = [row for row in rows if row not in before[table]]
        assert len({row["grading_id"] for row in added}) == 1, table
        assert {row["grading_id"] for row in added}.isdisjoint(
            row["grading_id"] for row in before[table]
        )
    asyncio.run(grade())  # perturbations that found no place are replaced, and nothing else is made
    again = Dataset.open(kept)
    assert graded_by(again) == graded_by(after)
    assert again.rows("verdicts") == after.rows("verdicts")


def test_what_reads_a_dataset_reads_it(refusal: Synth, kept: Path) -> None:
    i = Dataset.open(kept).rows("tool_calls")[0]["trajectory_id"]
    folder = str(kept)
    for words, said in (
        (["replay", i, "--dataset", folder], "executed again, 0 differ"),
        (["view", i, "--dataset", folder], "state_machine"),
        (["report", folder], ""),
        (["export", folder, "--out", "out", "--include-heldout"], ""),
        (["sql", "select fidelity from tool_calls", "--dataset", folder], "state_machine"),
        (["diff", folder, folder], ""),
    ):
        done = refusal(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert said in done.stdout
    for page in (kept / "report.html", Path("out/README.md")):
        assert "offline model" in page.read_text()
        assert "template-policy" not in page.read_text()
        assert "plant_share" not in page.read_text()


EARLIER = {
    "[judging.floor]\nmin_kappa = 0.5": "judging.floor is called judging.minimum_quality now",
    "[judging]\nplant_share = 0.5": "judging.plant_share is called judging.perturbed_share now",
    "[judging.minimum_quality]\nmin_plants = 3": "judging.minimum_quality.min_plants is called "
    "judging.minimum_quality.min_perturbed now",
    "[rollouts.episode.outcomes.weights]\nsuccess = 1": "rollouts.episode.outcomes is called "
    "rollouts.episode.fault_injection now",
    "[personas]\nreveals = ['mixed']": "personas.reveals is called personas.disclosure now",
    "[judging.rubric]\naccept_at = 0.9": "judging.rubric.accept_at is called "
    "judging.rubric.pass_threshold now",
}


@pytest.mark.parametrize(("text", "said"), EARLIER.items())
def test_an_earlier_name_of_a_setting_is_refused_with_todays(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert said in str(caught.value)
    path.write_text("")
    with pytest.raises(ConfigError, match=r"judging\.floor is called judging\.minimum_quality now"):
        load_config(path, ["judging.floor.min_kappa=0.5"])
