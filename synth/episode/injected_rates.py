"""How often each injected outcome befell a call, of the calls that could have it.

Most calls cannot have most outcomes: only reads come back changed, a result without a list cannot
be empty, and nothing is stale before something was changed. The declared weights are chances of a
call that can have the outcome, so a share over all calls would look too small.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.tools.fault_injection import (
    BEFORE_EXECUTION,
    READS_ONLY,
    Draw,
    OutcomeKind,
    reshaped,
)
from synth.render.intervals import wilson
from synth.rubrics.episode import is_read_only

KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)

_COLUMNS = (
    *("trajectory_id", "call_index", "tool_id", "actor", "executed_by", "is_error"),
    *("injected_outcome", "observation", "state_diff"),
)


def injected_rates(dataset: Dataset) -> list[Row]:
    """A row for each outcome that befell a call or could have: `outcome`, `could` (calls),
    `injected` (of them), `share` with `low` and `high` of its 95% interval. Empty without calls.

    What a call would have returned that met another outcome is not known: it counts for the errors
    that take the place of a call, and not among those that could have been changed.
    """
    read_only = {
        row["tool_id"]: is_read_only(row)
        for row in dataset.rows("tools", ["tool_id", "annotations"])
    }
    could: Counter[str] = Counter()
    injected: Counter[str] = Counter()
    for rows in dataset.in_commits("tool_calls", _COLUMNS):
        changed = ""  # the trajectory in which something was changed already
        for call in sorted(rows, key=lambda row: (row["trajectory_id"], row["call_index"])):
            is_changed = changed == call["trajectory_id"]
            if call["actor"] == "agent" and call["executed_by"] is not None:
                could.update(possible(call, read_only, is_changed=is_changed))
                if call["injected_outcome"]:
                    injected[call["injected_outcome"]] += 1
            if call["state_diff"]:
                changed = call["trajectory_id"]
    return [_rate(kind, could[kind], injected[kind]) for kind in KINDS if could[kind]]


def possible(call: Row, read_only: Mapping[str, bool], *, is_changed: bool) -> Iterable[str]:
    """The outcomes that the agent's call had or could have had. `read_only` by tool; `is_changed`:
    something was changed before it."""
    yield from sorted(BEFORE_EXECUTION)
    had = call["injected_outcome"]
    if had in READS_ONLY:
        yield had
    if had is not None or call["is_error"] or not read_only.get(call["tool_id"]):
        return
    for kind in sorted(READS_ONLY - {"stale"}):
        if reshaped(Draw(kind, random.Random(0)), call["observation"]) is not None:
            yield kind
    if is_changed and call["executed_by"] == "state_machine":  # which alone knows the state before
        yield "stale"


def _rate(kind: OutcomeKind, could: int, injected: int) -> Row:
    interval = wilson(injected, could)
    return {
        "outcome": kind,
        "could": could,
        "injected": injected,
        "share": injected / could,
        **interval._asdict(),
    }
