"""synth sandbox: a command's output and exit code come through, and wrong use is refused."""

import io
import json
import os
import pty
import sys
import tty
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


HOSTILE = r"printf '\033[2J\033]0;title\007\233\302\233\342\200\256\rover\016\ta\303\244\n'"
SEEN = rb"\x1b[2J\x1b]0;title\x07\x9b\x9b\u202e\rover\x0e" + "\ta\u00e4".encode()


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_steers_a_terminal_is_made_visible_there_and_nowhere_else(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    command = ["sandbox", "run", "--", "sh", "-c", f"{HOSTILE} {'>&2' * (stream == 'stderr')}"]
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # a line break stays one byte
    with open(theirs, "w", encoding="utf-8") as terminal:  # noqa: PTH123  # a descriptor
        monkeypatch.setattr(sys, stream, terminal)
        assert run(command) == 0
        monkeypatch.undo()
    assert os.read(ours, 4096) == SEEN + b"\n"
    os.close(ours)
    monkeypatch.setattr(sys, "stdin", None)
    assert run(command) == 0
    piped = getattr(capfdbinary.readouterr(), stream[3:])
    assert piped == b"\x1b[2J\x1b]0;title\x07\x9b\xc2\x9b\xe2\x80\xae\rover\x0e\ta\xc3\xa4\n"


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
