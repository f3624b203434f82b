"""What might tell a rewritten part of another meaning from a faithful one, as numbers: the higher,
the likelier. None of them costs a request; `embedded` needs a small model of sentences.
"""

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rewrites import RewrittenPart
from synth.rephrasing.facts.names import names_of
from synth.rephrasing.facts.negations import is_negation
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS
from synth.rephrasing.facts.text import ReadText, words_of
from synth.rephrasing.fidelity.alignment import Alignment, Match
from synth.rephrasing.fidelity.checks import Fidelity, fidelity_of
from synth.rephrasing.fidelity.embedded import aligned

_CLASSES = {
    "quantifiers": {
        "en": "all every each most some many few only several any both half always usually often"
        " sometimes rarely seldom mostly never generally none whole entirely",
        "de": "alle jede jeder jedes jeden meist meistens einige manche viele wenige nur immer"
        " gewöhnlich oft manchmal selten ganz",
        "fr": "tous toutes tout toute chaque plupart quelques certains certaines plusieurs"
        " seulement toujours souvent parfois rarement",
        "es": "todos todas todo toda cada mayoría algunos algunas muchos muchas pocos solo sólo"
        " siempre suele suelen menudo veces",
    },
    "degree": {
        "en": "almost nearly about roughly hardly barely slightly partly completely fully clearly"
        " strongly much very little somewhat approximately exactly",
        "de": "fast etwa ungefähr kaum leicht teilweise völlig vollständig deutlich stark sehr"
        " wenig",
        "fr": "presque environ peine légèrement partiellement complètement nettement fortement très"
        " peu",
        "es": "casi aproximadamente apenas ligeramente parcialmente completamente claramente muy"
        " poco",
    },
    "modality": {
        "en": "may might can could must shall should will would probably possibly perhaps likely"
        " certainly surely need planned expected suggests seems apparently allowed required"
        " forbidden guaranteed",
        "de": "kann können könnte muss müssen soll sollen darf dürfen wird werden wahrscheinlich"
        " vielleicht vermutlich möglicherweise sicher",
        "fr": "peut peuvent pourrait doit doivent devrait faut probablement certainement",
        "es": "puede pueden podría debe deben debería probablemente quizá quizás seguramente",
    },
    "conditions": {
        "en": "if unless except only provided when whenever otherwise until long exception apart",
        "de": "wenn falls außer sofern nur solange bis sonst ausnahme",
        "fr": "si sauf lorsque quand sinon pourvu condition exception seulement",
        "es": "si salvo excepto cuando siempre condición excepción solo sólo",
    },
    "causes": {
        "en": "because since therefore thus hence so due cause causes caused owing reason why"
        " result consequently",
        "de": "weil da daher deshalb denn somit grund ursache",
        "fr": "parce car donc ainsi puisque cause raison",
        "es": "porque pues debido causa razón así",
    },
    "comparatives": {
        "en": "more less fewer most least than larger smaller greater longer shorter higher lower"
        " faster slower stronger weaker better worse older younger equal same",
        "de": "mehr weniger größer kleiner länger kürzer höher niedriger schneller langsamer besser"
        " als gleich",
        "fr": "plus moins davantage que même autant",
        "es": "más menos mayor menor mejor peor que igual tan",
    },
    "order": {
        "en": "before after first then next later earlier until while during once finally"
        " afterwards previously second last",
        "de": "vor nach zuerst dann danach später vorher bevor nachdem während",
        "fr": "avant après premier puis ensuite pendant",
        "es": "antes después primero luego entonces mientras",
    },
}
_LISTED = {
    (name, language): frozenset(words.split())
    for name, lists in _CLASSES.items()
    for language, words in lists.items()
}
CLASSES = ("negations", *_CLASSES)


class ReadPart(NamedTuple):
    part: RewrittenPart
    source: ReadText
    rewrite: ReadText
    fidelity: Fidelity

    @property
    def language(self) -> str:
        """English where it cannot be told."""
        told = self.fidelity.language
        return told if told != "und" else "en"


