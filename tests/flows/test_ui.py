"""What a person sees of a run in Prefect's UI, and that serving leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from records.store import Dataset
from tests.flows.conftest import ROOT, Synth
from tests.flows.pipeline_work import content_of
from tests.flows.test_resume import ours_still_running

pytestmark = pytest.mark.slow

TWO_DOMAINS = ("--set", 'domains=["clinic_desk", "web_shop"]', "--set", "servers=[]")


def ask(api: str, path: str, question: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{api}{path}",
        data=json.dumps(question).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def flow_runs(api: str, name: str) -> list[dict[str, Any]]:
    return ask(api, "/flow_runs/filter", {"flow_runs": {"name": {"any_": [name]}}})


def test_a_run_can_be_read_in_the_browser(prefect_url: str, synth: Synth) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium to open the page with")
    from playwright.sync_api import sync_playwright

    named = ("--set", "name=readable", "--set", "num_tasks=6")
    done = synth("demo", "--dataset", "d", *named, *TWO_DOMAINS)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    (run,) = flow_runs(prefect_url, "pipeline-readable")
    assert run["state_type"] == "COMPLETED"
    stages = [flow_runs(prefect_url, f"{part}-readable") for part in ("build-tools", "rollouts")]
    assert all(len(found) == 1 for found in stages)
    logs = ask(
        prefect_url, "/logs/filter", {"logs": {"flow_run_id": {"any_": [stages[1][0]["id"]]}}}
    )
    assert any("rollouts shard 0" in line["message"] for line in logs)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=browser,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = chromium.new_page()
        base = prefect_url.removesuffix("/api")
        page.goto(f"{base}/v2/runs/flow-run/{run['id']}?tab=Artifacts")
        page.get_by_text("pipeline-readable").first.wait_for(timeout=30_000)
        page.get_by_text("summary", exact=True).first.wait_for(timeout=30_000)
        chromium.close()


@pytest.mark.usefixtures("prefect_url")
def test_a_run_stopped_by_its_budget_goes_on_to_the_same_rows(synth: Synth, tmp_path: Path) -> None:
    common = ("--set", "num_tasks=8", *TWO_DOMAINS)
    stopped = synth("demo", "--dataset", "a", "--set", "budget.tokens=60000", *common)
    assert stopped.returncode == 3, stopped.stderr
    assert "budget of the run" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    spent = (
        Dataset.open(tmp_path / "a")
        .connect()
        .execute("select sum(prompt_tokens + completion_tokens) from llm_calls where not cache_hit")
    )
    assert spent.fetchone()[0] <= 60000  # type: ignore[index]
    assert synth("demo", "--dataset", "a", *common).returncode == 0
    assert synth("demo", "--dataset", "b", *common).returncode == 0
    assert content_of(tmp_path / "a") == content_of(tmp_path / "b")


def test_serve_offers_every_flow_with_its_form_and_ends_clean(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    environment |= {"PYTHONPATH": str(ROOT), "SYNTH_PREFECT_HOME": str(tmp_path / "prefect")}
    serving = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "serve"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # a shell's background jobs inherit an ignored SIGINT, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + 150
        while len(found) < 6 and time.monotonic() < deadline:
            assert serving.poll() is None
            time.sleep(0.5)
            state = tmp_path / "prefect" / "server.json"
            try:
                port = json.loads(state.read_text())["port"]
                found = ask(f"http://127.0.0.1:{port}/api", "/deployments/filter", {})
            except (OSError, ValueError):
                continue
        entrypoints = {deployment["entrypoint"].rpartition(":")[2] for deployment in found}
        assert entrypoints == {
            "pipeline", "dry_run", "build_tools", "build_tasks", "rollouts", "curate"
        }  # fmt: skip
        form = json.dumps(found[0]["parameter_openapi_schema"])
        assert "num_tasks" in form
        assert "How many tasks are tried" in form
    finally:
        serving.send_signal(signal.SIGINT)
        serving.wait(timeout=60)
    assert ours_still_running(tmp_path) == []
