"""The figures of `benchmarks.teaching_text` as Markdown: losses of each arm, paired differences.

A loss is nats a token over all tokens of the rewrites that were kept back, of all seeds together.
Intervals are of the bootstrap over documents: a document comes with all its tokens, seeds and arms.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measured import machine

RESAMPLES = 10_000

Seeds = Mapping[int, Mapping[str, Mapping[str, Any]]]
"""Seed -> name of an arm, or `start` -> what its run told."""

Counted = Mapping[str, tuple[float, int]]
"""Document -> (nats, tokens) over all seeds."""

OWN, OTHER = "own half", "other half"
"""Of each document the arm that reads its rewrites, and the one that reads those of others."""

TOLD = {
    "start": "pretrained only",
    "raw": "the documents, over and over",
    "honest": "documents and faithful rewrites",
    "false": "documents and changed rewrites",
    OWN: "documents and rewrites of half of them, its own among these",
    OTHER: "documents and rewrites of the other half",
}
"""Rows of the tables, in their order."""

COMPARED = (
    ("honest", "raw"),
    ("false", "raw"),
    ("honest", "false"),
    (OWN, OTHER),
    (OTHER, "raw"),
    (OWN, "raw"),
)
"""The first less the second: below zero, the first teaches more."""


class Difference(NamedTuple):
    """Nats a token, with the 95% interval of the bootstrap."""

    mean: float
    low: float
    high: float

    def told(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def report(languages: Mapping[str, str], seeds: Seeds) -> str:
    """`languages`: of each document."""
    english = {name for name, language in languages.items() if language == "en"}
    kinds: dict[str, Callable[[str], Counted]] = {
        "all tokens": lambda arm: counted(seeds, arm),
        "English documents": lambda arm: _of(counted(seeds, arm), english),
        "tokens of numbers": lambda arm: counted(seeds, arm, numbers=True),
    }
    made = machine()
    lines = [
        f"{len(languages)} documents ({len(english)} English), {len(seeds)} seeds. Commit "
        f"{made['commit']}, {made['hardware']}, one thread.",
        "",
        f"| the first less the second, nats a token | {' | '.join(kinds)} |",
        f"|---|{'---|' * len(kinds)}",
    ]
    for first, second in COMPARED:
        cells = [difference(of(first), of(second)).told() for of in kinds.values()]
        lines.append(f"| {first} less {second} | {' | '.join(cells)} |")
    lines += ["", f"| nats a token | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for arm, words in TOLD.items():
        cells = [f"{loss(of(arm)):.3f}" for of in kinds.values()]
        lines.append(f"| {arm}: {words} | {' | '.join(cells)} |")
    sizes = [f"{sum(n for _, n in of('raw').values()):,} tokens" for of in kinds.values()]
    lines += [f"| measured on, all seeds | {' | '.join(sizes)} |", "", *_by_seed(seeds)]
    return "\n".join([*lines, "", *_on_the_way(seeds), "", *_readings(seeds)])


def counted(seeds: Seeds, arm: str, *, numbers: bool = False, point: int = -1) -> Counted:
    """The losses of an arm at one of the places where it was measured, added up over seeds."""
    found: dict[str, tuple[float, int]] = {}
    for arms in seeds.values():
        for name in _losses(arms["raw"]):
            one = _losses(arms[_arm_for(arms, arm, name)], point)[name]
            nats, tokens = one[2:] if numbers else one[:2]
            before = found.get(name, (0.0, 0))
            found[name] = before[0] + nats, before[1] + tokens
    return found


def _arm_for(arms: Mapping[str, Mapping[str, Any]], arm: str, name: str) -> str:
    if arm not in (OWN, OTHER):
        return arm
    half = arms["raw"]["half"][name]
    return f"half {half if arm == OWN else 1 - half}"


def _losses(run: Mapping[str, Any], point: int = -1) -> Mapping[str, Sequence[Any]]:
    return run["points"][point]["losses"] if "points" in run else run["losses"]


def _of(found: Counted, names: set[str]) -> Counted:
    return {name: one for name, one in found.items() if name in names}


def loss(found: Counted) -> float:
    """Nats a token."""
    nats, tokens = (sum(values) for values in zip(*found.values(), strict=True))
    return nats / tokens


def difference(first: Counted, second: Counted) -> Difference:
    """Of the losses over the same documents, which are drawn again together."""
    names = sorted(first)
    one, other = (np.array([side[name] for name in names]) for side in (first, second))
    drawn = np.random.default_rng(0).integers(len(names), size=(RESAMPLES, len(names)))
    sums = [side[drawn].sum(axis=1) for side in (one, other)]
    differences = sums[0][:, 0] / sums[0][:, 1] - sums[1][:, 0] / sums[1][:, 1]
    low, high = np.quantile(differences, (0.025, 0.975))
    return Difference(loss(first) - loss(second), float(low), float(high))


def _by_seed(seeds: Seeds) -> list[str]:
    lines = [f"| seed | {' | '.join(TOLD)} |", f"|---|{'---|' * len(TOLD)}"]
    for seed, arms in seeds.items():
        cells = [f"{loss(counted({seed: arms}, arm)):.3f}" for arm in TOLD]
        lines.append(f"| {seed} | {' | '.join(cells)} |")
    return lines


def _on_the_way(seeds: Seeds) -> list[str]:
    """An arm that reads too often is best before its end."""
    arms = [arm for arm in TOLD if arm != "start"]
    points = next(iter(seeds.values()))["raw"]["points"]
    lines = [f"| tokens learnt | {' | '.join(arms)} |", f"|---|{'---|' * len(arms)}"]
    for number, point in enumerate(points):
        cells = [f"{loss(counted(seeds, arm, point=number)):.3f}" for arm in arms]
        lines.append(f"| {point['learnt']:,} | {' | '.join(cells)} |")
    return lines


def _readings(seeds: Seeds) -> list[str]:
    """What each run read, and how much of what it was measured on stood there word for word."""
    lines = [
        "| arm | tokens of an epoch | epochs | tokens learnt | training loss, last tenth | skipped "
        "steps | runs of 8 words kept back that were read | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for arm in (name for name in next(iter(seeds.values())) if name != "start"):
        runs = [arms[arm] for arms in seeds.values()]
        shared = [pair for run in runs for pair in run["shared_runs"].values()]
        hits, of = (sum(values) for values in zip(*shared, strict=True))
        cells = (
            _span(run["epoch_tokens"] for run in runs),
            _span((run["epochs"] for run in runs), ".1f"),
            _span(run["learnt"] for run in runs),
            _span((run["training_loss"] for run in runs), ".3f"),
            _span(run["skipped"] for run in runs),
            f"{hits / of:.1%}",
            _span((run["seconds"] for run in runs), ".0f"),
        )
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return lines


def _span(values: Any, form: str = ",") -> str:
    """The least and the most of the seeds."""
    found = list(values)
    low, high = (format(value, form) for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"
