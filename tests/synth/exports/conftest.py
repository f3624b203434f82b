"""A small dataset that many tests export, and a hub that is never asked."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from tests.synth.small_dataset import conversation, trajectory, write_dataset


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def garbled() -> list[Row]:
    """A call whose arguments are no JSON."""
    messages = conversation()
    messages[2]["tool_calls"][1]["function"]["arguments"] = '{"name": Heron'
    return messages


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rows = [
        (trajectory("a1"), None),
        (trajectory("a2", garbled()), None),
        (trajectory("a3", conversation("Something else, \U0001f6f6 \u2028 please.")), None),
        (trajectory("h1", split="heldout_task"), None),
        (trajectory("h2", split="heldout_domain"), None),
        (trajectory("r1"), "failed_state"),
    ]
    return write_dataset(tmp_path_factory.mktemp("export") / "boats", rows)
