"""What a person finds in the UI after a run: readable names, artifacts, a log line a shard."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Synth
from tests.flows.prefect_api import artifacts, flow_runs, log_lines

CONFIG = """
name = "seen-in-the-ui"
domains = ["clinic_desk", "web_shop"]
servers = []
code = []
num_tasks = 12
shard_size = 5
"""
PARTS = ("build-tools", "build-tasks", "rollouts", "curate")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium here")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = started.chromium.launch(executable_path=path, args=options)
        yield chromium
        chromium.close()


def test_a_run_is_found_by_name_with_artifacts_and_logs(
    prefect_url: str, synth: Synth, tmp_path: Path, browser: Any
) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    done = synth("run", "run.toml", "--dataset", "d")
    assert done.returncode == 0, done.stderr
    runs = flow_runs(prefect_url, *(f"{part}-seen-in-the-ui" for part in ("pipeline", *PARTS)))
    assert len(runs) == 5
    assert all(run["state_type"] == "COMPLETED" for run in runs.values())
    assert all(run["tags"] == ["agentic-synth"] for run in runs.values())
    pipeline, rollouts = runs["pipeline-seen-in-the-ui"], runs["rollouts-seen-in-the-ui"]

    lines = log_lines(prefect_url, rollouts["id"])
    assert sum(line.startswith("rollouts shard ") for line in lines) == 3
    assert "rollouts: 12 kept of 12 requested" in log_lines(prefect_url, pipeline["id"])
    found = artifacts(prefect_url, pipeline["id"])
    assert {key: a["type"] for key, a in found.items()} == {
        "progress": "progress",
        "yields": "table",
        "summary": "markdown",
    }
    assert found["progress"]["data"] == 100.0

    ui = prefect_url.removesuffix("/api")
    page = browser.new_page(viewport={"width": 1300, "height": 1100})
    page.goto(f"{ui}/runs/flow-run/{pipeline['id']}")
    page.get_by_text("Artifacts", exact=True).last.click()
    assert_shown(page, "pipeline-seen-in-the-ui", "agentic-synth", "progress", "yields", "summary")
    page.screenshot(path=tmp_path / "pipeline.png")
    page.goto(f"{ui}/runs/flow-run/{rollouts['id']}")
    assert_shown(page, "rollouts-seen-in-the-ui", *(f"rollouts shard {i}: " for i in range(3)))
    page.screenshot(path=tmp_path / "rollouts.png")
    page.goto(f"{ui}/artifacts/artifact/{found['yields']['id']}")
    assert_shown(page, "requested = kept + dropped", "personas", "curation")
    page.goto(f"{ui}/artifacts/artifact/{found['summary']['id']}")
    assert_shown(page, "Yield of each stage", "The judge against the checks")


def assert_shown(page: Any, *texts: str) -> None:
    """Each text can be seen within 30 s."""
    for text in texts:
        page.get_by_text(text).locator("visible=true").first.wait_for(timeout=30_000)
