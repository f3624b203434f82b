"""The pages: what reinforcement learning added, shortfalls first; and what its parts are worth."""

from collections.abc import Sequence
from statistics import fmean

from benchmarks.measured import machine
from benchmarks.proof.report import MEASURES
from benchmarks.rl_proof.paired import Difference, difference_of, pairs_of, told
from benchmarks.rl_proof.runs import BASE, ArmRun
from trainer.evaluation.playing import EpisodeScore
from trainer.evaluation.scoring import KINDS
from trainer.training.metrics import MetricsLine

AIMED, AIM = "heldout_task", 0.10
"""Points of task success on new combinations of tools."""

WORDS = {"free": "without constraints", "constrained": "constrained decoding"}
"""Name of a score -> how its tables call it."""

BEFORE = {"free": BASE, "constrained": f"{BASE}-constrained"}
"""Name of a score -> that of the proof."""


ARM_COLUMNS = (
    *("arm", "iterations", "reward, first and last third", "tokens an episode, last third"),
    *("cut off, last third", "success against the start", "success against the whole"),
    "valid calls against the whole",
)


def page(run: ArmRun, *, short: bool) -> str:
    """Markdown. In the short form no more than that the parts work."""
    compared = {name: pairs_of(*_episodes(run, name)) for name in WORDS}
    first = YOUNG if short else _shortfalls(compared["free"])
    parts = [
        "## What reinforcement learning adds to the model of the proof",
        first,
        _made(run, short=short),
        *(_table(WORDS[name], pairs) for name, pairs in compared.items()),
        _curve(run),
    ]
    return "\n\n".join(parts) + "\n"


YOUNG = "**The short form: every part at work.** A few episodes teach nothing."


def _episodes(run: ArmRun, name: str) -> tuple[list[EpisodeScore], list[EpisodeScore]]:
    after = [EpisodeScore(**one) for one in run.scores(name)["episodes"]]
    return run.proof.episodes(BEFORE[name]), after


def _shortfalls(pairs: Sequence[tuple[EpisodeScore, EpisodeScore]]) -> str:
    own = [pair for pair in pairs if pair[1].split == AIMED]
    success = difference_of(own, *MEASURES["Task success"])
    valid = difference_of(own, *MEASURES["Valid calls"])
    shown = success.interval.low > 0
    verdict = "not shown"
    if shown and success.difference is not None:
        verdict = "reached" if success.difference >= AIM else "shown, and below the aim"
    kept = "fewer" if valid.interval.high < 0 else "whether fewer is not certain"
    if valid.difference is not None and valid.difference >= 0:
        kept = "not fewer"
    return (
        f"**Aim: {AIM:+.2f} of task success on {KINDS[AIMED]}: {verdict}.** Success "
        f"{told(success)} over {success.tasks} tasks ({success.gained} gained, {success.lost} "
        f"lost); valid calls {told(valid)}: {kept}. One seed."
    )


def _made(run: ArmRun, *, short: bool) -> str:
    made, took = machine(), run.seconds()
    minutes = ", ".join(f"{what} {seconds / 60:.1f}" for what, seconds in took.items())
    lines = run.lines()
    return (
        f"    python -m benchmarks.rl_proof SEED_FOLDER{' --short' if short else ''}\n\n"
        f"Commit {made['commit']}, {made['hardware']}, load at the start {made['load']}; seed "
        f"{run.proof.seed}. {sum(took.values()) / 60:.1f} minutes ({minutes}): {len(lines)} "
        f"iterations, {sum(line['samples'] for line in lines):,} episodes, "
        f"{lines[-1]['tokens']:,} tokens learnt from; the weights after {run.exported()} iterations"
        " are scored, which the validation share chose. The tasks are those that the proof scored "
        "the fine-tuned model on, the comparison is task for task, intervals are 95% by bootstrap "
        "over domains, or over new tools."
    )


def _table(words: str, pairs: Sequence[tuple[EpisodeScore, EpisodeScore]]) -> str:
    splits = [split for split in KINDS if any(pair[1].split == split for pair in pairs)]
    lines = [
        f"### {words.capitalize()}: before to after, difference\n",
        f"| | {' | '.join(KINDS[split] for split in splits)} |",
        f"|---|{'---|' * len(splits)}",
    ]
    for title, (hits, of) in MEASURES.items():
        cells = [
            told(difference_of([p for p in pairs if p[1].split == split], hits, of))
            for split in splits
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _curve(run: ArmRun) -> str:
    """The run in parts of equal length, and its validations."""
    lines = run.lines()
    columns = {
        "reward": "reward of training episodes",
        "truncated": "cut off",
        "drawn": "tokens an episode",
        "entropy": "entropy, nats",
        "tokens_per_s": "tokens/s drawn",
    }
    size = max(1, -(-len(lines) // 5))
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    table = [
        "### The run\n",
        f"| iterations | {' | '.join(columns.values())} |",
        f"|---|{'---|' * len(columns)}",
        *(
            f"| {part[0]['step']} to {part[-1]['step']} | "
            f"{' | '.join(_mean(part, name) for name in columns)} |"
            for part in parts
        ),
    ]
    validated = ", ".join(f"{reward:.3f} after {step}" for step, reward in run.validations())
    return "\n".join(table) + f"\n\nMean reward on the validation tasks: {validated or 'none'}."


def _mean(lines: Sequence[MetricsLine], name: str) -> str:
    values = [line[name] for line in lines if line.get(name) is not None]
    return f"{fmean(values):.3g}" if values else "-"


def arms_page(runs: Sequence[ArmRun], *, minutes: float, short: bool) -> str:
    """Markdown: the first of the arms is what the others are compared with."""
    whole = runs[0]
    made = machine()
    before = [EpisodeScore(**one) for one in whole.scores("free")["episodes"]]
    started = whole.proof.episodes(BASE)
    lines = [
        "## What the parts of the algorithm are worth",
        "",
        YOUNG
        if short
        else f"    python -m benchmarks.rl_proof SEED_FOLDER --arms --arm-minutes {minutes:g}",
        "",
        f"Commit {made['commit']}, {made['hardware']}; seed {whole.proof.seed}; each arm learns "
        f"for {'a few iterations' if short else f'{minutes:g} minutes'} from the fine-tuned model. "
        "Success and valid calls are on seen tools with new values and on new combinations; "
        "differences are task for task, with 95% "
        "intervals by bootstrap over domains. One seed: an interval that holds 0 shows nothing.",
        "",
        f"| {' | '.join(ARM_COLUMNS)} |",
        f"|{'---|' * len(ARM_COLUMNS)}",
    ]
    for run in runs:
        after = [EpisodeScore(**one) for one in run.scores("free")["episodes"]]
        done = run.lines()
        third = max(1, len(done) // 3)
        first, last = done[:third], done[-third:]
        against: list[Difference] = [
            difference_of(pairs_of(started, after), *MEASURES["Task success"]),
            difference_of(pairs_of(before, after), *MEASURES["Task success"]),
            difference_of(pairs_of(before, after), *MEASURES["Valid calls"]),
        ]
        cells = [
            run.arm.words,
            str(len(done)),
            f"{_mean(first, 'reward')}, {_mean(last, 'reward')}",
            _mean(last, "drawn"),
            _mean(last, "truncated"),
            told(against[0]),
            *("-" if run is whole else told(one) for one in against[1:]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
