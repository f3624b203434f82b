"""Imported conversations through grading, the judge's trial, curation, exports and a training
step."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from records.digest import canonical_json
from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.curation.stages import CurationStage
from synth.exports.export import export_dataset
from synth.importing.importing import TrajectoryImport, import_trajectories
from synth.judging.config import GradeConfig
from synth.judging.stages import CalibrationStage, GradingStage
from synth.publish.report import report_html
from tests.offline_llm.test_same_request import served
from tests.synth.importing.examples import call, lines, openai
from tests.trainer.configs import small
from trainer.data.sources import CorpusConfig, samples_of
from trainer.training.metrics import read_metrics

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


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Imported, judged by rule and then by a model at an endpoint, and curated."""
    folder = tmp_path_factory.mktemp("judged")
    file = lines(folder / "f.jsonl", rows())
    import_trajectories(TrajectoryImport(files=(str(file),), license="MIT"), folder / "d")
    by_rule = graded(folder / "d")
    assert decisions(by_rule) == [(True, None, "code", None)] * 3 + FAULTS
    with pytest.raises(ConfigError, match="code_alone"):
        export_dataset(by_rule, folder / "none")
    with served(create_app(OfflineSettings())) as url:
        hosted = {"all": {"base_url": url, "models": ["offline-model"]}}
        return graded(folder / "d", roles=hosted)


FAULTS = [
    (False, "failed_fit", "code", "agent"),
    (False, "failed_turns", "code", "agent"),
    (False, "failed_truth", "code", "agent"),
]


def accepted_in(dataset: Dataset) -> set[str]:
    heard = [row for row in dataset.rows("curation") if row["decided_by"] == "code_and_judge"]
    return {row["trajectory_id"] for row in heard if row["accepted"]}


def test_imported_conversations_are_judged_curated_and_shown(judged: Dataset) -> None:
    assert decisions(judged)[3:] == FAULTS
    assert accepted_in(judged)
    assert "imported" in report_html(judged)


@pytest.mark.parametrize("form", ["openai", "trl", "hf", "sharegpt"])
def test_what_is_exported_comes_back_as_the_same_conversations(
    form: Any, judged: Dataset, tmp_path: Path
) -> None:
    written = export_dataset(judged, tmp_path / "x", format=form, include_heldout=True)
    accepted = accepted_in(judged)
    assert sum(written.rows.values()) == len(accepted)
    files = sorted(str(p) for p in (tmp_path / "x").rglob("*") if p.suffix in ENDINGS)
    report = import_trajectories(TrajectoryImport(files=tuple(files)), tmp_path / "back")
    read_as = "sharegpt" if form == "sharegpt" else "openai"
    assert (report.formats, report.refused.total()) == ({read_as: len(accepted)}, 0)
    back = Dataset.open(tmp_path / "back").rows("trajectories")
    stored = [r for r in judged.rows("trajectories") if r["trajectory_id"] in accepted]
    assert sorted(map(said, back)) == sorted(map(said, stored))
    assert {row["trajectory_id"] for row in back} == accepted


ENDINGS = (".jsonl", ".parquet")


def said(row: dict[str, Any]) -> str:
    """Messages and tools, with the values of arguments."""
    messages = json.loads(json.dumps(row["messages"]))
    for call_ in (c for m in messages for c in m.get("tool_calls", ())):
        call_["function"]["arguments"] = json.loads(call_["function"]["arguments"])
    return canonical_json([messages, row["tools"]])


def test_a_model_takes_a_step_on_imported_conversations(judged: Dataset, tmp_path: Path) -> None:
    shape = small(vocab_size=320, max_positions=4096).model_dump(exclude={"yarn"})
    told = "\n".join(f"{k} = {json.dumps(v)}" for k, v in shape.items() if v is not None)
    (tmp_path / "run.toml").write_text(
        f'out = "{tmp_path / "run"}"\nsteps = 1\n[data]\nbatch_rows = 2\nmicro_rows = 1\n'
        f'sources = [{{path = "{judged.root}"}}]\n[shape]\n{told}\n'
    )
    command = [sys.executable, "-m", "trainer", "sft", str(tmp_path / "run.toml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    split = {row["trajectory_id"]: row["split"] for row in judged.rows("trajectories")}
    learnt = [key for key in accepted_in(judged) if split[key] == "train"]
    assert learnt
    assert ran.stdout.startswith(f"rows: {len(learnt)} learnt from")
    [step] = read_metrics(tmp_path / "run")
    assert step["loss"] > 0
    samples = list(samples_of(CorpusConfig(path=str(judged.root)), "sft"))
    assert len(samples) == len(accepted_in(judged))
