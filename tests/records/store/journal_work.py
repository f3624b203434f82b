"""Work for child processes: an episode that journals as it goes and goes on where it died."""

from pathlib import Path

from records.store.journal import ShardJournal

STEPS = 4


def seen(step: int) -> dict:
    return {"result": step, "text": "x" * 5000}


def episode(folder: Path) -> None:
    with ShardJournal(folder / "rollouts-00000.sqlite") as journal:
        for step in range(STEPS):
            if journal.cached(f"request {step}") is None:
                journal.remember(f"request {step}", {"answer": step})
            if journal.observation("item", str(step)) is None:
                journal.record("item", str(step), seen(step))
