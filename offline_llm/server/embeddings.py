"""Embeddings by hashed n-grams: texts that share words and pieces of words lie close together."""

import base64
import hashlib
import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from offline_llm.server.request import RequestError
from records.model_names import todays
from records.sizes import count_tokens

_WORD = re.compile(r"\w+")
_MAX_INPUTS = 2048
"""What OpenAI's endpoint takes in one request."""


def embeddings(body: Any, *, models: list[str], size: int) -> dict[str, Any]:
    """The response of `/v1/embeddings`; raises RequestError."""
    model = todays(str(body.get("model"))) if isinstance(body, dict) else None
    if not isinstance(body, dict) or model not in models:
        raise RequestError(f"model must be one of {', '.join(models)}", "model", status=404)
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not 0 < len(texts) <= _MAX_INPUTS:
        raise RequestError(f"input must be a text or 1 to {_MAX_INPUTS} texts", "input")
    if not all(isinstance(text, str) and text for text in texts):
        raise RequestError("input must hold non-empty texts", "input")
    size = body.get("dimensions") or size
    if not isinstance(size, int) or not 8 <= size <= 4096:
        raise RequestError(
            f"dimensions must be an integer from 8 to 4096, got {size}", "dimensions"
        )
    as_text = body.get("encoding_format") == "base64"
    vectors = [embed(text, size) for text in texts]
    tokens = sum(map(count_tokens, texts))
    return {
        "object": "list",
        "model": model,
        "data": [
            {"object": "embedding", "index": i, "embedding": _base64(v) if as_text else v}
            for i, v in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def embed(text: str, size: int) -> list[float]:
    """A vector of length 1 (or 0 for a text without words)."""
    vector = [0.0] * size
    for gram, count in Counter(_grams(text)).items():
        value = int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest())
        sign = 1.0 if value & 1 else -1.0
        vector[(value >> 1) % size] += sign * math.sqrt(count)
    norm = math.sqrt(sum(v * v for v in vector)) or 1.0
    return [v / norm for v in vector]


def _grams(text: str) -> Iterator[str]:
    """Words, pairs of words, and the words' runs of four letters."""
    words = _WORD.findall(text.lower())
    yield from words
    yield from (f"{a} {b}" for a, b in pairwise(words))
    for word in words:
        padded = f"<{word}>"
        yield from (padded[i : i + 4] for i in range(len(padded) - 3))


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
