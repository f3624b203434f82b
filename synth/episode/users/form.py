"""The form of a turn of the simulated user: whose words it holds, in which language, and whether it
says anything.

What is certain is told from marks, not from meanings: labels of both roles, running words of the
instructions, the script and the function words of a language. Words that only often go with a
fault (`hints.toml`) make a turn doubtful and decide nothing.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from synth.rubrics.reading.locales import cleaned, language_of, locale, lowered

RULE_WORDS = 8
"""So many words in a row shared with the instructions are no coincidence."""

LABELLED_WORDS = 3
"""Words after a label from which a line is somebody's speech and no entry of a form."""

TELLING_WORDS = 6
"""Words from which the language of a message is told, and at least half as many function words."""

FOREIGN = 3
"""A message is in another language when it has so many times more of that one's function words than
of its own language's."""

SCRIPT_LETTERS = 8
"""Letters of another script from which a message is written in it."""

SCRIPT_SHARE = 0.6
"""Share of those letters among all letters."""

SENSELESS_WORDS = 24
"""Words from which a message that says few of them over and over is senseless."""

SENSELESS_SHARE = 0.25
"""Share of different words among the words of such a message."""

TurnHint = Literal["out_of_role", "serves", "closing"]

_MARKS = re.compile(
    r"^#+ *(?:persona|what you (?:want|know|can do yourself)|rules) *$|\((?:say it at once|"
    r"only when asked)\)|\"done\"\s*:\s*(?:true|false)|</?tool_call>?|<\|[a-z_]+\|>",
    re.IGNORECASE | re.MULTILINE,
)
"""What stands in the instructions, or in the form of an answer, and in no person's words."""

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LOST = "\ufffd"


@cache
def _hints() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("hints.toml").read_text())


@cache
def _pattern(hint: TurnHint) -> re.Pattern[str]:
    """Of all languages: what a user slips into need not be in its own."""
    tables = [table for table in _hints().values() if hint in table]
    spaced = [word for table in tables if table is not _hints()["zh"] for word in table[hint]]
    return re.compile(rf"\b(?:{'|'.join(spaced)})|{'|'.join(_hints()['zh'][hint])}")


def hinted(hint: TurnHint, text: str) -> bool:
    """Whether words stand in the text that often, and not always, go with this."""
    return _pattern(hint).search(lowered(cleaned(text))) is not None


def tokens(text: str) -> list[str]:
    """Words in lower case; of a script without spaces, characters."""
    return _TOKEN.findall(text.casefold())


def word_runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"[\w']+", text.casefold())
    return frozenset(zip(*(words[i:] for i in range(RULE_WORDS)), strict=False))


def leaks(message: str, instructions: frozenset[tuple[str, ...]]) -> bool:
    """Whether the user quotes its instructions, or shows marks of them or of a model's form."""
    return bool(_MARKS.search(message)) or not instructions.isdisjoint(word_runs(message))


def labelled_roles(message: str) -> frozenset[str]:
    """The roles (user, assistant) under whose label a line of the message speaks."""
    return frozenset(
        role
        for role, labels in _hints()["labels"].items()
        for said in _labelled(labels).findall(cleaned(message))
        if len(tokens(said)) >= LABELLED_WORDS
    )


def _labelled(labels: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:{'|'.join(labels)}) ?: *(.*)$", re.IGNORECASE | re.MULTILINE)


def is_senseless(message: str) -> bool:
    """Whether it is one thing over and over, or characters that were lost."""
    words = tokens(message)
    again = len(set(words)) <= SENSELESS_SHARE * len(words)
    return (len(words) >= SENSELESS_WORDS and again) or message.count(_LOST) >= RULE_WORDS


def is_foreign(message: str, texts: Sequence[str], known: Iterable[str]) -> bool:
    """Whether a message is in another language than every one of the texts. Quotations do not
    count, and nor does a language that one of the texts, or of what is `known`, names. False where
    either is unsure."""
    named = [*texts, *known]
    said = _QUOTED.sub(" ", cleaned(message))
    if _is_in_another_script(said, texts):
        return not (_HAN.search(said) and _names("zh", named))
    language, words = language_of(said), tokens(said)
    spoken = {code for code in map(language_of, texts) if code}
    if language is None or language == "zh" or not spoken or language in spoken:
        return False
    if len(words) < TELLING_WORDS or _names(language, named):
        return False
    own = [_function_words(words, code) for code in spoken]
    count = _function_words(words, language)
    return count >= TELLING_WORDS / 2 and count >= FOREIGN * max(own)


def _is_in_another_script(said: str, texts: Sequence[str]) -> bool:
    letters = Counter(map(_script, filter(str.isalpha, said)))
    if not letters:
        return False
    script, count = letters.most_common(1)[0]
    if count < SCRIPT_LETTERS or count < SCRIPT_SHARE * letters.total():
        return False
    return not any(_script(c) == script for text in texts for c in text if c.isalpha())


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]


def _names(language: str, texts: Sequence[str]) -> bool:
    """Whether one of the texts names the language, as one that the user may well go over to."""
    names = _hints()[language]["names"].split()
    return any(name in text.casefold() for name in names for text in texts)


def _function_words(words: Sequence[str], language: str) -> int:
    known = locale(language).function_words
    return sum(word in known for word in words)


_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")


def asks(text: str) -> bool:
    """Whether the text ends on a question that wants an answer, an offer of more help apart."""
    return _is_question(_sentences(text)[-1])


def holds_question(text: str) -> bool:
    """Whether any sentence of the text is such a question."""
    return any(map(_is_question, _sentences(text)))


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text.strip()) if part] or [""]


def _is_question(sentence: str) -> bool:
    return sentence.endswith(("?", "\uff1f")) and not hinted("closing", sentence)
