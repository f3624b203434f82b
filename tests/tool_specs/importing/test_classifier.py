"""The stored weights are those that the committed texts give, and scores are what they say."""

import base64
import json

import numpy as np
import pytest

from benchmarks.instructing_classifier import (
    left_out_scores,
    stored_form,
    thresholds_of,
    trained_on,
    training_texts,
)
from tool_specs.importing.instructing.classifier import WEIGHTS, classifier
from tool_specs.importing.instructing.features import BITS, features, passages, unit


@pytest.mark.slow
def test_the_stored_weights_are_those_of_a_training_from_the_committed_texts() -> None:
    texts = training_texts()
    limits = thresholds_of(texts, left_out_scores(texts))
    model = trained_on(texts, range(len(texts.matrices)))
    trained, stored = json.loads(stored_form(model, *limits)), json.loads(WEIGHTS.read_text())
    for name in ("trained_by", "stopped", "unsure"):
        assert trained.pop(name) == stored.pop(name)
    # processors add up in another order: a weight between two steps falls to either of them
    apart = np.abs(steps_in(trained.pop("weights")) - steps_in(stored.pop("weights")))
    assert apart.max() <= 1
    assert (apart > 0).sum() < 100
    assert trained == pytest.approx(stored, rel=1e-3)


def steps_in(weights: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(weights), np.int8).astype(int)


def test_the_weights_are_small_and_a_score_is_their_sum() -> None:
    assert WEIGHTS.stat().st_size < 1_000_000
    model, passage = classifier(), "Lists the berths of a harbour."
    found = features(passage)
    by_hand = sum(int(model.weights[i]) for i in found) * model.scale * unit(len(found))
    assert model.logit(passage) == pytest.approx(model.bias + by_hand)


@pytest.mark.parametrize("text", ["", "a", "Lists boats.", "\u6e2f\u53e3", "\ud800", "x" * 9000])
def test_features_are_distinct_sorted_and_in_range(text: str) -> None:
    found = features(text)
    assert list(found) == sorted(set(found.tolist()))
    assert not len(found) or (found[0] >= 0 and found[-1] < 2**BITS)
    assert np.array_equal(found, features(text.upper()))


def test_passages_are_sentences_and_pairs_of_them() -> None:
    assert passages("One. Two! \u4e09\u3002Four") == [
        *("One.", "Two!", "\u4e09\u3002", "Four"),
        *("One. Two!", "Two! \u4e09\u3002", "\u4e09\u3002 Four"),
    ]
