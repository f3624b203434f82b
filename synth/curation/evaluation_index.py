"""The evaluations that a run names, and which text shares a run of words or a passage with one.

Runs of words are found by their hashes. Passages are found by sketches and decided by the word
3-grams themselves: an evaluation with other names in it still shares those between the names. What
says the same in other words is neither's to find (`synth.curation.embedding`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from records.digest import digest
from records.errors import ConfigError
from synth.curation.passages import PassageKind, evaluation_parts, passages_in, told_of
from synth.curation.settings.config import DecontaminationConfig
from synth.matching.evaluations import evaluation_rows, short_names
from synth.matching.similarity import HASHES, shared_spans, shingles, sketch
from synth.matching.word_runs import CharSpan, word_runs, words_of
from tool_specs.coverage.duplicates import Shingles, jaccard

SETTING = "curation.decontamination.files"

INDEX_VERSION = 2
"""Raised when the same texts would be found otherwise."""

MARGIN = 0.2
"""How far below the similarity an estimate by `HASHES` may lie: three standard deviations."""

_PLACES = np.arange(HASHES, dtype=np.uint64)

REMEMBERED = 1 << 11
"""Texts whose leaks are kept: prompts and tools are those of many trajectories."""

LeakMethod = Literal["ngrams", "minhash", "embedder"]


class EvaluationText(NamedTuple):
    """A string of an evaluation, or a passage of one."""

    file: str
    """Its name, with as much of its folders as tells it from the others."""
    item: int
    """Number of the row in the file."""
    kind: PassageKind
    text: str

    @property
    def evaluation_id(self) -> str:
        return digest("evaluation", *self)


class Leak(NamedTuple):
    """What a text shares with an evaluation."""

    method: LeakMethod
    score: float
    """Words of the shared run, Jaccard similarity, or cosine."""
    evaluation: EvaluationText
    spans: Sequence[CharSpan] = ()
    """Characters of the text that both have."""
    evaluation_spans: Sequence[CharSpan] = ()


def check_decontamination(config: DecontaminationConfig) -> None:
    """ConfigError for a file that cannot be read to its end, and where nothing of the files can be
    found. Reads them, since curation comes after all that is paid for."""
    for _ in _checked_texts(config):
        pass


class EvaluationIndex:
    """ConfigError as `check_decontamination` has it."""

    def __init__(self, config: DecontaminationConfig) -> None:
        self._config = config
        found = set(_checked_texts(config))
        names = short_names({one.file for one in found})
        texts = sorted({one._replace(file=names[one.file]) for one in found})
        self.passages = sorted(
            {one._replace(text=passage) for one in texts for passage in _passages(one)}
        )
        self._texts = texts
        self._runs = [word_runs(told_of(one.text, one.kind), config.words) for one in texts]
        hashes = np.concatenate([runs.hashes for runs in self._runs])
        owners = [(n, at) for n, runs in enumerate(self._runs) for at in range(len(runs.hashes))]
        self._known, first = np.unique(hashes, return_index=True)
        self._owners = [owners[at] for at in first.tolist()]
        keys = np.array([_keys_of(one.text) for one in self.passages], np.uint64).ravel()
        order = np.argsort(keys, kind="stable")
        self._keys, self._of_passage = keys[order], (order // HASHES).astype(np.int32)
        self._is_tool = np.array([one.kind == "tool" for one in self.passages], bool)
        self._shingles: list[Shingles] = [shingles(one.text) for one in self.passages]
        self.remembered_leaks_in = lru_cache(REMEMBERED)(self.leaks_in)

    @property
    def version(self) -> str:
        """Of what is looked for, and how."""
        content = hashlib.sha256()
        for one in self._texts:
            content.update(repr(tuple(one)).encode())
        rules = {k: v for k, v in self._config.identity().items() if k != "files"}
        return digest("evaluations", INDEX_VERSION, content.hexdigest(), rules)

    def leaks_in(self, text: str, kind: PassageKind, is_passage: bool) -> list[Leak]:
        """The longest shared run, and the passage that is most alike. `remembered_leaks_in` is for
        texts that come again."""
        found = [self.shared_run(told_of(text, kind))]
        if is_passage:
            # a tool is a passage however long it is, as those of evaluations are
            passages = [text] if kind == "tool" else passages_in(text)
            near = (self.near(one, kind) for one in passages)
            best = max((leak for leak in near if leak), key=lambda leak: leak.score, default=None)
            found.append(self._placed(text, best) if best else None)
        return [leak for leak in found if leak]

    def shared_run(self, text: str) -> Leak | None:
        """A run of at least so many words that an evaluation has: the longest of those that are
        found by reading on in the first evaluation with its beginning."""
        hashes, spans = word_runs(text, self._config.words)
        if not len(hashes) or not len(self._known):
            return None
        at = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        shared = np.flatnonzero(self._known[at] == hashes).tolist()
        best: tuple[int, int, int, int] | None = None
        passed = -1
        for start in shared:
            if start <= passed:
                continue
            number, place = self._owners[int(at[start])]
            theirs = self._runs[number].hashes
            length = 1
            while (
                start + length < len(hashes)
                and place + length < len(theirs)
                and hashes[start + length] == theirs[place + length]
            ):
                length += 1
            passed = start + length - 1
            if best is None or length > best[0]:
                best = (length, start, number, place)
        if best is None:
            return None
        length, start, number, place = best
        words = length + self._config.words - 1
        own = (spans[start][0], spans[start + words - 1][1])
        there = self._runs[number].spans
        their = (there[place][0], there[place + words - 1][1])
        return Leak("ngrams", float(words), self._texts[number], [own], [their])

    def near(self, passage: str, kind: PassageKind) -> Leak | None:
        """The passage of an evaluation that is most alike, if it is near."""
        least = self._config.near_tools if kind == "tool" else self._config.near
        own = _keys_of(passage)
        first, last = (np.searchsorted(self._keys, own, side) for side in ("left", "right"))
        agreeing = [self._of_passage[a:b] for a, b in zip(first, last, strict=True) if a < b]
        if not agreeing:
            return None
        places, numbers = np.unique(np.concatenate(agreeing), return_counts=True)
        is_near = numbers >= (least - MARGIN) * HASHES
        candidates = places[is_near & (self._is_tool[places] == (kind == "tool"))].tolist()
        grams = shingles(passage)
        alike = ((jaccard(grams, self._shingles[n]), -n) for n in candidates)
        score, place = max(alike, default=(0.0, 0))
        return Leak("minhash", score, self.passages[-place]) if score >= least else None

    @staticmethod
    def _placed(text: str, leak: Leak) -> Leak:
        ours, theirs = shared_spans(text, leak.evaluation.text)
        return leak._replace(spans=ours, evaluation_spans=theirs)


def _checked_texts(config: DecontaminationConfig) -> Iterator[EvaluationText]:
    found_any = not config.files
    for path in config.files:
        for row in evaluation_rows(path, setting=SETTING):
            for kind, text in evaluation_parts(row.value):
                one = EvaluationText(row.path, row.number, kind, text)
                is_long = len(words_of(told_of(text, kind))) >= config.words
                found_any = found_any or is_long or bool(_passages(one))
                yield one
    if not found_any:
        raise ConfigError(
            f"{SETTING}: no text of {', '.join(config.files)} is long enough to be found: "
            f"{config.words} words (curation.decontamination.words); give other files"
        )


def _keys_of(passage: str) -> np.ndarray:
    """The numbers of its sketch, each with its place before it: equal where sketches agree."""
    numbers = np.frombuffer(sketch(passage), np.uint32)
    return numbers.astype(np.uint64) | (_PLACES << np.uint64(32))


def _passages(one: EvaluationText) -> list[str]:
    return [one.text] if one.kind == "tool" else passages_in(one.text)
