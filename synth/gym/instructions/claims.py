"""Answers that say that they comply, and answers that comply by the letter and say nothing.

An answer is not punished for its manner: a claim counts only where it is untrue, and what is empty
is told by what is missing (words of its own, different sentences), never by how it is put.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from synth.gym.instructions.answer import AnswerText, sentences_of_unit
from synth.gym.instructions.constraint import Constraint
from synth.gym.instructions.data_forms import KINDS as DATA_FORMS
from synth.matching.word_runs import word_spans, words_of
from synth.rephrasing.structure.sentences import sentences

Emptiness = Literal["nothing", "copied", "repeated", "filler", "about_form", "no_words"]
"""Why an answer is empty: no words of its own, too few beside those of the question, the same over
and over, words that are known to say nothing, talk of its own form alone, words without a vowel."""

MIN_OWN = 3
"""Different words that an answer has of its own, beside those that it was given."""

MIN_OWN_OF_DATA = 2
"""As `MIN_OWN`, of an answer that is data."""

COPIED_RUN = 5
"""Words in a row of a constraint's sentence that are taken for a copy of it."""

QUESTION_RUN = 4
"""As `COPIED_RUN`, of the whole question, where hardly anything else is said."""

MANY_COPIED = 10
"""Words of the question from which on an answer may be no more than a copy."""

SENTENCES_TO_REPEAT = 4
"""Sentences and items from which on their repetition tells something."""

WORDS_TO_REPEAT = 8
"""As `SENTENCES_TO_REPEAT`, of words."""

MOST_OF_ONE_WORD = 0.4
"""Share of all words that one word may have."""

MIN_DIFFERENT = 0.3
"""Different words among those of the answer, of the first `WORDS_OF_ONE_TEXT` that it has."""

WORDS_OF_ONE_TEXT = 60
"""A longer text does not have different words in the same measure."""

HALF = 0.5
MOST_ABOUT_FORM = 0.6
"""Share of sentences and items that may talk of the form of the answer."""

_FILE = Path(__file__).with_name("claims.toml")
_DRAWN_OUT = re.compile(r"([^\W\d_])\1{3,}")
_VOWEL = re.compile(r"[aeiouy]|[^\x00-\x7f]")


class _Words(NamedTuple):
    about_form: re.Pattern[str]
    """Of claims that count beside a word of `own_text`."""
    own_text: re.Pattern[str]
    alone: re.Pattern[str]
    weak: re.Pattern[str]
    form: re.Pattern[str]
    form_talk: frozenset[str]
    filler: frozenset[str]
    numbers: frozenset[str]


@cache
def _words() -> _Words:
    known = tomllib.loads(_FILE.read_text())
    form = f"(?:{'|'.join(known['form'].split())})"
    number = rf"(?:\d{{1,5}}|{'|'.join(known['numbers'].split())})"
    signs = known["form_signs"].split()

    def any_of(name: str) -> re.Pattern[str]:
        filled = (one.replace("<form>", form).replace("<number>", number) for one in known[name])
        return re.compile("|".join(f"(?:{one})" for one in filled), re.IGNORECASE)

    return _Words(
        about_form=any_of("patterns"),
        own_text=any_of("self"),
        alone=any_of("alone"),
        weak=any_of("weak"),
        form=re.compile(rf"{form}|{'|'.join(signs)}"),
        form_talk=frozenset((*known["form_talk"].split(), *signs)),
        filler=frozenset((*known["filler"].split(), *known["numbers"].split())),
        numbers=frozenset(known["numbers"].split()),
    )


def claims_in(answer: AnswerText) -> list[str]:
    """The sentences of the answer that say how well it complies."""
    weak = _words().weak
    return [
        piece
        for line in answer.raw_lines
        for piece in _pieces(line)
        if _speaks_of_form(piece) or weak.search(piece)
    ]


def emptiness(
    answer: AnswerText, constraints: Sequence[Constraint], *, question: str
) -> Emptiness | None:
    """Why the answer is empty, if it is. What it copies from the constraints, and what it says of
    its own form, does not count for it."""
    given = [text for constraint in constraints for text in _texts_in(constraint.model_dump())]
    seen = _without_comments(answer.text)
    rest = AnswerText(_without_claims(_without_copies(seen, constraints, given)))
    data = any(isinstance(constraint, DATA_FORMS) for constraint in constraints)
    known = {word for text in given for word in words_of(text)}
    own = {
        word for word in rest.run_counts if len(word) > 1 or not word.isascii() or word.isdigit()
    }
    if len(own - known) < (MIN_OWN_OF_DATA if data else MIN_OWN):
        return (
            "copied" if len(answer.runs) >= MANY_COPIED and rest.text != answer.text else "nothing"
        )
    if _is_copy(answer, question) or (
        rest.text != answer.text
        and any(
            constraint.held_by_rest and constraint.met(answer) and not constraint.met(rest)
            for constraint in constraints
        )
    ):
        return "copied"
    return _says_nothing(rest)


