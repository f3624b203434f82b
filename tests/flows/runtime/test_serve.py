"""`synth serve` as a user starts it: typed forms, a run from the API, nothing left after Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from records.config import Config
from synth.catalogue.evolution.config import EvolveConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig
from tests.flows.conftest import ROOT, ours_still_running
from tests.flows.prefect_api import artifacts, ended_run, flow_runs, log_lines, post
from trainer.training.settings import TrainConfig

CONFIGS: dict[str, type[Config]] = dict.fromkeys(
    ("build-tasks", "build-tools", "curate", "dry-run", "pipeline", "rollouts", "rounds"), RunConfig
)
CONFIGS |= {"grade-rewrites": RephraseConfig}
CONFIGS |= {"evolve-tools": EvolveConfig, "grade": GradeConfig, "rephrase": RephraseConfig}
CONFIGS |= {"pretrain": TrainConfig, "sft": TrainConfig}
"""What the form of each flow asks for."""

pytestmark = pytest.mark.slow


class Served(NamedTuple):
    url: str
    folder: Path
    process: subprocess.Popen[str]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """`synth serve` in an empty folder, with a Prefect server of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    environment |= {"PYTHONPATH": str(ROOT), "SYNTH_PREFECT_HOME": str(tmp_path / "prefect")}
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli.main", "serve", "--port", str(port)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # a shell's background jobs inherit an ignored SIGINT, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("the UI is at"):
            break
    yield Served(f"http://127.0.0.1:{port}/api", tmp_path, process)
    process.terminate()
    process.wait(timeout=60)


def deployments(url: str) -> dict[str, dict]:
    """Served deployments by the name of their flow, once all are registered."""
    deadline = time.monotonic() + 60
    found: list[dict] = []
    while len(found) < len(CONFIGS) and time.monotonic() < deadline:
        time.sleep(0.2)
        found = post(url, "/deployments/filter")
    names = {flow["id"]: flow["name"] for flow in post(url, "/flows/filter")}
    return {names[deployment["flow_id"]]: deployment for deployment in found}


def test_flows_are_served_with_typed_forms_and_run_from_the_api(served: Served) -> None:
    found = deployments(served.url)
    assert found.keys() == CONFIGS.keys()
    for name, deployment in found.items():
        schema = deployment["parameter_openapi_schema"]
        fields = schema["definitions"][CONFIGS[name].__name__]["properties"]
        assert fields.keys() == CONFIGS[name].model_fields.keys()
        assert all(field.get("description") for field in fields.values())
        if CONFIGS[name] is not TrainConfig:
            assert "data root" in schema["properties"]["dataset"]["description"]
            assert fields["concurrency"]["maximum"] == 4096

    start = f"/deployments/{found['dry-run']['id']}/create_flow_run"
    config = {"name": "from-the-api", "domains": ["web_shop"], "servers": [], "seed": 3}
    right = post(served.url, start, parameters={"config": config, "dataset": "data/mine"})
    outside = post(served.url, start, parameters={"config": config, "dataset": "../theirs"})
    assert ended_run(served.url, right["id"])["state_type"] == "COMPLETED"
    refused = ended_run(served.url, outside["id"])
    assert refused["state_type"] == "FAILED"
    assert "'../theirs' is not inside the data root" in refused["state"]["message"]
    assert not (served.folder.parent / "theirs").exists()
    assert (served.folder / "data" / "mine" / "report.html").exists()

    kinds = {key: a["type"] for key, a in artifacts(served.url, right["id"]).items()}
    assert kinds == {"progress": "progress", "yields": "table", "summary": "markdown"}
    child = flow_runs(served.url, "rollouts-from-the-api")["rollouts-from-the-api"]
    assert child["tags"] == ["agentic-synth"]
    assert any(line.startswith("rollouts shard ") for line in log_lines(served.url, child["id"]))

    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(timeout=60) == 0
    assert ours_still_running(served.folder) == []
