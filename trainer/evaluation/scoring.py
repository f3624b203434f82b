"""Scores: what the episodes of a model come to, by kind of unseen task, and the files they fill.

`scores.json`, `scores.md` and `episodes.jsonl` in the folder that the config names.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from records.chat.declarations import Style
from records.files import write_atomic
from records.tables.splits import SPLITS
from synth.episode.environment import OUTSIDE
from synth.render.intervals import Interval, clustered
from trainer.data.chat_format import format_of
from trainer.evaluation.playing import EpisodeScore, EvalConfig, Evaluated, evaluate
from trainer.inference.policies import ModelPolicy, Policy
from trainer.inference.sampler import Sampling
from trainer.model.exchange import model_folder
from trainer.training.devices import Device

SCORES, TABLE, EPISODES, JOURNAL = (
    "scores.json",
    "scores.md",
    "episodes.jsonl",
    "journal.sqlite",
)

KINDS = {
    "train": "tasks of the training data",
    "heldout_values": "seen tools, new values",
    "heldout_task": "new combination of tools",
    "heldout_tool": "new tools",
    "heldout_domain": "new domains",
}
"""Split -> how tables call it."""


class ScoreSettings(EvalConfig):
    """The tasks that a model is scored on, and how it answers."""

    declarations: Style | None = None
    """How tools are declared; None: as in the model's training run, else JSON."""
    constrained: bool = False
    """Only answers that keep the template and call declared tools with arguments of their types can
    be written: see `trainer.inference.json_grammar` for what is left to the tools."""
    sampling: Sampling = Sampling()
    """How tokens are drawn; by default the likeliest is taken."""
    slots: int = Field(default=32, ge=1, le=1024)
    """Conversations whose cache is kept at a time."""
    slot_tokens: int | None = Field(default=None, ge=2)
    """Tokens that a conversation may have; None: what the model takes."""
    device: Device = "auto"
    """auto: a GPU where torch sees one."""


class ScoreConfig(ScoreSettings):
    """One model, scored."""

    model: str
    """Folder of a training run, or of an exported model."""
    out: str
    """Folder for the scores and the conversations behind them."""


class Share(NamedTuple):
    hits: int
    n: int
    interval: Interval
    """95%, by bootstrap over the clusters of the episodes."""

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None


class SplitScores(NamedTuple):
    split: str
    episodes: int
    """Those that say something about the agent."""
    clusters: int
    """Domains that their tasks are from, or new tools that they take."""
    left_aside: int
    """Ended by a failure outside the agent."""
    success: Share
    solved: Share
    """Success on tasks that can be solved: what no apology reaches."""
    left_open: Share
    """Episodes that a judge would have to decide: see `EpisodeScore.left_open`."""
    truthful: Share
    """Episodes without a statement to the user that the records contradict."""
    all_shown: Share
    """Episodes in which no value was told that nothing shows."""
    valid_calls: Share
    exact_calls: Share
    without_breach: Share
    mean_calls: float | None
    """Calls of the reference plan."""
    mean_reward: float | None


class Scored(NamedTuple):
    folder: Path
    scores: list[SplitScores]
    left_out: dict[str, int]
    """Tasks that were not played, by reason."""


def score(config: ScoreConfig, *, on_played: Callable[[int, int], None] | None = None) -> Scored:
    """ConfigError for a folder without a model, or a dataset without tasks."""
    out = Path(config.out)
    return score_policy(policy_of(config), config, out, about=config.model, on_played=on_played)


def policy_of(config: ScoreConfig) -> ModelPolicy:
    """The model that is to be scored."""
    chat = format_of(Path(config.model))
    if config.declarations is not None:
        chat = chat.model_copy(update={"declarations": config.declarations})
    return ModelPolicy(
        model_folder(Path(config.model)),
        config.sampling,
        chat=chat,
        constrained=config.constrained,
        slots=config.slots,
        slot_tokens=config.slot_tokens,
        device=config.device,
    )


