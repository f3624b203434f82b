"""An older dataset that is graded again: today's criteria, no new rollout, and what it changed."""

import asyncio
from pathlib import Path

from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.curation.stages import CurationStage
from synth.judging.config import GradeConfig
from synth.judging.stages import GradingStage
from synth.publish.regrading import regrading
from synth.publish.report import report_html
from synth.rubrics.standing import STANDING
from tests.records.kept import copy_of_schema_1


def test_an_earlier_run_gets_todays_criteria_and_the_report_tells_both(tmp_path: Path) -> None:
    kept = copy_of_schema_1(tmp_path)
    before = Dataset.open(kept)
    played = before.rows("trajectories")
    asked = {row["call_id"] for row in before.rows("llm_calls")}
    config = GradeConfig.model_validate({"code": []})

    async def grade() -> None:
        async with open_run(config, str(kept), command="test") as opened:
            for kind in (GradingStage, CurationStage):
                await opened.run_stage(kind(opened))

    asyncio.run(grade())
    dataset = Dataset.open(kept)
    assert dataset.rows("trajectories") == played
    added = [row for row in dataset.rows("llm_calls") if row["call_id"] not in asked]
    assert {row["stage"] for row in added} == {"grading"}
    with dataset.connect() as db:
        found = regrading(dataset, db)
        criteria = db.execute(_NEWEST).fetchall()
    assert found
    assert {c.id for c in STANDING} <= {i for (i,) in criteria}
    assert found.earlier["grading_id"] != found.later["grading_id"]
    assert found.earlier["n"] == len(played) == sum(change["n"] for change in found.changes)
    assert f"{len(played)} trajectories in both gradings" in report_html(dataset)


_NEWEST = "SELECT DISTINCT criterion_id FROM verdicts JOIN trajectories USING (grading_id)"
