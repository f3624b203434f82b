"""The page of the proof: what falls short first, then every row by kind of task, seed by seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from benchmarks.measured import machine
from benchmarks.proof.overlap import KindOverlap, overlap_of
from benchmarks.proof.seed_run import CONFIGS, SeedRun
from offline_llm.settings.rates import CLUMSY
from records.settings import read_settings
from records.store.dataset import Dataset
from synth.episode.environment import OUTSIDE
from synth.render.intervals import Interval, clustered
from synth.rubrics.criteria import Rubric
from synth.rubrics.statements.statements import statements_of
from synth.rubrics.statements.unshown import plainly_told, unshown_values
from trainer.evaluation.playing import EpisodeScore
from trainer.evaluation.scoring import KINDS, Share, share_of_episodes, told

POLICIES = {
    "sft": "fine-tuned on accepted trajectories",
    "sft-constrained": "the same, constrained decoding",
    "unfiltered": "fine-tuned on all trajectories, as many tokens",
    "drilled": "pretrained only, made-up conversations included",
    "nearest": "nearest training example",
    "slots": "copies slots, learns nothing",
    "teacher": "the teacher: offline model, clumsy",
}
"""Rows of the tables, in their order."""

AIMS = {"heldout_task": 0.60, "heldout_tool": 0.50, "heldout_domain": 0.30}
"""Task success without constraints, by kind."""

VALID_CALLS_AIM = 0.95

LEAST_NEW = {"heldout_tool": 20, "heldout_domain": 10}
"""New tools and new domains that a seed's scored tasks are from, at least."""

SEEDS = 3
"""That a proof has when it is whole."""

YOUNG = (
    "**The short form: every part at work.** The models have seen 20 steps and can do nothing yet; "
    "`make proof` is the measurement."
)

Count = Callable[[EpisodeScore], int]

MEASURES: Mapping[str, tuple[Count, Count]] = {
    "Task success": (lambda p: p.success, lambda p: 1),
    "Task success, of tasks that can be solved": (
        lambda p: p.success and p.solvable,
        lambda p: p.solvable,
    ),
    "Episodes that code leaves open, no success": (lambda p: p.left_open, lambda p: 1),
    "Valid calls": (lambda p: p.valid_calls, lambda p: p.calls),
    "Calls of the reference plan made with the same arguments": (
        lambda p: p.exact_calls,
        lambda p: p.wanted_calls,
    ),
    "Episodes in which nothing false was told": (
        lambda p: not p.false_statements and not p.unshown_values,
        lambda p: 1,
    ),
    "Episodes in which no policy was broken": (lambda p: not p.breaches, lambda p: 1),
}


def report(runs: Sequence[SeedRun], *, short: bool) -> str:
    """Markdown. In the short form no more than that the parts work."""
    played = {name: [_episodes(run, name) for run in runs] for name in POLICIES}
    there = {p.split for run in played["sft"] for p in run}
    splits = [split for split in KINDS if split in there]
    tables = ["Task success"] if short else [*MEASURES]
    parts = [
        "# Does the data teach?",
        YOUNG if short else shortfalls(played, splits),
        _made(runs, short=short),
        _tasks(runs, played["sft"], splits),
        *(_table(title, played, splits) for title in tables),
        *(() if short else (_filtering(played, splits), parts_of_combinations(played["sft"]))),
        "## What it took\n\n" + "\n".join(map(_cost, runs)),
    ]
    return "\n\n".join(parts) + "\n"


def _episodes(run: SeedRun, name: str) -> list[EpisodeScore]:
    """Those that say something about the agent."""
    found = teacher_episodes(run) if name == "teacher" else run.episodes(name)
    return [one for one in found if one.ended not in OUTSIDE]