def read(part: RewrittenPart) -> ReadPart:
    fidelity = fidelity_of(part.source, part.rewrite, kind=part.kind)
    return ReadPart(part, ReadText(part.source), ReadText(part.rewrite), fidelity)


Score = Callable[[ReadPart], float]


def _is_of(name: str, word: str, language: str) -> bool:
    if name == "negations":
        return is_negation(word, language)
    return word in _LISTED.get((name, language), ())


def _held(name: str, text: ReadText, language: str) -> list[int]:
    """Words of the class in each sentence."""
    return [sum(_is_of(name, word, language) for word in words) for words in text.sentence_words]


def _count(name: str, *, of: Callable[[int, int], float]) -> Score:
    def score(read: ReadPart) -> float:
        texts = (read.source, read.rewrite)
        return of(*(sum(_held(name, text, read.language)) for text in texts))

    return score


def _closest(name: str, *, mutual: bool) -> Score:
    """How close the closest sentences are of which one alone has a word of the class; `mutual`:
    only of those that are each other's best match."""

    def score(read: ReadPart) -> float:
        ours, theirs = (_held(name, t, read.language) for t in (read.source, read.rewrite))
        found = [0.0]
        for one, other, matches, back in _ways(read, ours, theirs):
            found += [
                match.score
                for match in matches
                if match.other is not None
                and bool(one[match.sentence]) != bool(other[match.other])
                and (not mutual or back.get(match.other) == match.sentence)
            ]
        return max(found)

    return score


def _ways(
    read: ReadPart, ours: list[int], theirs: list[int]
) -> Iterable[tuple[list[int], list[int], Sequence[Match], dict[int, int | None]]]:
    if alignment := read.fidelity.alignment:
        to, back = alignment.source, alignment.rewrite
        yield ours, theirs, to, {match.sentence: match.other for match in back}
        yield theirs, ours, back, {match.sentence: match.other for match in to}


def _names_exchanged(read: ReadPart) -> float:
    """Pairs of names that stand in another order in the sentence that says the same."""
    if read.fidelity.alignment is None:
        return 0.0
    names = names_of(read.source, read.language)
    exchanged = 0
    for match in read.fidelity.alignment.source:
        if match.other is not None:
            ours = read.source.sentence_words[match.sentence]
            theirs = read.rewrite.sentence_words[match.other]
            both = [word for word in dict.fromkeys(ours) if word in names and word in theirs]
            exchanged += sum(
                theirs.index(one) > theirs.index(two)
                for at, one in enumerate(both)
                for two in both[at + 1 :]
            )
    return float(exchanged)


def _gone(ours: ReadText, theirs: ReadText) -> float:
    """Share of the telling words that the other text does not have."""
    known = {stem(word) for word in words_of(theirs.text)}
    telling = [stem(word) for word in ours.words if word not in STOPWORDS]
    return sum(word not in known for word in telling) / max(1, len(telling))


def _weakest(matches: Sequence[Match]) -> float:
    return 1 - min((match.score for match in matches), default=1.0)


def _deciding(read: ReadPart) -> float:
    """Words of any class in either text."""
    texts = (read.source, read.rewrite)
    return sum(sum(_held(name, text, read.language)) for name in CLASSES for text in texts)


def _of_alignment(of: Callable[[Alignment], float]) -> Score:
    return lambda read: of(read.fidelity.alignment) if read.fidelity.alignment else 0.0


def _conflicts(kind: str) -> Score:
    def score(read: ReadPart) -> float:
        found = (c.closeness for c in read.fidelity.conflicts if c.kind == kind)
        return max(found, default=0.0)

    return score


def _layer(name: str) -> dict[str, Score]:
    return {
        f"{name} lost": lambda read: len(getattr(read.fidelity, name).lost),
        f"{name} added": lambda read: len(getattr(read.fidelity, name).added),
    }


