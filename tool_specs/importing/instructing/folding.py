"""Letters in disguise: look-alikes of other alphabets, letters set apart, digits for letters.

A folded text is read beside the text itself and never instead of it. Only what is no writing of any
language is folded: a word that mixes alphabets, or one that is Latin as a whole once it is folded.
So an honest Russian, Greek or Chinese text stays as it is.
"""

import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii
from confusable_homoglyphs.confusables import confusables_data

MIN_SPACED = 12
"""Letters in a row, each set apart from the next, from which on they are no list of choices."""

MIN_DISGUISED = 2
"""Different words that mix alphabets; a single one may be an example or a slip."""

MIN_DISGUISED_CHARS = 4
"""Of a word that mixes alphabets, so that units and symbols are none."""

MIN_LEET = 4
"""Different words with a digit between letters; few texts name so many such as `neo4j`."""

_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)
_WORD = re.compile(r"[^\W_]+")
_MARKS = "".join(c for c in map(chr, range(0x300, 0x1000)) if unicodedata.category(c)[0] == "M")
_LETTER = f"[^\\W\\d_][{_MARKS}]*"
_SPACED = re.compile(
    rf"(?<![\w{_MARKS}]){_LETTER}(?:[ \t.\-_*\u00b7|/\u3000]{{1,4}}{_LETTER})"
    rf"{{{MIN_SPACED - 1},}}(?![\w{_MARKS}])"
)
_LEET = {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i"}
_LEET_WORD = re.compile(r"(?<![\w@$!])[a-zA-Z0134571@$!]*[0134571@$][a-zA-Z0134571@$!]*(?!\w)")
_BETWEEN_LETTERS = re.compile(r"[a-z][013457@$][a-z]", re.IGNORECASE)
_LATIN_LIKE_CYRILLIC = str.maketrans(
    "aceopxyikABCEHKMOPTXI",
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u043a"
    "\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425\u0406",
)


def folded(text: str) -> list[str]:
    """The text with what is disguised in it written plainly, once for each way to read a digit;
    none where nothing is disguised."""
    plain = _SPACED.sub(lambda found: joined(found.group()), _UNSEEN.sub("", text))
    if not plain.isascii():
        plain = _WORD.sub(lambda found: _folded_word(found.group()), plain)
    forms = [plain, *(_without_digits(plain, one) for one in "il")]
    return [form for form in dict.fromkeys(forms) if form != text]


def is_disguised(text: str) -> bool:
    """Whether the text is disguised at such a length that no honest reason is left for it."""
    if _SPACED.search(text):
        return True
    leet = {found.lower() for found in _LEET_WORD.findall(text) if _BETWEEN_LETTERS.search(found)}
    if len(leet) >= MIN_LEET:
        return True
    if text.isascii():
        return False
    words = {found.group() for found in _WORD.finditer(text)}
    return sum(map(_mixes_alphabets, words)) >= MIN_DISGUISED


def joined(letters: str) -> str:
    """Letters that stand apart as words: the longer gaps, where there are any, are the blanks."""
    return re.sub(r"[ \t.\-_*\u00b7|/\u3000]{2,}|[ \t.\-_*\u00b7|/\u3000]", _gap, letters)


def _gap(found: re.Match[str]) -> str:
    return " " if len(found.group()) > 1 else ""


@lru_cache(maxsize=8192)
def _folded_word(word: str) -> str:
    if word.isascii():
        return word
    letters = [_latin(character) for character in word]
    if None not in letters:
        return "".join(letter or "" for letter in letters)
    if _has(word, "CYRILLIC") and _has(word, "LATIN"):
        return word.translate(_LATIN_LIKE_CYRILLIC)
    return word


def _latin(character: str) -> str | None:
    """What the character looks like among ASCII letters and digits, None for nothing."""
    if character.isascii():
        return character
    if unicodedata.name(character, "").startswith(("LATIN", "MODIFIER LETTER", "MATHEMATICAL")):
        plain = anyascii(character)
        return plain if plain.isalnum() else None
    alike = (one["c"] for one in confusables_data.get(character, ()))
    return next((one for one in alike if one.isascii() and one.isalnum()), None)


@lru_cache(maxsize=8192)
def _mixes_alphabets(word: str) -> bool:
    """Whether letters of one alphabet stand in a word of another that they look like."""
    if word.isascii() or len(word) < MIN_DISGUISED_CHARS or not _has(word, "LATIN"):
        return False
    if not any(_has(word, script) for script in ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")):
        return False
    plain = _folded_word(word)
    return plain != word and (plain.isascii() or not _has(plain, "LATIN"))


def _has(word: str, script: str) -> bool:
    return any(unicodedata.name(character, "").startswith(script) for character in word)


def _without_digits(text: str, one: str) -> str:
    letters = str.maketrans(_LEET | {"1": one})
    return _LEET_WORD.sub(lambda found: _read(found.group(), letters), text)


def _read(word: str, letters: dict[int, str]) -> str:
    return word.translate(letters) if any(map(str.isalpha, word)) else word
