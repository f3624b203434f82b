"""The project's server refuses foreign pages, and `prefect.yaml` deploys what it names."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from flows.runtime.server import prefect_server
from tests.flows.conftest import ROOT
from tests.flows.prefect_api import post


@pytest.mark.slow
def test_no_other_web_page_may_call_the_server(prefect_url: str) -> None:
    own = prefect_url.removesuffix("/api")
    for origin, allowed in ((own, own), ("https://example.com", None)):
        request = urllib.request.Request(f"{prefect_url}/health", headers={"Origin": origin})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.headers["access-control-allow-origin"] == allowed


@pytest.mark.slow
def test_a_prefect_that_was_imported_before_uses_the_server(
    prefect_url: str, tmp_path: Path
) -> None:
    """And starts none of its own for the first flow."""
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL

    with pytest.MonkeyPatch.context() as before:
        before.delenv("PREFECT_API_URL")
        refresh_global_settings_context()
        assert PREFECT_API_URL.value() is None
    with prefect_server(tmp_path):
        assert PREFECT_API_URL.value() == prefect_url


@pytest.mark.slow
def test_prefect_yaml_deploys_every_flow_it_names(prefect_url: str, tmp_path: Path) -> None:
    prefect(tmp_path, "work-pool", "create", "local", "--type", "process")
    prefect(tmp_path, "--no-prompt", "deploy", "--all")
    flows = {flow["id"]: flow["name"] for flow in post(prefect_url, "/flows/filter")}
    pool = {"name": {"any_": ["local"]}}
    found = {
        flows[d["flow_id"]]: d for d in post(prefect_url, "/deployments/filter", work_pools=pool)
    }
    named = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    assert {d["entrypoint"] for d in found.values()} == {d["entrypoint"] for d in named}
    assert len(found) == len(named)
    assert all(d["name"] == "default" and d["tags"] == ["agentic-synth"] for d in found.values())
    assert found["pipeline"]["global_concurrency_limit"]["limit"] == 1
    assert "RunConfig" in found["dry-run"]["parameter_openapi_schema"]["definitions"]


def prefect(home: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=ROOT,
        env=os.environ | {"PREFECT_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
