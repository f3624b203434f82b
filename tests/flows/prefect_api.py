"""What the tests ask of a Prefect server: its HTTP API, as any other program would use it."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
WAIT_S = 300.0


BUSY = 503
"""What the server answers while its database is locked by another write: ask again, as Prefect's
own client does."""


def post(url: str, path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        f"{url}{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def flow_runs(url: str, *names: str) -> dict[str, dict[str, Any]]:
    """The newest flow run of each name."""
    found = post(url, "/flow_runs/filter", flow_runs={"name": {"any_": list(names)}})
    found.sort(key=lambda run: run["expected_start_time"])
    return {run["name"]: run for run in found}


def artifacts(url: str, flow_run_id: str) -> dict[str, dict[str, Any]]:
    """Artifacts of one flow run by their key."""
    asked = {"flow_run_id": {"any_": [flow_run_id]}}
    return {a["key"]: a for a in post(url, "/artifacts/filter", artifacts=asked)}


def log_lines(url: str, flow_run_id: str) -> list[str]:
    found = post(url, "/logs/filter", logs={"flow_run_id": {"any_": [flow_run_id]}}, limit=200)
    return [line["message"] for line in found]


def whole_log(url: str, flow_run_id: str) -> list[str]:
    """The log lines of a run that has ended; they are sent in batches, the last of them late."""
    deadline = time.monotonic() + WAIT_S
    while True:
        lines = log_lines(url, flow_run_id)
        if any(line.startswith("Finished in state") for line in lines):
            return lines
        assert time.monotonic() < deadline, f"the log ends with {lines[-1:]}"
        time.sleep(0.5)


def ended_run(url: str, flow_run_id: str) -> dict[str, Any]:
    """The flow run once it has ended, in whatever state."""
    deadline = time.monotonic() + WAIT_S
    while True:
        [run] = post(url, "/flow_runs/filter", flow_runs={"id": {"any_": [flow_run_id]}})
        if run["state_type"] in ENDED:
            return run
        assert time.monotonic() < deadline, f"flow run {run['name']} is still {run['state_type']}"
        time.sleep(0.5)
