"""What a run has learnt from and what it passed over, by reason: rows of its sources, its steps.

Read from the files of the run, its tokens and its metrics: what was left out or skipped before a
kill is counted by the process that goes on.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from trainer.data.corpus import CUT, LEFT_OUT, open_corpus
from trainer.training.metrics import MetricsLine, read_metrics
from trainer.training.run_folder import TOKENS, known_settings
from trainer.training.step import FAULTS
from trainer.training.validation import SplitCorpus, split_of

VALIDATION = "validation"

MEANINGS = LEFT_OUT | {VALIDATION: "kept for the validation loss"}
"""Why a row is not learnt from -> what that means."""

MOST_NAMED = 3
"""Skipped steps of a reason that are named, else only the first; the curves mark them."""


class AccountLine(NamedTuple):
    what: Literal["rows", "steps", "samples"]
    number: int
    became: Literal["learnt from", "left out", "cut", "taken", "skipped", "played", "ended"]
    """Rows that were cut are among those that are learnt from or validate."""
    reason: str
    """One word to group by; empty for what was not passed over."""
    meaning: str
    """The reason as a sentence has it; of steps, which ones."""


def account_of(folder: Path) -> list[AccountLine]:
    """Of the run in a folder. The rows of every source add up, and so do the steps so far."""
    tokens, share = folder / TOKENS, known_settings(folder)["validation"]["share"]
    return account(split_of(tokens, open_corpus(tokens), share), read_metrics(folder))


def account(split: SplitCorpus, lines: Sequence[MetricsLine]) -> list[AccountLine]:
    """As `account_of`, of what was read from there."""
    skipped: dict[str, list[int]] = {}
    for line in lines:
        if line["skipped"]:
            skipped.setdefault(line["skipped"], []).append(line["step"])
    taken = len(lines) - sum(map(len, skipped.values()))
    counts = [AccountLine("rows", split.training.rows, "learnt from", "", "")]
    left_out = split.training.left_out | ({VALIDATION: split.kept} if split.kept else {})
    for reason, number in sorted(left_out.items()):
        counts.append(AccountLine("rows", number, "left out", reason, MEANINGS.get(reason, "")))
    for what, number in sorted(split.training.cut.items()):
        counts.append(AccountLine("rows", number, "cut", what, CUT.get(what, "")))
    counts.append(AccountLine("steps", taken, "taken", "", ""))
    for reason, steps in sorted(skipped.items()):
        words = "; ".join(filter(None, (FAULTS.get(reason), _named(steps))))
        counts.append(AccountLine("steps", len(steps), "skipped", reason, words))
    return counts


def as_lines(counts: Iterable[AccountLine]) -> list[str]:
    """A line each for rows and steps: `rows: 51 learnt from; left out: 6 held_out`."""
    made: dict[str, str] = {}
    for one in counts:
        if not one.reason:
            made[one.what] = f"{one.what}: {one.number:,} {one.became}"
        else:
            first = f"; {one.became}:" not in made[one.what]
            made[one.what] += f"; {one.became}: " if first else ", "
            made[one.what] += f"{one.number:,} {one.reason}"
    return list(made.values())


def _named(steps: Sequence[int]) -> str:
    if len(steps) > MOST_NAMED:
        return f"first at step {steps[0]}"
    return f"at step {', '.join(map(str, steps))}"
