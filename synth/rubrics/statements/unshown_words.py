"""Words told as the value of a field that the field has nowhere: a name, a status, a place.

Two ways of telling are read, those in which a record is retold: "the status is granted", and
"status granted" as a part of a list of such, one of which is shown. What stands behind the field's
name, up to a comma, an "and" or the sentence's end, must be one of its values or a part of one.
Names told in any other way are not looked at.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth.rubrics.reading.readings import TextReadings

MOST_LABELS = 300
"""Names of fields that are looked for in a text, the longest first."""

_NO_VALUE = frozenset({"a", "an", "and", "as", "for", "is", "none", "not", "of", "or", "that"})
_NO_VALUE |= {"unknown", "was", "what", "which", "yes", "your"}
"""First words of what is no text of a record, though it stands behind the name of a field."""

_FLAGS = (" yes", " no", " none")
"""End of a part that tells a longer field's name and whether it is so: "door ready yes"."""

_SENTENCE = re.compile(r"\S.*?(?:[.?!](?=\s)|$)", re.MULTILINE)
_HERE = re.compile(r"(?:now|still|currently) ")
_SEGMENT = re.compile(r"[^,;?!\n()]+?(?=[,;?!\n()]|\.(?:\s|$)|$)")
_END = re.compile(r"\W*(?:$|(?<=\W)(?:and|or)\b)|\s*[,;.?!\n()]")
_WORD = re.compile(r"[^\W_]+")


def unshown_words(said: TextReadings, by_label: Mapping[str, Sequence[Any]]) -> list[str]:
    """The words in a text that are told as the value of a field and are none, in lower case.
    `by_label`: what each field was shown to be, by its name in words."""
    texts = {label: list(_texts_of(values)) for label, values in by_label.items()}
    labels = sorted((label for label, own in texts.items() if own), key=lambda n: (-len(n), n))
    if not labels:
        return []
    told = _told(labels[:MOST_LABELS])
    numbers = {r.start for r in said.readings if any(map(str.isdigit, r.words))}
    found: list[str] = []
    for sentence in _SENTENCE.finditer(said.lower):
        of: list[str] = []
        parts: list[str] = []
        retells = False
        for match in told.finditer(sentence[0]):
            at = sentence.start() + match.end()
            if (here := _HERE.match(said.lower, at)) is not None:
                at = here.end()
            words = _words_at(said.lower, at)
            if at in numbers or _is_among(said.lower, at, texts[match["of"] or match["part"]]):
                retells = True  # a number, date or id is looked at by itself
            elif words and match["of"]:
                of.append(words)
            elif numbers.isdisjoint(range(at, at + len(words))) and not words.endswith(_FLAGS):
                parts += [words] if words else []
        found += [*of, *parts] if retells else of
    return found


def _told(labels: Sequence[str]) -> re.Pattern[str]:
    """The name of a field where its value follows."""
    names = "|".join(re.escape(label).replace(r"\ ", "[ _-]") for label in labels)
    return re.compile(
        rf"(?:(?:^|[,:;] |\band )the (?P<of>{names}) (?:is|was)|[:,;)] (?P<part>{names})) "
    )


def _words_at(text: str, at: int) -> str:
    """What is told there; nothing where it is no text of a record."""
    segment = _SEGMENT.match(text, at)
    words = _WORD.findall(segment[0]) if segment else []
    if segment is None or not words or words[0] in _NO_VALUE or words == ["no"]:
        return ""
    return segment[0].strip()


def _is_among(text: str, at: int, values: Sequence[str]) -> bool:
    told = f" {' '.join(_WORD.findall(_words_at(text, at)))} "
    for value in values:
        words = _WORD.findall(value)
        whole = re.compile(r"[\W_]*" + r"[\W_]+".join(words)).match(text, at)
        if whole is not None and _END.match(text, whole.end()):
            return True
        if told.strip() and told in f" {' '.join(words)} ":
            return True
    return False


def _texts_of(values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str) and _WORD.search(part):
                yield part.lower()
