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
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, CurationStage, GradingStage
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_config, recorded_config
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import run_pipeline
from tests.records.kept import KILLED, copy_of_schema_1

MADE = ("agents", "personas", "tasks", "trajectories", "tool_calls", "verdicts")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return copy_of_schema_1(tmp_path)


def made_by(dataset: Dataset, run_id: str, table: str) -> list[Row]:
    runs = dataset.arrow(table)["run_id"].to_pylist()
    return [row for row, by in zip(dataset.rows(table), runs, strict=True) if by == run_id]


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
    for one in paid:
        rows = [c for c, where in zip(calls, place, strict=True) if where == one]
        assert [c["cache_hit"] for c in rows].count(False) == 1, one
        assert any(c["cache_hit"] for c in rows), one
    ok = [
        w for c, w in zip(calls, place, strict=True) if c["status"] == "ok" and not c["cache_hit"]
    ]
    assert len(ok) == len(set(ok))
    assert {c["model"] for c in calls} == {"offline-model"}
    run_pipeline(tmp_path / "fresh", config)
    fresh = Dataset.open(tmp_path / "fresh")
    for table in MADE:
        assert made_by(dataset, KILLED, table) == fresh.rows(table), table
    assert all(row in made_by(dataset, KILLED, "tasks") for row in before["tasks"])


def test_the_rows_are_those_of_today(kept: Path, tmp_path: Path) -> None:
    """The finished run, made again by this program: the same ids and the same rows. A curation's id
    has the version of its rules, which have changed since."""
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
    for table in (*MADE, "calibration", "curation"):
        rows, now = made_by(store, first["run_id"], table), Dataset.open(tmp_path / "fresh")
        assert rows, table
        assert unversioned(now.rows(table)) == unversioned(rows), table


def unversioned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [{k: v for k, v in row.items() if k != "curation_id"} for row in rows]
    return sorted(found, key=str)


def test_grading_again_as_before_costs_nothing_and_adds_a_curation_of_today(kept: Path) -> None:
    store = Dataset.open(kept)
    gradings = {row["grading_id"] for row in store.rows("verdicts")}
    tables = ("verdicts", "calibration", "llm_calls")
    curated = store.rows("curation")
    before = {table: store.rows(table) for table in tables}
    config = GradeConfig.model_validate({"code": [], "judging": {"perturbed_share": 0.6}})

    async def grade() -> None:
        async with open_run(config, str(kept), command="test") as opened:
            for kind in (GradingStage, CalibrationStage, CurationStage):
                await opened.run_stage(kind(opened))

    asyncio.run(grade())
    assert {row["grading_id"] for row in Dataset.open(kept).rows("verdicts")} == gradings
    after = Dataset.open(kept)
    assert {table: after.rows(table) for table in tables} == before
    rows = after.rows("curation")
    assert all(row in rows for row in curated)
    added = [row for row in rows if row not in curated]
    ours = [row for row in curated if row["grading_id"] in {new["grading_id"] for new in added}]
    assert unversioned(added) == unversioned(ours)


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
