"""synth sandbox: a command's output and exit code come through, and wrong use is refused."""

import io
import json
import sys

import pytest

from flows.cli import run
from flows.settings import live_servers
from records.errors import ConfigError


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


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_live_servers_is_a_count(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_LIVE_SERVERS", "3")
    assert live_servers() == 3
    monkeypatch.setenv("SYNTH_LIVE_SERVERS", given)
    with pytest.raises(ConfigError, match=f"from 1 up, got '{given}'"):
        live_servers()
