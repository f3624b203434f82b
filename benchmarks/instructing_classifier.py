"""Train the classifier of instructing texts: `python -m benchmarks.instructing_classifier`.

It learns from the tuning half of `instructing_texts/`, from sentences that were written for it
(`sentences.json`), and from the descriptions of the project's own domains. Of an attack nobody
says which sentence it is: at first all of its passages count, then in a few rounds the ones that
score highest. `--validate` prints what is found in folds that were left out, and how the thresholds
follow from them; nothing else ever chooses them.
"""

import argparse
import base64
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from tool_specs.domains.catalogue import tool_rows
from tool_specs.domains.known import known_domains
from tool_specs.importing.instructing.classifier import MIN_CHARS, WEIGHTS, passages_of
from tool_specs.importing.instructing.features import BITS, features, unit
from tool_specs.importing.instructing.texts import texts_in

FOLDER = Path(__file__).parent / "instructing_texts"
SEED = 0
ROUNDS = 4
"""In which the passages of an attack are chosen anew."""

TOP = 2
"""Passages of an attack that count as one."""

FILLINGS = 2
"""Of a sentence with slots."""

DOMAIN_TEXTS = 1500
FOLDS = 5
STOPPED_LOOKALIKES, UNSURE_LOOKALIKES = 0.02, 0.50
"""Shares of the lookalikes in left-out folds that the two thresholds let be flagged: lookalikes are
written to be mistaken, and one ordinary description in some twenty is one."""


class Texts(NamedTuple):
    matrices: list[csr_matrix]
    """One for each tuning text: its passages, shape (passages, 2**BITS)."""

    is_attack: np.ndarray
    """Shape (texts,), bool."""

    others: csr_matrix
    """Sentences that were written, and harmless ones of domains."""

    others_are_attacks: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validate", action="store_true", help="print results of left-out folds")
    validate = parser.parse_args().validate
    texts = training_texts()
    scores = left_out_scores(texts)
    stopped, unsure = thresholds_of(texts, scores)
    if validate:
        for name, limit in (("stopped", stopped), ("unsure", unsure)):
            found = (scores >= limit)[texts.is_attack].mean()
            false = (scores >= limit)[~texts.is_attack].mean()
            print(f"{name} from {limit}: attacks {found:.1%}, lookalikes {false:.1%}")
        return
    trained = trained_on(texts, range(len(texts.matrices)))
    WEIGHTS.write_text(stored_form(trained, stopped, unsure), encoding="utf-8")
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size} bytes, stopped {stopped}, unsure {unsure}")


def training_texts() -> Texts:
    lines = (FOLDER / "tuning.jsonl").read_text(encoding="utf-8").splitlines()
    tuning = [json.loads(line) for line in lines]
    bags = [
        matrix_of(passages_of((one["description"], *texts_in(one.get("parameters") or {}))))
        for one in tuning
    ]
    written = list(written_sentences())
    domains = passages_of(domain_texts())
    labels = [is_attack for _, is_attack in written] + [False] * len(domains)
    return Texts(
        bags,
        np.array([one["is_attack"] for one in tuning]),
        matrix_of([*(sentence for sentence, _ in written), *domains]),
        np.array(labels),
    )


def written_sentences() -> list[tuple[str, bool]]:
    """Sentences with their slots filled, and whether they are attacks."""
    stored = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
    slots: dict[str, list[str]] = stored["slots"]
    draw = random.Random(SEED)
    return [
        (sentence.format(**{name: draw.choice(values) for name, values in slots.items()}), label)
        for told in stored["languages"].values()
        for key, label in (("harmless", False), ("attacks", True))
        for sentence in told[key]
        for _ in range(FILLINGS if "{" in sentence else 1)
    ]


def domain_texts() -> list[str]:
    """Some descriptions of the project's own tools and parameters."""
    found: set[str] = set()
    for known in known_domains(["all"]):
        for row in tool_rows(known.load()):
            members = row["input_schema"].get("properties", {}).values()
            found |= {row["description"], *(one.get("description", "") for one in members)}
    ordered = sorted(text for text in found if len(text) >= MIN_CHARS)
    return random.Random(SEED).sample(ordered, DOMAIN_TEXTS)


def matrix_of(passages: list[str]) -> csr_matrix:
    rows = [features(one) for one in passages]
    data = np.concatenate([np.full(len(row), unit(len(row))) for row in rows])
    ends = np.cumsum([0, *map(len, rows)])
    return csr_matrix((data, np.concatenate(rows), ends), shape=(len(rows), 2**BITS))


def trained_on(texts: Texts, chosen: Any) -> LogisticRegression:
    """Learned from the written sentences and the chosen tuning texts."""
    harmless = [texts.matrices[i] for i in chosen if not texts.is_attack[i]]
    attacks = [texts.matrices[i] for i in chosen if texts.is_attack[i]]
    model = _fitted(texts, harmless, attacks)
    for _ in range(1, ROUNDS):
        worst = [np.argsort(-model.decision_function(one), kind="stable")[:TOP] for one in attacks]
        shown = [one[chosen] for one, chosen in zip(attacks, worst, strict=True)]
        model = _fitted(texts, harmless, shown)
    return model


def _fitted(
    texts: Texts, harmless: list[csr_matrix], attacks: list[csr_matrix]
) -> LogisticRegression:
    counts = [sum(count_of(one) for one in matrices) for matrices in (harmless, attacks)]
    labels = np.concatenate([texts.others_are_attacks, np.repeat([False, True], counts)])
    rows = csr_matrix(vstack([texts.others, *harmless, *attacks]))
    model = LogisticRegression(
        C=10.0, class_weight="balanced", solver="liblinear", random_state=SEED
    )
    return model.fit(rows, labels)


def count_of(passages: csr_matrix) -> int:
    return int(passages.indptr.size - 1)


def left_out_scores(texts: Texts) -> np.ndarray:
    """The score of each tuning text by a model that has not seen it."""
    order = np.random.RandomState(SEED).permutation(len(texts.matrices))
    scores = np.zeros(len(order))
    for fold in np.array_split(order, FOLDS):
        model = trained_on(texts, np.setdiff1d(order, fold))
        for i in fold:
            scores[i] = model.decision_function(texts.matrices[i]).max()
    return scores


def thresholds_of(texts: Texts, scores: np.ndarray) -> tuple[float, float]:
    """(stopped, unsure): the scores that the two shares of lookalikes reach."""
    harmless = scores[~texts.is_attack]
    stopped, unsure = np.quantile(harmless, [1 - STOPPED_LOOKALIKES, 1 - UNSURE_LOOKALIKES])
    return round(float(stopped), 2), round(float(unsure), 2)


def stored_form(model: LogisticRegression, stopped: float, unsure: float) -> str:
    """JSON of the weights in 255 steps."""
    weights = model.coef_[0]
    scale = float(np.abs(weights).max() / 127)
    steps = np.rint(weights / scale).astype(np.int8)
    stored = {
        "trained_by": "python -m benchmarks.instructing_classifier",
        "scale": round(scale, 9),
        "bias": round(float(np.ravel(model.intercept_)[0]), 6),
        "stopped": stopped,
        "unsure": unsure,
        "weights": base64.b64encode(steps.tobytes()).decode(),
    }
    return json.dumps(stored, indent=1) + "\n"


if __name__ == "__main__":
    main()
