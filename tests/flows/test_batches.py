"""A run whose judge is asked in batches, from worker processes: killed while it waits, gone on with
by other processes, and nothing paid for twice."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from records.processes import ProcessId, is_alive
from records.store.dataset import Dataset
from synth.llm.ledger import PENDING
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.pipeline.config import RunConfig
from tests.doubles.batches import BatchDouble
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import KEY
from tests.doubles.server import serve
from tests.flows.pipeline_work import content_of
from tests.flows.test_workers import pipeline, with_workers

KEY_ENV = "BATCH_DOUBLE_KEY"


def config_for(url: str, *, workers: int, batch: bool = True) -> RunConfig:
    roles = {
        role: RoleConfig(
            base_url=url,
            api_key_env=KEY_ENV,
            models=["offline-model"],  # pyright: ignore[reportArgumentType]  (a name is enough)
            max_tokens=4096,
            batch=batch and role == "judge",
            usd_per_million_prompt=1.0,
            usd_per_million_completion=4.0,
        )
        for role in with_workers(1).roles
    }
    budget = BudgetConfig(usd=100.0)  # so that every request is written down before it is sent
    return with_workers(workers, roles=roles, concurrency=8, budget=budget)


def run_in_two_workers(url: str, folder: Path) -> subprocess.Popen[bytes]:
    code = """if True:
        import asyncio, sys
        from pathlib import Path
        from tests.flows.test_batches import config_for
        from tests.flows.test_workers import pipeline
        asyncio.run(pipeline(Path(sys.argv[2]), config_for(sys.argv[1], workers=2)))
    """
    return subprocess.Popen(
        [sys.executable, "-c", code, url, str(folder)], stderr=subprocess.DEVNULL
    )


def kill_with_workers(process: "subprocess.Popen[bytes]") -> None:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [ProcessId.of(int(pid)) for pid in listed]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_a_run_killed_while_its_batches_are_under_way_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    batches = BatchDouble()
    batches.held = True
    with serve(DOUBLES["openai"], faults=[batches]) as server:
        process = run_in_two_workers(server.url, tmp_path / "run")
        try:
            assert batches.polled.wait(300.0)  # two processes begin, on a machine that may be busy
        finally:
            kill_with_workers(process)
        sent = [batch["id"] for batch in batches.batches]
        batches.held = False
        asyncio.run(pipeline(tmp_path / "run", config_for(server.url, workers=2)))
        charged = server.tokens(delivered=True)
        asyncio.run(pipeline(tmp_path / "plain", config_for(server.url, workers=1, batch=False)))
    assert sent
    assert all(batch["status"] == "completed" for batch in batches.batches)
    asked_for = [
        json.loads(line)["custom_id"]
        for batch in batches.batches
        for line in batches.files[batch["input_file_id"]].splitlines()
    ]
    assert len(asked_for) == len(set(asked_for))
    dataset = Dataset.open(tmp_path / "run")
    with dataset.connect() as views:
        counted = "SELECT sum(prompt_tokens), sum(completion_tokens) FROM llm_calls"
        [everything] = views.sql(counted).fetchall()
        [answered] = views.sql(f"{counted} WHERE status != '{PENDING}'").fetchall()
        [(usd,)] = views.sql("SELECT sum(cost_usd) FROM llm_calls").fetchall()
        [(spent,)] = views.sql("SELECT cost_usd FROM runs WHERE event = 'ended'").fetchall()
    # Requests that were under way as the run was killed count with their worst case, whether or
    # not their answers were sent; without such requests all three are equal.
    for least, true, most in zip(
        answered, (charged.prompt, charged.completion), everything, strict=True
    ):
        assert least <= true <= most
    assert spent == pytest.approx(usd)  # what the killed run had reserved is free again
    assert content_of(tmp_path / "run") == content_of(tmp_path / "plain")