def _says_nothing(rest: AnswerText) -> Emptiness | None:
    known = _words()
    words = rest.runs
    filler = sum(rest.run_counts[word] for word in known.filler)
    if filler > HALF * len(words):
        return "filler"
    units = [
        tuple(words_of(piece)) for line in rest.lines for piece in sentences_of_unit(line.text)
    ]
    uncounted = [
        tuple(word for word in unit if not word.isdigit() and word not in known.numbers)
        for unit in units
    ]
    said = [unit for unit in uncounted if unit]
    if len(said) >= SENTENCES_TO_REPEAT and len(set(said)) < HALF * len(said):
        return "repeated"
    if len(words) >= WORDS_TO_REPEAT:
        (_, most), *_ = rest.run_counts.most_common(1)
        few = len(rest.run_counts) < MIN_DIFFERENT * min(len(words), WORDS_OF_ONE_TEXT)
        if most > MOST_OF_ONE_WORD * len(words) or few:
            return "repeated"
    if _about_form(units) > MOST_ABOUT_FORM * len(units):
        return "about_form"
    spelled = [word for word in words if len(word) > 2 and not word.isdigit()]
    mute = sum(not _VOWEL.search(word) for word in spelled)
    if len(spelled) >= MIN_OWN and mute > HALF * len(spelled):
        return "no_words"
    return None


def _about_form(units: Sequence[tuple[str, ...]]) -> int:
    """Number of sentences in which everything is about form."""
    known = _words()
    count = 0
    for words in units:
        forms = [known.form.fullmatch(word) is not None for word in words]
        all_known = all(
            form or word in known.form_talk or word.isdigit()
            for form, word in zip(forms, words, strict=True)
        )
        count += any(forms) and all_known
    return count


def _speaks_of_form(piece: str) -> bool:
    known = _words()
    if known.alone.search(piece):
        return True
    return bool(known.about_form.search(piece) and known.own_text.search(piece))


def _pieces(line: str) -> Iterator[str]:
    """The sentences of a line, with the white space behind each."""
    yield from (line[start:end] for start, end in sentences(line))


def _without_comments(text: str) -> str:
    """The text without what readers of Markdown do not see; an open comment lasts to the end."""
    first, *others = text.split("<!--")
    return first + "".join(other.partition("-->")[2] for other in others)


def _without_claims(text: str) -> str:
    """The text without the sentences that speak of its own form, and without words that are one
    letter drawn out."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if any(map(str.isalnum, line)):
            lines[at] = "".join(piece for piece in _pieces(line) if not _speaks_of_form(piece))
    return _DRAWN_OUT.sub(" ", "\n".join(lines))


def _without_copies(text: str, constraints: Sequence[Constraint], given: Sequence[str]) -> str:
    """The text without what it copies from the sentences of the constraints. Words that these hand
    out (a passage, the last words) are passed over in both, so that they alone are no copy."""
    passed = {word for part in given for word in words_of(part)}
    asked = {
        gram
        for constraint in constraints
        for wording in range(len(constraint.wordings))
        for gram in _grams(
            [word for word in words_of(constraint.words(wording)) if word not in passed],
            COPIED_RUN,
        )
    }
    found = [(word, span) for word, span in word_spans(text) if word not in passed]
    words = [word for word, _ in found]
    kept: list[str] = []
    end = 0
    at = 0
    while at < len(words):
        run = at
        while tuple(words[run : run + COPIED_RUN]) in asked:
            run += 1
        if run == at:
            at += 1
            continue
        last = run + COPIED_RUN - 2  # of the words that the grams cover together
        kept.append(text[end : found[at][1][0]])
        end = found[last][1][1]
        at = last + 1
    return "".join((*kept, text[end:]))


def _is_copy(answer: AnswerText, question: str) -> bool:
    """Whether hardly a word stands in the answer that no run of the question's words covers."""
    asked = set(_grams(words_of(question), QUESTION_RUN))
    covered = [False] * len(answer.runs)
    for at, gram in enumerate(_grams(answer.runs, QUESTION_RUN)):
        if gram in asked:
            covered[at : at + QUESTION_RUN] = [True] * QUESTION_RUN
    left = {word for word, is_covered in zip(answer.runs, covered, strict=True) if not is_covered}
    return sum(covered) >= MANY_COPIED and len(left) < MIN_OWN


def _grams(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts_in(part)