def score_policy(
    policy: Policy,
    config: EvalConfig,
    out: Path,
    *,
    about: str,
    on_played: Callable[[int, int], None] | None = None,
) -> Scored:
    """Any policy on the same tasks; `about` says in the files whose scores they are."""
    done = evaluate(policy, config, journal=out / JOURNAL, on_played=on_played)
    scores = scores_of(done.played)
    _write(out, config, done, scores, about)
    return Scored(out, scores, done.left_out)


def _write(
    out: Path, config: EvalConfig, done: Evaluated, scores: list[SplitScores], about: str
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "of": about,
        "config": config.model_dump(mode="json"),
        "scores": as_json(scores),
        "left_out": done.left_out,
        "episodes": [one._asdict() for one in done.played],
    }
    write_atomic(out / SCORES, json.dumps(found, indent=1).encode())
    write_atomic(out / TABLE, (table(scores) + "\n").encode())
    lines = (json.dumps(c, ensure_ascii=False) for c in done.conversations)
    write_atomic(out / EPISODES, ("\n".join(lines) + "\n").encode())


def scores_of(played: Iterable[EpisodeScore]) -> list[SplitScores]:
    """A row for each split that was played, in the order of `SPLITS`."""
    played = list(played)
    return [
        _of_split(split, [p for p in played if p.split == split])
        for split in SPLITS
        if any(p.split == split for p in played)
    ]


def _of_split(split: str, played: Sequence[EpisodeScore]) -> SplitScores:
    counted = [p for p in played if p.ended not in OUTSIDE]

    def share(hits: Callable[[EpisodeScore], int], of: Callable[[EpisodeScore], int]) -> Share:
        return share_of_episodes(counted, hits, of)

    def mean(value: Callable[[EpisodeScore], float]) -> float | None:
        return sum(map(value, counted)) / len(counted) if counted else None

    return SplitScores(
        split=split,
        episodes=len(counted),
        clusters=len({p.cluster for p in counted}),
        left_aside=len(played) - len(counted),
        success=share(lambda p: p.success, lambda p: 1),
        solved=share(lambda p: p.success and p.solvable, lambda p: p.solvable),
        left_open=share(lambda p: p.left_open, lambda p: 1),
        truthful=share(lambda p: not p.false_statements, lambda p: 1),
        all_shown=share(lambda p: not p.unshown_values, lambda p: 1),
        valid_calls=share(lambda p: p.valid_calls, lambda p: p.calls),
        exact_calls=share(lambda p: p.exact_calls, lambda p: p.wanted_calls),
        without_breach=share(lambda p: not p.breaches, lambda p: 1),
        mean_calls=mean(lambda p: p.wanted_calls),
        mean_reward=mean(lambda p: p.reward),
    )


def share_of_episodes(
    counted: Sequence[EpisodeScore],
    hits: Callable[[EpisodeScore], int],
    of: Callable[[EpisodeScore], int] = lambda p: 1,
) -> Share:
    """Of what the episodes count, with its interval over their clusters."""
    counts = [(p.cluster, int(hits(p)), int(of(p))) for p in counted]
    return Share(sum(h for _, h, _ in counts), sum(n for *_, n in counts), clustered(counts))


def as_json(scores: Iterable[SplitScores]) -> list[dict[str, Any]]:
    """Shares with their counts and 95% intervals."""
    return [
        {name: _plain(value) for name, value in one._asdict().items()} | {"kind": KINDS[one.split]}
        for one in scores
    ]


def _plain(value: Any) -> Any:
    if not isinstance(value, Share):
        return value
    return {"hits": value.hits, "n": value.n, "share": value.value, "interval": value.interval}


def table(scores: Sequence[SplitScores]) -> str:
    """As markdown, a column a split: four or five of them fit on a page."""
    rows = {
        "scored on": [KINDS[one.split] for one in scores],
        "episodes": [str(one.episodes) for one in scores],
        "domains, or new tools": [str(one.clusters) for one in scores],
        "calls of the reference plan, mean": [_number(one.mean_calls) for one in scores],
        "task success": [told(one.success) for one in scores],
        "success on solvable tasks": [told(one.solved) for one in scores],
        "left open by code": [told(one.left_open) for one in scores],
        "nothing false told": [told(one.truthful) for one in scores],
        "every value told is shown": [told(one.all_shown) for one in scores],
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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
