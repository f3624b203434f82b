"""A key is used and written down nowhere: no table, journal, plan, report or export holds it."""

import json
from pathlib import Path

import pytest

from records.schemas import TABLES
from records.store import Dataset
from synth.export import export_dataset
from synth.llm.config import RoleConfig
from synth.report import write_report
from tests.flows.pipeline_work import SMALL, run_pipeline

pytestmark = pytest.mark.slow

KEY = "sk-test-0f1e2d3c4b5a69788796"


def test_no_table_file_or_report_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", KEY)
    roles = {role: RoleConfig(api_key_env="TEST_LLM_KEY") for role in SMALL.roles}
    run_pipeline(tmp_path / "d", SMALL.model_copy(update={"roles": roles}))
    dataset = Dataset.open(tmp_path / "d")
    write_report(dataset)
    export_dataset(dataset, tmp_path / "out", include_heldout=True)
    rows = {table: dataset.rows(table) for table in TABLES}
    assert rows["llm_calls"]
    assert rows["runs"]
    assert KEY not in json.dumps(rows, default=str)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert KEY.encode() not in path.read_bytes(), path