LAYERS: dict[str, Score] = {
    **_layer("numbers"),
    **_layer("units"),
    **_layer("dates"),
    **_layer("names"),
    **_layer("quotations"),
    **_layer("headings"),
    "conflict: negation": _conflicts("negation"),
    "conflict: opposite": _conflicts("opposite"),
    "conflict: exchange": _conflicts("exchange"),
}
"""What the layers of fidelity count."""

WORDING: dict[str, Score] = {
    "copied": lambda read: read.fidelity.copied,
    "longest copy": lambda read: read.fidelity.longest_copy,
    "telling words gone": lambda read: _gone(read.source, read.rewrite),
    "telling words new": lambda read: _gone(read.rewrite, read.source),
    "source uncovered": _of_alignment(lambda alignment: 1 - alignment.recall),
    "rewrite uncovered": _of_alignment(lambda alignment: 1 - alignment.precision),
    "weakest of the source": _of_alignment(lambda alignment: _weakest(alignment.source)),
    "weakest of the rewrite": _of_alignment(lambda alignment: _weakest(alignment.rewrite)),
    "length ratio": lambda read: read.fidelity.length_ratio,
    "words of the source": lambda read: len(read.source.words),
}
"""How near the words stay to the source's, and sizes. What is planted changes these by how it was
written, whatever the change is."""

WORDS: dict[str, Score] = {
    **{f"{n}: in both": _count(n, of=lambda ours, theirs: ours + theirs) for n in CLASSES},
    **{f"{n}: lost": _count(n, of=lambda ours, theirs: max(0, ours - theirs)) for n in CLASSES},
    **{f"{n}: added": _count(n, of=lambda ours, theirs: max(0, theirs - ours)) for n in CLASSES},
    **{f"{n}: closest": _closest(n, mutual=False) for n in CLASSES},
    **{f"{n}: closest pair": _closest(n, mutual=True) for n in CLASSES},
    "any class: in both": _deciding,
    "names in another order": _names_exchanged,
    "doubt": lambda read: read.fidelity.doubt,
}
"""Words that decide what a sentence says, counted, and in sentences that say the same."""

EMBEDDED = (
    *("weakest of the source", "source unlike", "weakest of the rewrite", "rewrite unlike"),
    *("sentences of the source below 0.5", "sentences of the rewrite below 0.5", "small margin"),
)


class Vectors:
    """Stands where a run has its client: a small model of sentences in this process."""

    def __init__(self, folder: str) -> None:
        """`folder`: of a model of sentence-transformers. Raises ImportError without that package,
        which the project does without."""
        transformers: Any = importlib.import_module("sentence_transformers")
        self._model = transformers.SentenceTransformer(folder, device="cpu")
        self._known: dict[str, list[float]] = {}
        self.seconds = 0.0
        """Spent on vectors."""

    async def embed(self, role: str, texts: Sequence[str], **asked: str) -> list[list[float]]:
        started = time.monotonic()
        new = sorted({text for text in texts if text not in self._known})
        if new:
            vectors = self._model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._known.update(zip(new, vectors.tolist(), strict=True))
        self.seconds += time.monotonic() - started
        return [self._known[text] for text in texts]

    async def scores(self, read: ReadPart) -> list[float]:
        """One for each of EMBEDDED."""
        llm: Any = self
        part = read.part
        alignment = await aligned(llm, part.source, part.rewrite, item="part", step="align")
        ours = np.array(await self.embed("", [s.text for s in read.source.sentences]))
        theirs = np.array(await self.embed("", [s.text for s in read.rewrite.sentences]))
        below = ([m.score < 0.5 for m in side] for side in (alignment.source, alignment.rewrite))
        return [
            _weakest(alignment.source),
            1 - alignment.recall,
            _weakest(alignment.rewrite),
            1 - alignment.precision,
            *map(sum, below),
            -_margin(ours, theirs),
        ]


def _margin(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Mean difference of the cosines of the best and the second best match of a sentence."""
    if len(ours) == 0 or len(theirs) < 2:
        return 0.0
    cosines = np.sort(ours @ theirs.T, axis=1)
    return float((cosines[:, -1] - cosines[:, -2]).mean())
