"""synth sandbox: a command's output and exit code come through, and wrong use is refused."""

import io
import json
import sys
from pathlib import Path

import pytest

from flows.cli.main import run
from flows.runtime.settings import live_servers
from records.errors import ConfigError
from records.store.dataset import Dataset


class Input:
    buffer = io.BytesIO(b"given")

    @staticmethod
    def isatty() -> bool:
        return False


@pytest.mark.usefixtures("sandboxed")
def test_a_command_runs_with_its_input_and_its_code_is_ours(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Input)
    assert run(["sandbox", "run", "--", "sh", "-c", "cat; pwd; echo bad >&2; exit 3"]) == 3
    assert capfdbinary.readouterr() == (b"given/workspace\n", b"bad\n")
    assert run(["sandbox", "run", "--timeout-s", "0.2", "--", "sleep", "9"]) == 124


def test_wrong_use_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "run"]) == 2
    assert "needs a command" in capsys.readouterr().err
    assert run(["sandbox", "run", "--memory-mb", "1", "--", "true"]) == 2
    assert "memory_mb" in capsys.readouterr().err


def test_reap_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sandbox", "reap", "--json"]) == 0
    (counts,) = json.loads(capsys.readouterr().out)
    assert set(counts) == {"groups", "snapshots", "busy"}


def test_accounts_of_a_dataset_are_printed_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = Dataset.create_or_open(tmp_path / "d")

    def commit(shard: int, **counts: int) -> None:
        place = {"invocation_id": "i", "stage": "rollouts", "shard": shard, "seconds": 0.0}
        rows = [
            place | {"name": "sandboxes:" + name.replace("_as_", ":"), "count": count}
            for name, count in counts.items()
        ]
        rows.append(place | {"name": "shard", "count": 99})
        dataset.commit(run_id="r", stage="rollouts", shard=shard, tables={"timings": rows})

    commit(0, asked=2, held=1, ended_as_clean=1, starts=1, alive=1)
    commit(1, asked=1, held=-1, ended_as_clean=1, ended_as_lost=1, alive=-1, died_as_lost=1)
    assert run(["sandbox", "accounts", "--dataset", str(tmp_path / "d"), "--json"]) == 0
    shown = {row["what"]: row["count"] for row in json.loads(capsys.readouterr().out)}
    assert shown["leases asked for"] == 3
    assert (shown["  - clean"], shown["  - lost"], shown["- alive"]) == (2, 1, 0)
    commit(2, asked=1)
    assert run(["sandbox", "accounts", "--dataset", str(tmp_path / "d")]) == 1
    assert "do not add up" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_live_servers_is_a_count(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_LIVE_SERVERS", "3")
    assert live_servers() == 3
    monkeypatch.setenv("SYNTH_LIVE_SERVERS", given)
    with pytest.raises(ConfigError, match=f"from 1 up, got '{given}'"):
        live_servers()
