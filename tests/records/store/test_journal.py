"""The journal: what a call returned from is there after a kill, and damage is told, not guessed."""

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import SynthError
from records.store.journal import ShardJournal
from tests.examples import examples
from tests.killing import killed_everywhere, run
from tests.records.store.journal_work import STEPS, episode, seen
from tests.records.tables.test_columns import json_values


@given(st.dictionaries(st.text(), json_values, max_size=5), st.text(), st.text())
@settings(deadline=None, max_examples=examples(30))
def test_any_json_object_comes_back(value: dict[str, Any], item: str, step: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        with ShardJournal(path) as journal:
            journal.remember(item, value)
            journal.record(item, step, value)
        with ShardJournal(path) as journal:
            assert journal.cached(item) == journal.observation(item, step) == value
            assert list(journal.cached(item) or {}) == list(value), "in the order it was given"


def test_lone_surrogates_of_a_model_are_kept(tmp_path: Path) -> None:
    with ShardJournal(tmp_path / "a.sqlite") as journal:
        journal.remember("key", {"content": "\ud83d"})
        assert journal.cached("key") == {"content": "\ud83d"}


def test_the_first_word_stands(tmp_path: Path) -> None:
    with ShardJournal(tmp_path / "a.sqlite") as journal:
        assert journal.cached("key") is None
        assert journal.observation("item", "0") is None
        for _ in range(2):
            journal.remember("key", {"n": 1})
            journal.record("item", "0", {"n": 1})
        with pytest.raises(SynthError, match="another answer for key"):
            journal.remember("key", {"n": 2})
        with pytest.raises(SynthError, match="another observation for item at 0"):
            journal.record("item", "0", {"n": 2})
        assert journal.cached("key") == journal.observation("item", "0") == {"n": 1}


@pytest.mark.slow
def test_killed_at_any_statement_it_goes_on_there(tmp_path: Path) -> None:
    answered = [0]
    for folder in killed_everywhere(episode, tmp_path):
        with ShardJournal(folder / "rollouts-00000.sqlite") as journal:
            answers = [journal.cached(f"request {step}") for step in range(STEPS)]
            observations = [journal.observation("item", str(step)) for step in range(STEPS)]
        known = sum(answer is not None for answer in answers)
        assert answers == [{"answer": step} for step in range(known)] + [None] * (STEPS - known)
        assert sum(one is not None for one in observations) in (known, known - 1)
        answered.append(known)
        run(episode, folder)
        with ShardJournal(folder / "rollouts-00000.sqlite") as journal:
            assert [journal.observation("item", str(s)) for s in range(STEPS)] == [
                seen(s) for s in range(STEPS)
            ]
    assert sorted(answered) == answered, "a later kill never knows less"
    assert answered[-1] == STEPS


def test_a_torn_log_loses_its_end_and_nothing_else(tmp_path: Path) -> None:
    path, torn = tmp_path / "a.sqlite", tmp_path / "torn" / "a.sqlite"
    torn.parent.mkdir()
    with ShardJournal(path) as journal:
        for step in range(STEPS):
            journal.record("item", str(step), seen(step))
        log = Path(f"{path}-wal").read_bytes()
        for length in range(0, len(log), 3001):
            shutil.copy(path, torn)
            Path(f"{torn}-wal").write_bytes(log[:length])
            with ShardJournal(torn) as left:
                found = [left.observation("item", str(step)) for step in range(STEPS)]
            known = STEPS - found.count(None)
            assert found == [seen(step) for step in range(known)] + [None] * (STEPS - known)


@pytest.mark.parametrize("damage", ["rubbish", "torn", "zeros", "text"])
def test_a_damaged_file_says_so_and_what_to_do(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.sqlite"
    with ShardJournal(path) as journal:
        for step in range(50):
            journal.record("item", str(step), seen(step))
    data = path.read_bytes()
    path.write_bytes(
        {
            "rubbish": b"no database" * 1000,
            "torn": data[: len(data) // 2],
            "zeros": data[:4096] + bytes(8192) + data[12288:],
            "text": data.replace(b'{"result": 7,', b'{"result" 7, '),
        }[damage]
    )
    with (
        pytest.raises(SynthError, match=r"cannot be used .* delete it and run again"),
        ShardJournal(path) as journal,
    ):
        journal.observation("item", "7")


def test_a_second_writer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("records.store.journal.DYING_S", 0.2)
    with ShardJournal(tmp_path / "a.sqlite") as journal:
        with pytest.raises(SynthError, match="is open in another process"):
            ShardJournal(tmp_path / "a.sqlite")
        journal.remember("key", {})
    ShardJournal(tmp_path / "a.sqlite").close()


def test_an_owner_that_is_still_dying_is_waited_for(tmp_path: Path) -> None:
    """The next run starts at once after a kill, and the killed process is in its last write."""
    command = "import sys; sys.path[:0] = sys.argv[1:2]; from records.store.journal import "
    command += "ShardJournal; ShardJournal(__import__('pathlib').Path(sys.argv[2])).remember('k', "
    command += "{'n': 1}); print('open', flush=True); sys.stdin.read()"
    path, root = tmp_path / "a.sqlite", Path(__file__).parents[3]
    owner = subprocess.Popen(
        [sys.executable, "-c", command, str(root), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        death = threading.Timer(0.5, owner.kill)
        death.start()
        with ShardJournal(path) as journal:
            assert journal.cached("k") == {"n": 1}
        death.join()
    assert owner.returncode == -signal.SIGKILL