def shortfalls(played: Mapping[str, Sequence[list[EpisodeScore]]], splits: Sequence[str]) -> str:
    """The first line says how many seeds ran and what is not reached. `played`: policy -> episodes
    of each seed."""
    all_of = {name: [p for run in runs for p in run] for name, runs in played.items()}
    wanted = [("Task success", split, aim) for split, aim in AIMS.items()]
    wanted += [("Valid calls", split, VALID_CALLS_AIM) for split in splits]
    missed, reached = [], []
    for measure, split, aim in wanted:
        share = _share(all_of["sft"], measure, split)
        words = f"{measure.lower()} on {KINDS[split]}: {told(share)}, aim {aim:.2f}"
        good = share.value is not None and share.value >= aim
        (reached if good else missed).append(words)
    missed += _too_few(played["sft"])
    seeds = len(played["sft"])
    ran = f"{seeds} of {SEEDS} seeds ran" if seeds < SEEDS else f"{seeds} seeds ran"
    words = "; ".join(missed) or f"nothing, all {len(wanted)} aims are reached"
    lines = [f"**{ran}. Not reached: {words}.**", ""]
    lines += [f"- {words}" for words in _beaten_by(all_of, splits)]
    lines += [f"- reached: {words}" for words in reached]
    return "\n".join(lines).rstrip()


def _share(episodes: Sequence[EpisodeScore], measure: str, split: str) -> Share:
    return share_of_episodes([p for p in episodes if p.split == split], *MEASURES[measure])


def _too_few(seeds: Sequence[list[EpisodeScore]]) -> list[str]:
    """Where a seed's scored tasks are from fewer new tools or domains than a proof needs."""
    found = []
    for split, least in LEAST_NEW.items():
        few = min(len({p.cluster for p in run if p.split == split}) for run in seeds)
        if few < least:
            found.append(f"{KINDS[split]} that are scored: {few} in a seed, at least {least}")
    return found


def _beaten_by(all_of: Mapping[str, list[EpisodeScore]], splits: Sequence[str]) -> list[str]:
    """Where a policy that was not fine-tuned on accepted data does as well."""
    found = []
    for split in splits:
        own = _share(all_of["sft"], "Task success", split)
        for name in ("unfiltered", "drilled", "nearest", "slots"):
            other = _share(all_of[name], "Task success", split)
            if other.value is not None and other.value >= (own.value or 0.0):
                both = f"{told(other)} against {told(own)}"
                found.append(f"as good or better on {KINDS[split]}: {POLICIES[name]}, {both}")
    return found


def _made(runs: Sequence[SeedRun], *, short: bool) -> str:
    made = machine()
    command = f"python -m benchmarks.proof --seeds {len(runs)}{' --short' if short else ''}"
    (clumsiness,) = CLUMSY.values()
    return (
        f"    {command}\n\nCommit {made['commit']}, {made['hardware']}, load at the start "
        f"{made['load']}. Data by the **offline model**, whose language is regular; a real model's "
        "data would be harder to learn from and worth more. It calls a tool that is not there in "
        f"{clumsiness.unknown_tool:.0%} of its calls and leaves out an argument in "
        f"{clumsiness.leaves_out_argument:.0%}: the declared fault rate, at which the effect of "
        "filtering is reported as found. An episode fails for a number, date or id that nothing "
        "shows, and for a word told as a field's value that the field has nowhere; other false "
        "words are not seen (`synth/rubrics/statements/unshown.py`). Intervals are 95%, by "
        "bootstrap over domains, or over the new tools; behind them each seed."
    )


def _tasks(
    runs: Sequence[SeedRun], played: Sequence[list[EpisodeScore]], splits: Sequence[str]
) -> str:
    """What is scored, and how much of it stands in the training data."""
    overlaps = [
        overlap_of(Dataset.open(run.data), own) for run, own in zip(runs, played, strict=True)
    ]
    episodes = [p for own in played for p in own]
    lines = [
        "## What is scored\n",
        f"| | {' | '.join(KINDS[split] for split in splits)} |",
        f"|---|{'---|' * len(splits)}",
        _row("tasks", splits, lambda s: str(sum(o[s].tasks for o in overlaps))),
        _row("domains, or new tools", splits, lambda s: _clusters(episodes, s)),
        _row(
            "of two user goals", splits, lambda s: _sum(overlaps, s, lambda o: o.goals["moderate"])
        ),
        _row("calls of the reference plan, mean", splits, lambda s: _mean_calls(overlaps, s)),
        _row(
            "tasks that take tools, all of them in training plans",
            splits,
            lambda s: _sum(overlaps, s, lambda o: o.known_tools),
        ),
        _row(
            "tasks whose plan, arguments included, is a training task's",
            splits,
            lambda s: _sum(overlaps, s, lambda o: o.plans),
        ),
        _row(
            "calls that stand in a training task's plan",
            splits,
            lambda s: _sum(overlaps, s, lambda o: o.calls_seen),
        ),
    ]
    return "\n".join(lines)


