"""What an answer may be drawn from, read once: documents, and results with their records."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from records.digest import canonical_json
from synth.rephrasing.exact.readings import PartReading
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS
from synth.rephrasing.facts.text import squeeze, words_of
from synth.rubrics.reading.locales import cleaned, language_of, locale
from synth.rubrics.reading.readings import READ_IN
from synth.rubrics.reading.sentences import sentences_in
from synth.rubrics.statements.known import KnownRecords

_MARKS = re.compile(r"^(?:\s|[-*+\u2022#>|]|\(?\d{1,2}[.)](?=\s))+")


class MaterialSentence(NamedTuple):
    text: str
    squeezed: str
    telling: frozenset[str]
    """Stems of the words that say something."""


class Material:
    """The documents and results of one task."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        """`body`: of the task, as `synth.gym.grounding.tasks` makes it."""
        self.question: str = body["question"]
        self.documents: Sequence[str] = body["documents"]
        self.results: Sequence[Mapping[str, Any]] = body["results"]
        self.record: str | None = body.get("record")
        self.fields: Sequence[str] = body.get("fields") or ()
        self.missing: str | None = body.get("missing")
        """The name of the field that was asked for, where it is known that no result has it."""

    @cached_property
    def shown(self) -> str:
        """As the policy and the judge read it."""
        parts = [
            f"Document {number}:\n{text.strip()}" for number, text in enumerate(self.documents, 1)
        ]
        parts += [
            f"Result {number}, of {one['name']}:\n{json.dumps(one['result'], ensure_ascii=False)}"
            for number, one in enumerate(self.results, 1)
        ]
        return "\n\n".join(parts)

    @cached_property
    def squeezed(self) -> str:
        return squeeze(self.shown)

    @cached_property
    def language(self) -> str:
        """By whose table it is read."""
        return language_of("\n".join(self.documents)) or READ_IN

    @cached_property
    def sentences(self) -> list[MaterialSentence]:
        """Of the documents."""
        return [
            MaterialSentence(said, squeeze(said).strip(".,;:!"), telling_words(said))
            for text in self.documents
            for said in sentences_of(text, self.language)
        ]

    @cached_property
    def squeezed_sentences(self) -> frozenset[str]:
        return frozenset(sentence.squeezed for sentence in self.sentences)

    @cached_property
    def reading(self) -> PartReading:
        """The numbers, dates and names of all that is shown."""
        return PartReading(self.shown, untold="en")

    @cached_property
    def records(self) -> KnownRecords:
        """Those of the results. The question is no evidence, but what it says is not unheard of."""
        calls = [
            {
                "name": one["name"],
                "arguments": {},
                "observation": one["result"],
                "is_error": False,
                "state_diff": None,
            }
            for one in self.results
        ]
        said = "\n".join((self.question, *self.documents))
        return KnownRecords([{"role": "user", "content": said}], calls)

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.shown)

    @cached_property
    def question_words(self) -> frozenset[str]:
        return telling_words(self.question)


@lru_cache(maxsize=256)
def _material(text: str) -> Material:
    return Material(json.loads(text))


def material_of(body: Mapping[str, Any]) -> Material:
    """Kept a while, since the answers of a group are about the same."""
    return _material(canonical_json(dict(body)))


def telling_words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(text) if word not in STOPWORDS)


def sentences_of(text: str, language: str) -> list[str]:
    """Each without emphasis, and without the marks of a list or a heading before it."""
    text = cleaned(text)
    spans = sentences_in(text, locale(language))
    found = (_MARKS.sub("", text[start:end]).strip() for start, end in spans)
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]
