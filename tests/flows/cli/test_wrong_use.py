"""A user's mistake is refused before any work: name, value, what is allowed, exit code 2."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from records.store.dataset import Dataset
from records.store.lease import hold
from tests.flows.conftest import ROOT, Synth

pytestmark = pytest.mark.slow

HANGS = 'name: hangs\ncommand: [python, -c, "import time; time.sleep(600)"]\nstart_timeout_s: 2\n'
RUBBISH = 'name: rubbish\ncommand: [python, -c, "print(1); print(2)"]\nstart_timeout_s: 5\n'
MISSING = "name: missing\ncommand: [no-such-mcp-server]\n"


def assert_refused(done: subprocess.CompletedProcess[str], *words: str, code: int = 2) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_unknown_setting(synth: Synth, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("concurency = 4\n")
    assert_refused(synth("run", "run.toml"), "concurency", "4", "did you mean 'concurrency'")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("concurrency=0", ("concurrency", "0", "greater than or equal to 1")),
        ("shard_size=many", ("shard_size", "many", "integer")),
        ("roles.agent.temprature=1", ("roles.agent.temprature", "did you mean 'temperature'")),
        (
            "roles.juge.max_tokens=1",
            ("roles.juge", "'simulator', 'judge'"),
        ),
        ("concurrency", ("key=value", "concurrency")),
        ('servers=["gti"]', ("'gti'", "git", "time")),
        ('domains=["no_such"]', ("no_such",)),
        ("stage_seconds.rollout=3", ("rollout", "rollouts")),
    ],
)
def test_wrong_override(refusal: Synth, tmp_path: Path, override: str, words: tuple[str]) -> None:
    assert_refused(refusal("demo", "--set", override, "--dataset", "d"), *words)
    assert not (tmp_path / "d" / "commits").exists()


def test_missing_config_file(refusal: Synth) -> None:
    assert_refused(refusal("run", "nowhere.toml"), "nowhere.toml", "configs/")


def test_config_that_is_no_toml(refusal: Synth, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("seed = = 3\n")
    assert_refused(refusal("run", "run.toml"), "run.toml", "not valid TOML")


@pytest.mark.usefixtures("prefect_url")
def test_unreachable_endpoint(refusal: Synth) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    meant = 'offline.roles=["generator", "user", "simulator", "judge"]'
    hosted = f"roles.agent.base_url={url}"
    done = refusal("demo", "--set", hosted, "--set", meant, "--dataset", "d")
    assert_refused(done, "roles.agent", str(port))


def test_a_run_that_leaves_out_a_role_among_hosted_ones(refusal: Synth, tmp_path: Path) -> None:
    done = refusal("demo", "--set", "roles.agent.base_url=http://127.0.0.1:9/v1", "--dataset", "d")
    words = "roles.generator, roles.user, roles.simulator, roles.judge have no endpoint"
    assert_refused(done, words, "[offline]")
    assert not (tmp_path / "d").exists()


def test_a_prefect_server_that_is_not_there(
    refusal: Synth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/api"
    for given in (url, "nonsense"):
        monkeypatch.setenv("PREFECT_API_URL", given)
        assert_refused(refusal("demo", "--dataset", "d"), "PREFECT_API_URL", given, "unset")
        assert_refused(refusal("serve"), "PREFECT_API_URL", given)
    assert not (tmp_path / "d").exists()


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (HANGS, ("hangs", "2")),
        (RUBBISH, ("rubbish",)),
        (MISSING, ("missing", "no-such-mcp-server")),
    ],
)
def test_servers_that_cannot_be_used(
    refusal: Synth, tmp_path: Path, definition: str, words: tuple[str]
) -> None:
    (tmp_path / "server.yaml").write_text(definition)
    assert_refused(refusal("tools", "import", "--server", "server.yaml", "--dataset", "d"), *words)


@pytest.mark.parametrize("command", [("sql", "select 1"), ("report",), ("view", "x")])
def test_folders_that_are_no_dataset(
    refusal: Synth, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file").write_text("mine")
    for folder in ("foreign", "missing"):
        place = (folder,) if command[0] == "report" else ("--dataset", folder)
        assert_refused(refusal(*command, *place), folder, "no dataset")
    assert_refused(refusal("demo", "--dataset", "foreign", "--set", "num_tasks=1"), "foreign")
    assert [p.name for p in (tmp_path / "foreign").iterdir()] == ["file"]


def test_sql_errors_name_the_tables(refusal: Synth, tmp_path: Path) -> None:
    Dataset.create_or_open(tmp_path / "d")
    assert_refused(refusal("sql", "select * from trajektories", "--dataset", "d"), "trajektories")
    assert_refused(refusal("sql", "drop table tools", "--dataset", "d"))


@pytest.mark.usefixtures("prefect_url")
def test_a_held_dataset_is_refused_with_the_owner(synth: Synth, tmp_path: Path) -> None:
    dataset = Dataset.create_or_open(tmp_path / "d")
    with hold(dataset, run_id="other", what="synth run other.toml"):
        kept = {k: v for k, v in os.environ.items() if k != "SYNTH_LEASE"}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "flows.cli.main",
                "demo",
                "--dataset",
                "d",
                "--set",
                "num_tasks=1",
            ],
            cwd=tmp_path,
            env=kept | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert_refused(done, "synth run other.toml", str(os.getpid()))


def test_unknown_commands_and_options_exit_with_2(refusal: Synth) -> None:
    assert refusal("nonsense").returncode == 2
    assert refusal("sql").returncode == 2
    assert refusal("sql", "select 1", "--no-such-option").returncode == 2


def test_a_port_that_cannot_be(refusal: Synth) -> None:
    assert_refused(refusal("offline-llm", "--port", "99999"), "99999", "--port", "65535")