def _row(title: str, splits: Sequence[str], cell: Callable[[str], str]) -> str:
    return f"| {title} | {' | '.join(cell(split) for split in splits)} |"


def _clusters(episodes: Iterable[EpisodeScore], split: str) -> str:
    return str(len({p.cluster for p in episodes if p.split == split}))


def _sum(
    overlaps: Sequence[Mapping[str, KindOverlap]],
    split: str,
    count: Callable[[KindOverlap], int],
) -> str:
    return str(sum(count(one[split]) for one in overlaps))


def _mean_calls(overlaps: Sequence[Mapping[str, KindOverlap]], split: str) -> str:
    tasks = sum(one[split].tasks for one in overlaps)
    return f"{sum(one[split].calls for one in overlaps) / tasks:.1f}"


def _table(
    title: str, played: Mapping[str, Sequence[list[EpisodeScore]]], splits: Sequence[str]
) -> str:
    lines = [
        f"## {title}\n",
        f"| | {' | '.join(KINDS[split] for split in splits)} |",
        f"|---|{'---|' * len(splits)}",
    ]
    for name, words in POLICIES.items():
        if name == "teacher" and title not in (
            "Task success",
            "Task success, of tasks that can be solved",
        ):
            continue
        lines.append(_row(words, splits, partial(_cell, title, played[name])))
    return "\n".join(lines)


def _cell(title: str, seeds: Sequence[list[EpisodeScore]], split: str) -> str:
    own = [[p for p in run if p.split == split] for run in seeds]
    whole = told(share_of_episodes([p for run in own for p in run], *MEASURES[title]))
    if len(own) == 1:
        return whole
    shares = [share_of_episodes(run, *MEASURES[title]).value for run in own]
    return f"{whole}; {', '.join('-' if s is None else f'{s:.2f}' for s in shares)}"


def _filtering(played: Mapping[str, Sequence[list[EpisodeScore]]], splits: Sequence[str]) -> str:
    """Task for task against the same tokens unfiltered, with the interval of the difference."""
    lines = ["## What filtering is worth\n"]
    for split in splits:
        pairs = [
            (p.cluster, int(p.success) - int(other.success))
            for own, others in zip(played["sft"], played["unfiltered"], strict=True)
            for p, other in _paired(own, others)
            if p.split == split
        ]
        interval = difference_interval(pairs)
        mean = sum(d for _, d in pairs) / len(pairs)
        lines.append(
            f"- {KINDS[split]}: {mean:+.2f} ({interval.low:+.2f} to {interval.high:+.2f}) of task "
            f"success, over {len(pairs)} tasks"
        )
    return "\n".join(lines)


def _paired(
    own: Iterable[EpisodeScore], others: Iterable[EpisodeScore]
) -> Iterable[tuple[EpisodeScore, EpisodeScore]]:
    by_task = {p.task_id: p for p in others}
    return ((p, by_task[p.task_id]) for p in own if p.task_id in by_task)


def difference_interval(pairs: Sequence[tuple[str, int]]) -> Interval:
    """Of the mean of differences from -1 to 1, over clusters: as a share of twice as many."""
    low, high = clustered([(cluster, difference + 1, 2) for cluster, difference in pairs])
    return Interval(2 * low - 1, 2 * high - 1)


