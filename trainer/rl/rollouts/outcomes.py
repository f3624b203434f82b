"""How an episode ends: each name once, and what it means for the reward.

| outcome | meaning | reward |
|---|---|---|
| `completed` | the environment ended it | the environment's |
| `truncated` | it met its family's budget, a slot's room, or a limit of its own | see below |
| `repeats` | an answer said the same over and over, and was cut there | see below |
| `too_many_turns` | so many answers, and the environment still goes on | 0 |
| `silent` | the policy wrote nothing | none, or 0 by `silence` |
| `endless` | an answer ran to the policy's own limit, below the family's budget | none |
| `environment_error` | the environment raised, or gave what is no step of an episode | none |
| `environment_timeout` | it hung | none |
| `late` | it answered after its time; the answer was dropped | none |
| `reward_no_number`, `reward_out_of_range` | its reward is none | none |
| `outside` | it says itself that the end says nothing about the policy | none |
| `changed` | brought back, it was no longer the same episode | none |
| `too_old` | it was not over after so many iterations | none |

An episode whose answer is to be ranked (`synth.gym.core.ranked`) ends as `completed`, `truncated`
or `repeats` without a reward, which it may be given afterwards.

An answer that is cut is played as it is: it may be worth something, which the reward then says, and
what the policy did not finish is worth 0. Both are marked as truncated; what that costs is for the
objective to say. An episode without a reward never moves the weights.
"""

from collections.abc import Sequence
from typing import Literal

from records.errors import SynthError

LostOutcome = Literal[
    "environment_error",
    "environment_timeout",
    "late",
    "reward_no_number",
    "reward_out_of_range",
    "outside",
    "changed",
    "too_old",
]
"""Ends that say nothing about the policy."""

EpisodeOutcome = (
    Literal["completed", "truncated", "repeats", "too_many_turns", "silent", "endless"]
    | LostOutcome
)

CutReason = Literal["truncated", "repeats"]
"""Why an answer ends where it is."""

LOST: Sequence[LostOutcome] = (
    *("environment_error", "environment_timeout", "late"),
    *("reward_no_number", "reward_out_of_range", "outside", "changed", "too_old"),
)


class LostEpisodeError(SynthError):
    """The episode ends without saying anything about the policy."""

    def __init__(self, outcome: LostOutcome, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome: LostOutcome = outcome
        self.detail = detail


def says_the_same(ids: Sequence[int], *, tokens: int, period: int) -> bool:
    """Whether the last `tokens` repeat one stretch of at most `period` tokens."""
    if len(ids) < tokens:
        return False
    tail = list(ids[-tokens:])
    return any(tail[length:] == tail[:-length] for length in range(1, period + 1))
