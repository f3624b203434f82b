"""Hashed character n-grams of a passage, the same in any language and on any machine."""

import re
import unicodedata
from itertools import pairwise

import numpy as np

BITS = 17
"""Logarithm of the number of features."""

LENGTHS = (1, 2, 3, 4, 5)
"""Characters of an n-gram. Five hold most of a word, two a word of Chinese."""

MAX_CHARS = 600
"""Of a passage: what is longer is cut, so that none takes long."""

MIN_FEATURES = 100
"""A passage with fewer counts as if it had so many: two words alone say little either way."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ENDS = re.compile(
    r"(?<=[.!?;\u3002\uff01\uff1f\uff1b\u0964\u061b\u061f])\s+|(?<=[\u3002\uff01\uff1f\uff1b\u0964])|\n+"
)


def passages(text: str) -> list[str]:
    """Sentences of the text, each by itself and each with the next one: an attack is seldom longer,
    and all that stands around it is harmless."""
    parts = [part.strip() for part in _ENDS.split(text) if part and part.strip()]
    return [*parts, *(f"{a} {b}" for a, b in pairwise(parts))]


def features(passage: str) -> np.ndarray:
    """Sorted, distinct indices below 2**BITS, shape (n,), int64."""
    plain = unicodedata.normalize("NFKC", passage).lower()[:MAX_CHARS]
    plain = re.sub(r"\d", "0", re.sub(r"[\s_*`\"'\u2019]+", " ", plain))
    codes = np.frombuffer(f" {plain} ".encode("utf-32-le", "replace"), dtype="<u4")
    codes = codes.astype(np.uint64)
    found = []
    with np.errstate(over="ignore"):
        rolled = np.zeros(len(codes), dtype=np.uint64)
        for length in range(1, max(LENGTHS) + 1):
            size = len(codes) - length + 1
            if size <= 0:
                break
            rolled = (rolled[:size] + codes[length - 1 :] + np.uint64(1)) * _FACTOR
            rolled ^= rolled >> np.uint64(29)
            if length in LENGTHS:
                found.append(rolled >> np.uint64(64 - BITS))
    return np.unique(np.concatenate(found)).astype(np.int64)


def unit(num_features: int) -> float:
    """What each feature of a passage weighs, so that long passages weigh as much as short ones."""
    return max(num_features, MIN_FEATURES) ** -0.5
