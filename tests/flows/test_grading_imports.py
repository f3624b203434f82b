"""Imported conversations through grading, the judge's trial, curation and exports."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.curation.stages import CurationStage
from synth.exports.export import export_dataset
from synth.importing.importing import TrajectoryImport, import_trajectories
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, GradingStage
from synth.publish.report import report_html
from tests.offline_llm.test_same_request import served
from tests.synth.importing.examples import FOUND, call, lines, openai
from trainer.data.sources import CorpusConfig, samples_of

pytestmark = pytest.mark.slow


def asked(number: int, **changed: Any) -> dict[str, Any]:
    row = openai(**changed)
    row["messages"][1] = {"role": "user", "content": f"Is the Heron free on day {number}?"}
    return row


def rows() -> list[dict[str, Any]]:
    """Three that are sound, and one for each fault that code finds."""
    unfit, unanswered, false = asked(4), asked(5), asked(6)
    unfit["messages"][2]["tool_calls"] = [call("find_boat", {"nam": "Heron"})]
    del unanswered["messages"][3]
    false["messages"][3]["content"] = '{"boat_id": "B-17", "price": 20}'
    false["messages"][-1] = {"role": "assistant", "content": "The price of B-17 is 35."}
    return [asked(1), asked(2), asked(3), unfit, unanswered, false]


def graded(root: Path, **settings: Any) -> Dataset:
    config = GradeConfig.model_validate({"code": [], "workers": 1} | settings)

    async def grade() -> None:
        async with open_run(config, str(root), command="test") as opened:
            for kind in (GradingStage, CalibrationStage, CurationStage):
                await opened.run_stage(kind(opened))

    asyncio.run(grade())
    return Dataset.open(root)


def decisions(dataset: Dataset) -> list[tuple[Any, ...]]:
    """By what was asked."""
    with dataset.connect() as db:
        return db.execute(_DECISIONS).fetchall()


_DECISIONS = """
SELECT accepted, drop_reason, decided_by, attributed_to FROM trajectories
ORDER BY messages->>'$[1].content'"""


def test_imported_conversations_are_judged_curated_exported_and_learnt(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.jsonl", rows())
    import_trajectories(TrajectoryImport(files=(str(file),), license="MIT"), tmp_path / "d")
    by_rule = graded(tmp_path / "d")
    faults = [
        (False, "failed_fit", "code", "agent"),
        (False, "failed_turns", "code", "agent"),
        (False, "failed_truth", "code", "agent"),
    ]
    assert decisions(by_rule) == [(True, None, "code", None)] * 3 + faults
    with pytest.raises(ConfigError, match="code_alone"):
        export_dataset(by_rule, tmp_path / "none")
    with served(create_app(OfflineSettings())) as url:
        hosted = {"all": {"base_url": url, "models": ["offline-model"]}}
        by_model = graded(tmp_path / "d", roles=hosted)
    assert decisions(by_model)[3:] == faults
    heard = [row for row in by_model.rows("curation") if row["decided_by"] == "code_and_judge"]
    accepted = [row for row in heard if row["accepted"]]
    assert accepted
    split = {row["trajectory_id"]: row["split"] for row in by_model.rows("trajectories")}
    written = export_dataset(by_model, tmp_path / "x", format="openai", include_heldout=True)
    learnt = list(samples_of(CorpusConfig(path=str(tmp_path / "d")), "sft"))
    assert sum(written.rows.values()) == len(learnt) == len(accepted)
    assert {sample.split for sample in learnt} <= set(split.values())
    exported = [
        json.loads(line)
        for path in sorted((tmp_path / "x").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert {row["messages"][3]["content"] for row in exported} == {FOUND}
    assert "imported" in report_html(by_model)
    again = tmp_path / "again.jsonl"
    again.write_text("".join(json.dumps(row) + "\n" for row in exported))
    report = import_trajectories(TrajectoryImport(files=(str(again),)), tmp_path / "d2")
    assert report.added == len(accepted)
    back = Dataset.open(tmp_path / "d2").rows("trajectories")
    stored = {row["trajectory_id"] for row in by_model.rows("trajectories")}
    assert {row["trajectory_id"] for row in back} <= stored
