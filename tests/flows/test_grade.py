"""Stored trajectories judged again: a grading more, no row less, and nothing paid twice."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.stages import CurationStage
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, GradingStage, grading_of, trials
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.rubrics.patch import RubricPatch
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import SMALL, run_pipeline, run_stages

EXACT = {
    "generator": RoleConfig(),
    "judge": RoleConfig(models=(ModelConfig(name="offline-model-exact"),)),
}
SAME = GradeConfig(code=())
ADDED = {"id": "brief", "words": "The assistant is brief.", "weight": 1.0, "kind": "nl"}
"""A criterion that is scored, so that the same trajectories pass by code."""
TABLES = ("verdicts", "calibration", "curation")


def grade(folder: Path, config: GradeConfig) -> None:
    async def run() -> None:
        async with open_run(config, str(folder), command="test") as opened:
            await run_stages(opened, (GradingStage, CalibrationStage, CurationStage))

    asyncio.run(run())


def rows_of(folder: Path) -> dict[str, list[Row]]:
    return {table: Dataset.open(folder).rows(table) for table in TABLES}


def asked(folder: Path) -> int:
    """Requests to the judge, probes apart."""
    calls = Dataset.open(folder).rows("llm_calls")
    return sum(c["role"] == "judge" and c["stage"] != "probe" for c in calls)


@pytest.fixture(scope="module")
def accepted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run large enough for accepted trajectories, which the judge is tried with."""
    folder = tmp_path_factory.mktemp("accepted") / "d"
    run_pipeline(folder, SMALL.model_copy(update={"num_tasks": 6}))
    return folder


@pytest.fixture
def copied(accepted_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(accepted_run, tmp_path / "d"))


@pytest.mark.slow
def test_grading_the_same_again_costs_and_adds_nothing(copied: Path) -> None:
    before, requests = rows_of(copied), asked(copied)
    grade(copied, SAME)
    assert rows_of(copied) == before
    assert asked(copied) == requests


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        SAME.model_copy(update={"roles": EXACT}),
        SAME.model_copy(
            update={
                "judging": SAME.judging.model_copy(update={"rubric": RubricPatch(drop=("format",))})
            }
        ),
    ],
    ids=["judge", "rubric"],
)
def test_another_judge_or_rubric_is_a_grading_more(copied: Path, config: GradeConfig) -> None:
    before, grading_id = rows_of(copied), grading_of(config)
    grade(copied, config)
    after = rows_of(copied)
    for table in TABLES:
        new = [row for row in after[table] if row not in before[table]]
        assert len(after[table]) == len(before[table]) + len(new)
        assert {row["grading_id"] for row in new} <= {grading_id}
    with Dataset.open(copied).connect() as db:
        newest = db.execute("SELECT DISTINCT grading_id FROM trajectories").fetchall()
        criteria = db.execute(
            "SELECT DISTINCT criterion_id FROM verdicts WHERE grading_id = $1", [grading_id]
        ).fetchall()
    assert newest == [(grading_id,)]
    assert (("format",) in criteria) == (config.judging.rubric is None)
    again = rows_of(copied)
    grade(copied, config)
    assert rows_of(copied) == again
    ended = [r for r in Dataset.open(copied).rows("runs") if r["event"] == "ended"]
    assert any("judge: " in row["detail"] for row in ended)


@pytest.mark.slow
def test_the_next_grading_by_the_same_judge_pays_nothing_again_for_its_trial(copied: Path) -> None:
    def tried() -> tuple[int, int]:
        calls = Dataset.open(copied).rows("llm_calls")
        rows = Dataset.open(copied).rows("calibration")
        return sum(call["stage"] == "calibration" for call in calls), len(rows)

    before = tried()
    judging = SAME.judging.model_copy(update={"judge_failed": True})
    config = SAME.model_copy(update={"judging": judging})
    grade(copied, config)
    requests, rows = tried()
    assert requests == before[0] > 0
    assert rows == before[1] + 1, "one row ties the grading to the trial"
    own = trials(Dataset.open(copied), grading_of(config))
    assert own, "the second grading is tied to no trial"


@pytest.mark.slow
def test_a_change_of_a_criterion_that_is_nowhere_is_refused(copied: Path) -> None:
    before = rows_of(copied)
    for name in ("format", "fromat"):
        rubric = RubricPatch.model_validate({"change": [{"id": name, "weight": 2}]})
        judging = SAME.judging.model_copy(update={"rubric": rubric})
        config = SAME.model_copy(update={"judging": judging})
        if name == "format":
            grade(copied, config)
            before = rows_of(copied)
            continue
        with pytest.raises(ConfigError, match=r"change names fromat, .*criteria: .*format"):
            grade(copied, config)
    assert rows_of(copied) == before


@pytest.mark.slow
def test_the_command_grades_and_prints_the_trial(
    prefect_url: str, refusal: Synth, copied: Path
) -> None:
    done = refusal("grade", str(copied), "--judge-model", "offline-model-exact", "--json")
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)  # empty where so small a run has nothing to try a judge with
    assert all({"kind", "fpr", "tpr", "kappa"} <= row.keys() for row in table)
    wrong = refusal("grade", str(copied), "--set", "judging.perturbed_share=2")
    assert wrong.returncode == 2
    assert "judging.perturbed_share = 2" in wrong.stderr
