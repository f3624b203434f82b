"""What episodes come to: shares with intervals, for each kind of unseen task."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from records.tables.splits import SPLITS
from synth.episode.environment import OUTSIDE
from synth.render.intervals import Interval, wilson

KINDS = {
    "train": "tasks of the training data",
    "heldout_task": "unseen tasks",
    "heldout_tool": "unseen tools",
    "heldout_domain": "unseen domains",
}
"""Split -> how tables call it."""


class EpisodeScore(NamedTuple):
    """One episode, counted."""

    task_id: str
    split: str
    solvable: bool
    """Whether the user goal can be reached with calls; else the right answer is to ask or
    decline."""
    ended: str
    """`termination_reason`."""
    success: bool
    """Every mandatory criterion that code checks is met, and the weighted share is enough."""
    reward: float
    calls: int
    valid_calls: int
    """Written in the template's form, of a tool that is there, with arguments that its schema
    takes."""
    wanted_calls: int
    """Calls of the reference plan."""
    exact_calls: int
    """Those of them that were made with the very same arguments."""
    breaches: int
    """Calls that broke a policy."""
    turns: int
    prompt_tokens: int
    """Of the first prompt."""


class Share(NamedTuple):
    hits: int
    n: int

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        return wilson(self.hits, self.n)


class SplitScores(NamedTuple):
    split: str
    episodes: int
    """Those that say something about the agent."""
    left_aside: int
    """Ended by a failure outside the agent."""
    success: Share
    solved: Share
    """Success on tasks that can be solved: what no apology reaches."""
    valid_calls: Share
    exact_calls: Share
    without_breach: Share
    mean_reward: float | None


def scores_of(played: Sequence[EpisodeScore]) -> list[SplitScores]:
    """A row for each split that was played, in the order of `SPLITS`."""
    return [
        _of_split(split, [p for p in played if p.split == split])
        for split in SPLITS
        if any(p.split == split for p in played)
    ]


def _of_split(split: str, played: Sequence[EpisodeScore]) -> SplitScores:
    counted = [p for p in played if p.ended not in OUTSIDE]

    def share(hits: Callable[[EpisodeScore], int], of: Callable[[EpisodeScore], int]) -> Share:
        return Share(sum(map(hits, counted)), sum(map(of, counted)))

    return SplitScores(
        split=split,
        episodes=len(counted),
        left_aside=len(played) - len(counted),
        success=share(lambda p: p.success, lambda p: 1),
        solved=share(lambda p: p.success and p.solvable, lambda p: p.solvable),
        valid_calls=share(lambda p: p.valid_calls, lambda p: p.calls),
        exact_calls=share(lambda p: p.exact_calls, lambda p: p.wanted_calls),
        without_breach=share(lambda p: not p.breaches, lambda p: 1),
        mean_reward=sum(p.reward for p in counted) / len(counted) if counted else None,
    )


def as_json(scores: Iterable[SplitScores]) -> list[dict[str, Any]]:
    """Shares with their counts and 95% intervals (Wilson)."""
    return [
        {name: _plain(value) for name, value in one._asdict().items()} | {"kind": KINDS[one.split]}
        for one in scores
    ]


def _plain(value: Any) -> Any:
    if not isinstance(value, Share):
        return value
    return {"hits": value.hits, "n": value.n, "share": value.value, "interval": value.interval}


def table(scores: Sequence[SplitScores]) -> str:
    """As markdown, a column a split: three or four of them fit on a page."""
    rows = {
        "scored on": [KINDS[one.split] for one in scores],
        "episodes": [str(one.episodes) for one in scores],
        "task success": [told(one.success) for one in scores],
        "success on solvable tasks": [told(one.solved) for one in scores],
        "valid calls": [told(one.valid_calls) for one in scores],
        "exact calls": [told(one.exact_calls) for one in scores],
        "no policy broken": [told(one.without_breach) for one in scores],
    }
    head, *lines = (f"| {' | '.join([name, *cells])} |" for name, cells in rows.items())
    return "\n".join([head, f"|{'---|' * (len(scores) + 1)}", *lines])


def told(share: Share) -> str:
    """`0.52 (0.44 to 0.60)`: the share and its interval."""
    if share.value is None:
        return "-"
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"
