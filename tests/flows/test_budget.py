"""A run that meets its budget stops cleanly, says what to do, and goes on to the same rows."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from synth.tasks.forms.forms import ALL_PLAIN
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import SMALL, content_of
from tests.flows.prefect_api import flow_runs

SETTINGS = f"""
domains = ["clinic_desk", "web_shop"]
servers = []
code = []
num_tasks = {SMALL.num_tasks}
shard_size = 1
seed = {SMALL.seed}
tasks.forms = {{ {", ".join(f"{form} = {share}" for form, share in ALL_PLAIN)} }}
"""

SPENT = """
select sum(prompt_tokens + completion_tokens) from llm_calls
where not cache_hit and stage != 'probe'
"""


@pytest.mark.slow
def test_a_run_stopped_by_its_budget_goes_on_to_the_same_rows(
    prefect_url: str, refusal: Synth, tmp_path: Path, small_run: Path
) -> None:
    limit = spent(small_run) // 2
    limited = ("--set", f"budget.tokens={limit}", "--set", "name=short-of-tokens")
    (tmp_path / "run.toml").write_text(SETTINGS)
    stopped = refusal("run", "run.toml", "--dataset", "d", *limited)
    assert stopped.returncode == 3, stopped.stderr
    assert "budget of the run" in stopped.stderr
    assert "raise the budget and run the same command again" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert 0 < spent(tmp_path / "d") <= limit
    run = flow_runs(prefect_url, "pipeline-short-of-tokens")["pipeline-short-of-tokens"]
    assert run["state_type"] == "FAILED"
    assert "BudgetError" in run["state"]["message"]

    done = refusal("run", "run.toml", "--dataset", "d")
    assert done.returncode == 0, done.stderr
    assert content_of(tmp_path / "d") == content_of(small_run)
    assert spent(tmp_path / "d") == spent(small_run)  # nothing paid twice but the probes


def spent(folder: Path) -> int:
    [(tokens,)] = Dataset.open(folder).connect().execute(SPENT).fetchall()
    return int(tokens)
