"""Which parts of a rewrite the judge should look at: what tells a changed meaning, and how well.

    python -m benchmarks.rewrites.choosing [--embedder FOLDER]

Of the tuning half: for each reason of a flag and each score, the AUC (0.5 is chance) of changed
meanings against faithful parts, with its 95% interval by bootstrap over documents. Beside it `own`,
against the faithful rewrites of the same part alone, and `exact`, of parts with an exact change:
these are planted in the same way, so what tells them apart as well tells that a part is planted,
and not that it means something else. FOLDER is a model of sentence-transformers, which wants
OMP_NUM_THREADS=1 where others work on the machine.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.measured import show
from benchmarks.rewrites import EXACT, NOTES, texts_of
from benchmarks.rewrites.scores import (
    CLASSES,
    EMBEDDED,
    LAYERS,
    WORDING,
    WORDS,
    ReadPart,
    Score,
    Vectors,
    read,
)
from records.digest import digest
from records.sizes import count_tokens
from synth.prompts.templates import render
from synth.rephrasing.fidelity.checks import asks_judge, reasons_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.part_judge import PROMPT
from synth.rephrasing.writing.instructions import instruction

RESAMPLED = 400
FOLDS, SHUFFLES = 10, 5
ALIGNED = (
    *("weakest of the source", "source uncovered", "weakest of the rewrite", "rewrite uncovered"),
)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Parts:
    """The parts of the half in groups, and how well a score tells the groups apart."""

    def __init__(self, found: Sequence[ReadPart]) -> None:
        self.found = found
        changes = [one.part.change for one in found]
        self.honest = np.flatnonzero([change is None for change in changes])
        self.exact = np.flatnonzero([change in EXACT for change in changes])
        self.meaning = np.flatnonzero([c is not None and c not in EXACT for c in changes])
        self.documents = np.array([one.part.document for one in found])
        names = sorted(set(self.documents))
        random = np.random.default_rng(0)
        self._samples = [
            np.array([np.sum(drawn == name) for name in self.documents])
            for drawn in (random.choice(names, len(names)) for _ in range(RESAMPLED))
        ]
        """How often each part stands in each resample."""

    def of(self, score: Score) -> np.ndarray:
        return np.array([score(one) for one in self.found], dtype=float)

    def auc(self, x: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> tuple[float, ...]:
        """That one of `ours` scores higher than one of `theirs`, ties half; with its interval."""
        wins = _wins(x[ours], x[theirs])
        drawn = [
            np.average(wins, weights=weights)
            for sample in self._samples
            if (weights := np.outer(sample[ours], sample[theirs])).any()
        ]
        return float(wins.mean()), *np.percentile(drawn, [2.5, 97.5])

    def reached(self, x: np.ndarray, share: float) -> tuple[float, ...]:
        """Share of the changed meanings among the parts that score as high as `share` of the
        faithful ones, ties by lot; with its interval."""

        def at(times: np.ndarray) -> float:
            theirs, ours = times[self.honest], times[self.meaning]
            order = np.argsort(-x[self.honest], kind="stable")
            below = np.searchsorted(np.cumsum(theirs[order]), share * theirs.sum())
            edge = x[self.honest][order[min(below, len(order) - 1)]]
            above, tied = theirs[x[self.honest] > edge].sum(), theirs[x[self.honest] == edge].sum()
            lot = min(1.0, (share * theirs.sum() - above) / tied)
            hits = ours[x[self.meaning] > edge].sum() + lot * ours[x[self.meaning] == edge].sum()
            return hits / max(1, ours.sum())

        drawn = [at(sample) for sample in self._samples]
        return at(np.ones(len(x))), *np.percentile(drawn, [2.5, 97.5])

    def against_own(self, x: np.ndarray) -> float:
        """The same within the rewrites of one part of a source: changed against faithful."""
        place = [(one.part.document, one.part.part) for one in self.found]
        return float(
            np.mean(
                [
                    _wins(x[[i]], x[own]).mean()
                    for i in self.meaning
                    if len(own := np.array([j for j in self.honest if place[j] == place[i]]))
                ]
            )
        )

    def length_unlike_style(self) -> np.ndarray:
        """How far the length ratio is from the median of its style's, by other documents."""
        ratios = np.log([max(0.01, one.fidelity.length_ratio) for one in self.found])
        styles = np.array([one.part.style for one in self.found])
        off: list[float] = []
        for i, document in enumerate(self.documents):
            others = self.honest[self.documents[self.honest] != document]
            alike = others[styles[others] == styles[i]]
            off.append(abs(ratios[i] - np.median(ratios[alike if len(alike) else others])))
        return np.array(off)

    def told(self, x: np.ndarray) -> str:
        """AUC of meaning against faithful with its interval, against their own, and of exact."""
        value, low, high = self.auc(x, self.meaning, self.honest)
        exact, *_ = self.auc(x, self.exact, self.honest)
        own = self.against_own(x)
        return f"{value:.2f} [{low:.2f}, {high:.2f}]   own {own:.2f}   exact {exact:.2f}"

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(parts to learn from, parts to score), by documents."""
        for shuffle in range(SHUFFLES):
            parting = GroupKFold(FOLDS, shuffle=True, random_state=shuffle)
            yield from parting.split(self.documents, groups=self.documents)

    def learned(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """A logistic score over the columns, of each part by what other documents taught."""
        x = np.column_stack(columns)
        total = np.zeros(len(self.found))
        for train, test in self.folds():
            train = train[~np.isin(train, self.exact)]
            model = make_pipeline(
                StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced")
            )
            model.fit(x[train], np.isin(train, self.meaning))
            total[test] += model.decision_function(x[test])
        return total

    def best(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, Counter[str]]:
        """Each part by the one column that is best on other documents, as the share of all parts
        that score lower in it; and which columns those were."""
        total = np.zeros(len(self.found))
        taken = Counter[str]()
        for train, test in self.folds():
            ours, theirs = np.intersect1d(train, self.meaning), np.intersect1d(train, self.honest)
            aucs = {name: _wins(x[ours], x[theirs]).mean() for name, x in columns.items()}
            name = max(aucs, key=lambda name: aucs[name])
            taken[name] += 1
            total[test] += _wins(columns[name][test], columns[name]).mean(axis=1)
        return total.round(9), taken  # equal parts of one column stay equal


def _wins(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return (ours[:, None] > theirs) + 0.5 * (ours[:, None] == theirs)


def print_reasons(parts: Parts) -> None:
    """How many parts each reason of a flag holds for, whether the settings name it or not."""
    config = FidelityConfig()
    found = [set(reasons_of(one.fidelity.columns(), config)) for one in parts.found]
    rows = [(name, [name in reasons for reasons in found]) for name in sorted(set().union(*found))]
    print(f"\nreasons: faithful of {len(parts.honest)}, changed in meaning of {len(parts.meaning)}")
    for name, held in [*rows, ("any of them", [bool(reasons) for reasons in found])]:
        x = np.array(held, dtype=float)
        counts = f"{x[parts.honest].sum():4.0f} {x[parts.meaning].sum():4.0f}"
        print(f"  {name:34} {counts}   AUC {parts.told(x)}")


def print_scores(parts: Parts, columns: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    for group, scores in columns.items():
        print(f"\nscores of {group}")
        for name, x in scores.items():
            print(f"  {name:34} AUC {parts.told(x)}")
        if len(scores) > 1:
            together = parts.learned([*scores.values()])
            print(f"  {'all together, cross-validated':34} AUC {parts.told(together)}")


def print_curves(parts: Parts, columns: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    words, layers, wording = columns["words"], columns["layers"], columns["wording"]
    closest = [words[f"{name}: closest"] for name in CLASSES]
    best, taken = parts.best({**layers, **words})
    print("\nshare of faithful parts asked about: share of changed meanings reached")
    print(f"  {'':40}" + "".join(f"{share:>7.0%}" for share in SHARES))
    print(f"  {'by lot':40}" + "".join(f"{share:>7.0%}" for share in SHARES))
    for name, x in (
        ("the best of layers and words, cross-val.", best),
        ("closest sentences of 8 classes, c.-val.", parts.learned(closest)),
        ("all layers, cross-validated", parts.learned([*layers.values()])),
        ("doubt, in sample", words["doubt"]),
        ("wording (planted, not meaning), c.-val.", parts.learned([*wording.values()])),
    ):
        reached = [parts.reached(x, share) for share in SHARES]
        print(f"  {name:40}" + "".join(f"{value:>7.0%}" for value, _, _ in reached))
        _, low, high = parts.reached(x, 0.4)
        value, least, most = parts.auc(x, parts.meaning, parts.honest)
        print(f"    at 40%: {low:.0%} to {high:.0%}; AUC {value:.2f} [{least:.2f}, {most:.2f}]")
    print("  the best is", ", ".join(f"{name} ({n})" for name, n in taken.most_common()))


def print_choice(parts: Parts) -> None:
    """What the default settings ask about, and what that costs."""
    config = FidelityConfig()
    asked = np.array(
        [
            asks_judge(
                one.fidelity.columns(), config, key=digest(one.part.source, one.part.rewrite)
            )
            for one in parts.found
        ]
    )
    print("\nthe default choice asks about")
    for name, group in (
        ("faithful", parts.honest),
        ("meaning", parts.meaning),
        ("exact", parts.exact),
    ):
        print(f"  {name:10} {asked[group].sum():4} of {len(group)} ({asked[group].mean():.0%})")
    kinds = Counter(str(one.part.change) for one in _of(parts, parts.meaning))
    hit = Counter(str(one.part.change) for one in _of(parts, parts.meaning[asked[parts.meaning]]))
    print("  " + ", ".join(f"{kind} {hit[kind]}/{n}" for kind, n in sorted(kinds.items())))
    source = sum(count_tokens(one.part.source) for one in _of(parts, parts.honest))
    prompts = np.array([_prompt_tokens(one) for one in parts.found])[parts.honest]
    chosen, every = prompts[asked[parts.honest]].sum() / source, prompts.sum() / source
    print(
        f"  prompt tokens of the judge for one of a source: {chosen:.2f}, of all parts {every:.2f}"
    )


def _of(parts: Parts, group: np.ndarray) -> list[ReadPart]:
    return [parts.found[int(i)] for i in group]


def _prompt_tokens(one: ReadPart) -> int:
    """Of a request about the part, without what stands before it in its document."""
    part = one.part
    style = instruction("maths" if part.style == NOTES else "styles", part.style)
    form = style.text.partition("\n")[0]
    prompt = render(PROMPT, source=part.source, rewrite=part.rewrite, before="", form=form)
    return sum(count_tokens(message["content"]) for message in prompt.messages)


def print_embedder(parts: Parts, folder: str, wording: Mapping[str, np.ndarray]) -> None:
    """Alignment by a model beside that by words, in English and in the other languages."""
    try:
        model = Vectors(folder)
    except ImportError as missing:
        print(f"\nthe embedder is left out: {missing}")
        return

    async def scores() -> list[list[float]]:
        return [await model.scores(one) for one in parts.found]

    found = np.array(asyncio.run(scores()))
    by_model = dict(zip(EMBEDDED, found.T, strict=True))
    print_scores(parts, {"the embedder": by_model})
    by_words = {name: wording[name] for name in ALIGNED}
    print_scores(parts, {"alignment by words": by_words})
    both = parts.learned([*by_words.values(), *by_model.values()])
    print(f"  {'both, cross-validated':34} AUC {parts.told(both)}")
    print(f"  {model.seconds / len(parts.found):.2f} s a part")
    english = np.array([one.part.language == "en" for one in parts.found])
    for name, is_in in (("English", english), ("other languages", ~english)):
        ours, theirs = parts.meaning[is_in[parts.meaning]], parts.honest[is_in[parts.honest]]
        aucs = (
            f"{title} {parts.auc(x, ours, theirs)[0]:.2f}"
            for title, x in (*by_model.items(), *((f"{n} by words", by_words[n]) for n in by_words))
        )
        print(f"  {name} ({len(ours)} and {len(theirs)}): {', '.join(aucs)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--embedder", metavar="FOLDER", help="a model of sentence-transformers")
    given = parser.parse_args()
    parts = Parts([read(part) for part in texts_of("tuning")])
    show({"meaning": len(parts.meaning), "exact": len(parts.exact), "faithful": len(parts.honest)})
    columns = {
        group: {name: parts.of(score) for name, score in scores.items()}
        for group, scores in (("layers", LAYERS), ("words", WORDS), ("wording", WORDING))
    }
    columns["wording"]["length unlike its style's"] = parts.length_unlike_style()
    print_reasons(parts)
    print_scores(parts, columns)
    print_curves(parts, columns)
    print_choice(parts)
    if given.embedder:
        print_embedder(parts, given.embedder, columns["wording"])


if __name__ == "__main__":
    main()
