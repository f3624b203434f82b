"""Sentence by sentence by meaning: cosines between the embeddings of a model."""

import numpy as np

from synth.llm.client import LLM
from synth.rephrasing.facts.text import read_text
from synth.rephrasing.fidelity.alignment import Alignment, Match, alignment_of

AT_ONCE = 64
"""Sentences a request."""


async def aligned(llm: LLM, source: str, rewrite: str, *, item: str, step: str) -> Alignment:
    """By the role `embedder`. Raises what `LLM.embed` raises."""
    ours, theirs = read_text(source), read_text(rewrite)
    texts = [sentence.text for sentence in (*ours.sentences, *theirs.sentences)]
    vectors: list[list[float]] = []
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        vectors += await llm.embed("embedder", part, item=item, step=f"{step}.{start}")
    n = len(ours.sentences)
    sizes = [len(words) for words in (*ours.sentence_words, *theirs.sentence_words)]
    if not n or n == len(texts):
        return alignment_of("embedder", ours, theirs, _unmatched(sizes[:n]), _unmatched(sizes[n:]))
    unit = np.array(vectors, dtype=np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    cosines = unit[:n] @ unit[n:].T
    lost, added = _nearest(cosines, sizes[:n]), _nearest(cosines.T, sizes[n:])
    return alignment_of("embedder", ours, theirs, lost, added)


def _nearest(cosines: np.ndarray, sizes: list[int]) -> list[Match]:
    best = cosines.argmax(axis=1)
    return [
        Match(index, int(other), float(np.clip(cosines[index, other], 0.0, 1.0)), sizes[index])
        for index, other in enumerate(best)
    ]


def _unmatched(sizes: list[int]) -> list[Match]:
    return [Match(index, None, 0.0, size) for index, size in enumerate(sizes)]