def parts_of_combinations(seeds: Sequence[list[EpisodeScore]]) -> str:
    """New combinations apart by whether their parts are known. Without a call there is none."""
    episodes = [p for run in seeds for p in run if p.split == "heldout_task"]
    calling = [p for p in episodes if p.wanted_calls]
    lines = ["## New combinations, by their parts\n"]
    for own, words in (
        ([p for p in calling if p.known_tools], "all parts in training"),
        ([p for p in calling if not p.known_tools], "a part that is not"),
        ([p for p in episodes if not p.wanted_calls], "no call is wanted"),
    ):
        share = share_of_episodes(own, *MEASURES["Task success"])
        lines.append(f"- {words}: {told(share)}, {len(own)} of {len(episodes)} tasks")
    return "\n".join(lines)


def teacher_episodes(run: SeedRun) -> list[EpisodeScore]:
    """How the offline model itself did on the tasks that the models were scored on, by the same
    rule: what code finds met, and no false word to the user."""
    asked = {one.task_id: one for one in run.episodes("sft")}
    dataset = Dataset.open(run.data)
    rubrics = {
        row["task_id"]: Rubric.model_validate(row["rubric"])
        for row in dataset.rows("tasks", ("task_id", "rubric"))
        if row["task_id"] in asked
    }
    rows = [r for r in dataset.rows("trajectories") if r["task_id"] in asked]
    wanted = {row["trajectory_id"] for row in rows}
    calls: dict[str, list[dict[str, object]]] = {}
    for call in dataset.rows("tool_calls"):
        if call["trajectory_id"] in wanted:
            calls.setdefault(call["trajectory_id"], []).append(call)
    undecided = _undecided_by_code(dataset)
    found = []
    for row in rows:
        own = calls.get(row["trajectory_id"], [])
        wrong = sum(s.outcome == "contradicted" for s in statements_of(row["messages"], own))
        unshown = len(unshown_values(row["messages"], own))
        rubric = rubrics[row["task_id"]]
        good = row["objective_reward"] >= rubric.pass_threshold and not wrong and not unshown
        is_open = not plainly_told(rubric, undecided.get(row["trajectory_id"], []), row["messages"])
        found.append(
            asked[row["task_id"]]._replace(
                ended=row["termination_reason"],
                success=good and not is_open,
                left_open=good and is_open,
                false_statements=wrong,
                unshown_values=unshown,
            )
        )
    return found


def _undecided_by_code(dataset: Dataset) -> dict[str, list[str]]:
    """Trajectory -> mandatory criteria that code checks and a judge had to decide."""
    with dataset.connect() as db:
        rows = db.execute(
            "SELECT trajectory_id, list(DISTINCT criterion_id) FROM verdicts "
            "WHERE kind <> 'nl' AND mandatory "
            "AND (passed IS NULL OR checked_by <> 'code') GROUP BY ALL"
        ).fetchall()
    return dict(rows)


def _cost(run: SeedRun) -> str:
    seconds = run.seconds()
    parts = ", ".join(f"{what} {took / 60:.1f}" for what, took in seconds.items())
    total = sum(seconds.values()) / 60
    return f"- seed {run.seed}: {total:.1f} minutes ({parts}); {_sizes(run)}"


STAGE_WORDS = {
    "pretrain": "pretraining",
    "drills": "made-up conversations",
    "sft": "fine-tuning",
}


def _sizes(run: SeedRun) -> str:
    with Dataset.open(run.data).connect() as db:
        [(made, kept)] = db.execute(
            "SELECT count(*), count(*) FILTER (accepted AND split = 'train') FROM trajectories"
        ).fetchall()
    why = run.scores("sft")["left_out"]
    left_out = ", ".join(f"{count} {reason}" for reason, count in why.items()) or "none"
    steps = ", ".join(
        f"{taken:,} of {read_settings(CONFIGS / f'{stage}.toml', ())['steps']:,} steps of {words}"
        for stage, words in STAGE_WORDS.items()
        if (taken := run.steps().get(stage))
    )
    return (
        f"{steps}; {made} trajectories, {kept} of them learnt from; tasks left out of scoring: "
        f"{left_out}"
    )
