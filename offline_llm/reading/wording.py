"""English from data: values as people write them, and what a tool does as a phrase."""

import re
from datetime import date
from typing import Any, NamedTuple

from offline_llm.reading.reading import MONTHS, mentions
from offline_llm.reading.toolbox import first_sentence
from offline_llm.reading.words import ORDINALS, joined, plain

_IRREGULAR = {
    "send": "sent", "set": "set", "put": "put", "take": "taken", "make": "made", "give": "given",
    "pay": "paid", "find": "found", "buy": "bought", "sell": "sold", "get": "got", "tell": "told",
    "hold": "held", "write": "written", "run": "run", "begin": "begun", "let": "let", "cut": "cut",
    "bring": "brought", "build": "built", "lend": "lent", "keep": "kept", "show": "shown",
    "see": "seen", "read": "read", "reset": "reset", "lay": "laid", "shut": "shut",
    "leave": "left", "draw": "drawn", "withdraw": "withdrawn", "undo": "undone", "split": "split",
    "freeze": "frozen", "choose": "chosen", "break": "broken", "wind": "wound", "do": "done",
    "submit": "submitted", "refer": "referred", "prefer": "preferred", "transfer": "transferred",
    "commit": "committed", "cancel": "cancelled", "look": "looked", "feed": "fed", "spin": "spun",
}  # fmt: skip
_CUT = re.compile(
    r"\s*(?:[;:,(]|\.\s|\s-\s"
    r"| and (?:then |so )?(?=[a-z]+ (?:the|a|an|its|their|it|them|every|all)\b)"
    r"| so that | such as | by its | by their | by (?!the |a |an )| from now on| if any| when )"
)
_TAIL = re.compile(
    r"\s+(?:per|for each|(?:with|from an) optional|optionally|or (?=[a-z]+ an? ))\b.*$"
)
_VERB_S = re.compile(r"^(\w+?)(ies|sses|shes|ches|xes|zes|s)$")


class ToolPhrase(NamedTuple):
    """What a tool does: `cancel` and `a booked seat`."""

    verb: str
    rest: str

    def __str__(self) -> str:
        return f"{self.verb} {self.rest}".strip()


def phrase_of(name: str, description: str) -> ToolPhrase:
    """From the first sentence of the description, cut before side clauses; else from the name."""
    sentence = re.sub(r"\s*\([^)]*\)", "", first_sentence(description))
    words = _CUT.split(sentence)[0].split()
    if len(words) < 2 or not words[0].isalpha():
        words = sentence.split() or ["see", "the", *plain(name).split()]
    words, first = words[:14], words[0].lower()
    match = _VERB_S.match(first)
    if match and len(first) > 3 and not first.endswith(("ss", "us")):
        stem, ending = match.groups()
        first = stem + {"ies": "y", "s": ""}.get(ending, ending[:-2])
    return ToolPhrase(first, _TAIL.sub("", " ".join(words[1:])).rstrip(". "))


def definite(rest: str) -> str:
    """`a booked seat` becomes `the booked seat`."""
    return re.sub(r"^(?:an?|some)\s+", "the ", rest)


def past(verb: str) -> str:
    """The participle: cancel, cancelled."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    if re.search(r"^[^aeiou]*[aeiou][bdgmnprt]$|[^aeiou][aeiou]l$", verb):
        return f"{verb}{verb[-1]}ed"
    return verb + "ed"


def spoken_date(text: str, style: int) -> str:
    """An ISO date or date and time in one of three spellings."""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return text
    month = MONTHS[day.month - 1].capitalize()
    wordy = (f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}")
    shown = (text[:10], *wordy)[style % 3]
    clock = re.match(r"[T ](\d\d:\d\d)(?::(\d\d))?([+-]\d\d:\d\d)?", text[10:])
    if not clock:
        return shown
    seconds = f":{clock.group(2)}" if clock.group(2) not in (None, "00") else ""
    offset = f", UTC offset {clock.group(3)}" if clock.group(3) else ""
    return f"{shown} at {clock.group(1)}{seconds}{offset}"


def spoken(value: Any, style: int = 0) -> str:
    """A value in running text. Fixed words lose their underscores, lists get an `and`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return joined([spoken(v, style) for v in value]) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{plain(str(k)).lower()} {spoken(v, style)}" for k, v in value.items())
    text = str(value)
    if re.fullmatch(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?", text):
        return spoken_date(text, style)
    if hours := re.fullmatch(r"[+-](\d+(?:\.\d+)?)h", text):
        return f"{text} ({float(hours.group(1)):g} hours)"
    if re.fullmatch(r"[a-z]+(?:_[a-z0-9]+)+", text):
        return text.replace("_", " ")
    return text


def legible(value: Any, style: int = 0) -> str:
    """A value said so that a reader finds its ends: in quotation marks where it needs them."""
    text = spoken(value, style)
    if not isinstance(value, str) or text != value:
        return text
    seen = mentions(f"it is {text} there", "")
    if len(seen) == 1 and seen[0].text == text:
        return text
    if re.fullmatch(r"[a-z]+", text):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def said_label(label: str) -> str:
    """`parts 2 part name` becomes `second part name`, a number in brackets is left out."""
    words = re.sub(r"\s*\(\d+\)$", "", plain(label).lower())
    numbered = re.match(r"(.*?)\b([1-6])\s+(.*)", words)
    if numbered:
        before, number, rest = numbered.groups()
        words = f"{ORDINALS[int(number) - 1]} {before}{rest}"
    tokens = words.split()
    return " ".join(t for i, t in enumerate(tokens) if tokens[i + 1 : i + 2] not in ([t], [t[:-1]]))


def labelled(label: str, value: Any, style: int = 0) -> str:
    """`the reason is illness`; labels that end in a preposition need no verb."""
    words, _, unit = said_label(label).partition(" in ")
    if isinstance(value, bool) or value in ("True", "False"):
        return f"{words}: {'yes' if str(value) == 'True' else 'no'}"
    said = legible(value, style)
    if unit and isinstance(value, int | float):
        said = f"{said} {label.rsplit(' in ', 1)[1]}"
    elif unit:
        words = f"{words} in {unit}"
    if words.split()[-1:] and words.split()[-1] in ("at", "on", "by", "until", "from", "to", "in"):
        return f"it {words} {said}" if words.split()[0].endswith("s") else f"{words} {said}"
    if isinstance(value, list) and len(value) > 1:
        return f"the {words} are {said}"
    return f"the {words} is {said}"
