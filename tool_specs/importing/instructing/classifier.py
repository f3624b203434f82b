"""How much a text reads like an attack: logistic regression over hashed n-grams of its passages.

The weights were learned by `python -m benchmarks.instructing_classifier` and are data beside this
module, eight bits each. A text scores what its worst passage does.
"""

import base64
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tool_specs.importing.instructing.features import BITS, features, passages, unit
from tool_specs.importing.instructing.rules import readings

WEIGHTS = Path(__file__).with_name("classifier_weights.json")

MIN_CHARS = 12
"""Of a text that is scored; shorter ones are names, types and values."""


class Classifier(NamedTuple):
    weights: np.ndarray
    """Shape (2**BITS,), int8, in units of `scale`."""

    scale: float
    bias: float

    def logit(self, passage: str) -> float:
        """Log odds that the passage instructs a model. Zero means nothing by itself: see
        `thresholds`."""
        found = features(passage)
        total = int(self.weights[found].sum(dtype=np.int64))
        return self.bias + self.scale * total * unit(len(found))


class Thresholds(NamedTuple):
    """Logits, chosen by cross-validation on the training texts."""

    stopped: float
    """From here on a tool is stopped."""

    unsure: float
    """From here on a judge is asked, where there is one."""


@cache
def classifier() -> Classifier:
    stored = _stored()
    weights = np.frombuffer(base64.b64decode(stored["weights"]), dtype=np.int8)
    if len(weights) != 2**BITS:
        raise ValueError(
            f"{WEIGHTS.name} holds {len(weights)} weights, and features has {2**BITS}; "
            "train it again: python -m benchmarks.instructing_classifier"
        )
    return Classifier(weights, stored["scale"], stored["bias"])


@cache
def thresholds() -> Thresholds:
    stored = _stored()
    return Thresholds(stored["stopped"], stored["unsure"])


@cache
def _stored() -> dict[str, Any]:
    return json.loads(WEIGHTS.read_text(encoding="utf-8"))


def score(texts: Iterable[str]) -> float:
    """The highest logit of any passage of the texts, minus infinity where none is long enough."""
    model = classifier()
    return max(map(model.logit, passages_of(texts)), default=float("-inf"))


def passages_of(texts: Iterable[str]) -> list[str]:
    """Every passage of every reading of the texts, each once, in their order."""
    found = (
        passage
        for text in texts
        if len(text) >= MIN_CHARS
        for reading in readings(text)
        for passage in passages(reading)
    )
    return list(dict.fromkeys(found))
