"""Every stop ends with the command that goes on, which does."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.cli import main as cli
from flows.cli.shared.going_on import SAME_COMMAND, last_lines, same_command_goes_on
from flows.cli.shared.program import program
from records.errors import BudgetError, ConfigError
from records.store.dataset import Dataset
from synth.tasks.forms.forms import ALL_PLAIN
from tests.flows.conftest import ROOT, Synth
from tests.flows.endpoint_work import MARKER, Endpoint, first_of
from tests.flows.prefect_api import flow_runs
from tests.synth.llm.server import Fault, serve

SETTINGS = f"""
name = "NAME"
domains = ["clinic_desk"]
servers = []
code = []
num_tasks = 2
max_failed = 1.0
tasks.personas_per_block = 4
tasks.forms = {{ {", ".join(f"{form} = {share}" for form, share in ALL_PLAIN)} }}
[roles]
"""
"""Goals with structure are beyond the offline model."""
ROLES = ("generator", "agent", "user", "simulator", "judge")
HOSTED = '{base_url = "URL", models = [{name = "m"}], retries = 0, backoff_s = 0.01}'


@pytest.fixture
def endpoint() -> Iterator[tuple[Endpoint, str]]:
    """An endpoint that other processes can ask, and its address."""
    made, stop = Endpoint(), threading.Event()
    found: list[str] = []
    ready = threading.Event()

    async def answer() -> None:
        async with serve(made.script) as server:
            found.append(server.url)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(answer(),))
    thread.start()
    ready.wait()
    yield made, found[0]
    stop.set()
    thread.join()


def write_config(folder: Path, url: str, name: str) -> None:
    roles = "\n".join(f"{role} = {HOSTED}" for role in ROLES).replace("URL", url)
    (folder / "my run.toml").write_text(SETTINGS.replace("NAME", name) + roles)


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The line as somebody would paste it."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(
        line, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are tried again without a wait, in this process."""
    monkeypatch.setattr("synth.engine.shard_maker.ITEM_RETRY_S", 0.0)


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_a_run_that_is_short_ends_with_the_command_that_completes_it(
    prefect_url: str, endpoint: tuple[Endpoint, str], refusal: Synth, tmp_path: Path
) -> None:
    made, url = endpoint
    write_config(tmp_path, url, "short")
    made.broken = first_of("personas")
    given = ("run", "my run.toml", "--dataset", "my data")
    stopped = refusal(*given)
    assert stopped.returncode == 1, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert "personas: " in stopped.stderr
    assert "endpoint_unavailable" in stopped.stderr
    assert "answered 500" in stopped.stderr
    last = stopped.stderr.rstrip().splitlines()[-1]
    assert last.startswith("go on: ")
    assert shlex.split(last)[-4:] == list(given)
    run = flow_runs(prefect_url, "pipeline-short")["pipeline-short"]
    assert run["state_type"] == "FAILED"
    assert (tmp_path / "my data" / "report.html").exists()

    made.broken = lambda body: False
    done = in_shell(last.removeprefix("go on: "), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "go on:" not in done.stderr
    dataset = Dataset.open(tmp_path / "my data")
    assert {s.status for s in dataset.item_statuses("personas").values()} == {"kept"}


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url", "at_once")
def test_items_that_failed_for_good_come_with_the_command_that_tries_them_again(
    endpoint: tuple[Endpoint, str], refusal: Synth, tmp_path: Path
) -> None:
    made, url = endpoint
    write_config(tmp_path, url, "failed")
    made.broken = first_of("personas")
    given = ("run", "my run.toml", "--dataset", "my data", "--set", "around_attempts=1")
    done = refusal(*given)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stderr.splitlines() if "--retry-failed" in line]
    made.broken = lambda body: False
    offered = shlex.split(line.partition("to try again: ")[2])
    started = shlex.split(program())
    assert offered[: len(started)] == started
    again = refusal(*offered[len(started) :])
    assert again.returncode == 0, again.stderr
    assert "--retry-failed" not in again.stderr
    dataset = Dataset.open(tmp_path / "my data")
    assert {s.status for s in dataset.item_statuses("personas").values()} == {"kept"}


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_ctrl_c_ends_with_the_command_that_goes_on(tmp_path: Path) -> None:
    words = ["demo", "--dataset", "d", "--set", "num_tasks=8", "--set", "concurrency=2"]
    words += ["--set", "tasks.personas_per_block=4"]
    words += ["--set", 'domains=["clinic_desk"]', "--set", "servers=[]", "--set", "code=[]"]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli.main", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    plans = tmp_path / "d" / "plans"
    while not list(plans.glob("*/tasks.json")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 1, said
    last = said.rstrip().splitlines()[-1]
    assert last.startswith("go on: ")
    assert shlex.split(last)[-len(words) :] == words


def test_wrong_configuration_gets_no_such_line(refusal: Synth) -> None:
    refused = refusal("demo", "--set", "concurrency=0", "--dataset", "d")
    assert refused.returncode == 2
    assert "go on" not in refused.stderr
    with pytest.raises(ConfigError) as met, same_command_goes_on():
        raise ConfigError("no such thing")
    assert last_lines(met.value, ["demo"]) == []


def test_a_key_that_is_revoked_during_a_run_ends_with_the_command_that_goes_on(
    endpoint: tuple[Endpoint, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, url = endpoint
    write_config(tmp_path, url, "revoked")
    given = ["run", str(tmp_path / "my run.toml"), "--dataset", str(tmp_path / "d"), "--estimate"]
    given += ["--set", "workers=1"]
    made.fault = Fault(status=401, body=b'{"error": {"message": "revoked"}}')
    made.broken = lambda body: True
    assert cli.run(given) == 2
    assert "go on: " not in capsys.readouterr().err
    made.broken = lambda body: MARKER["personas"] in str(body["messages"])
    assert cli.run(given) == 2
    said = capsys.readouterr().err
    assert "revoked" in said
    last = said.rstrip().splitlines()[-1]
    assert last.startswith("go on: ")
    assert shlex.split(last)[-len(given) :] == given
    made.broken = lambda body: False
    assert cli.run(given) == 0
    assert "go on: " not in capsys.readouterr().err


def test_the_command_comes_last_and_once() -> None:
    error = BudgetError("spent")
    error.add_note("another line")
    with pytest.raises(BudgetError) as met, same_command_goes_on(), same_command_goes_on():
        raise error
    first, last = last_lines(met.value, ["run", "a b.toml"])
    assert first == "another line"
    assert last.endswith("run 'a b.toml'")
    assert SAME_COMMAND not in last
