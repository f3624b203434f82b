"""Values in a user's words, and what a schema says of a value: no domain is known here."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september")
_MONTHS += ("october", "november", "december")
_MONTH = "|".join(_MONTHS)
_DATES = (
    re.compile(rf"\b(?P<d>\d{{1,2}}) (?P<m>{_MONTH}) (?P<y>\d{{4}})\b", re.IGNORECASE),
    re.compile(rf"\b(?P<m>{_MONTH}) (?P<d>\d{{1,2}}), (?P<y>\d{{4}})\b", re.IGNORECASE),
)
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d) at (\d\d:\d\d)(:\d\d)?")
_PLEASE = re.compile(r",? \bplease\b,?|\bplease,? ", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"')
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_TELL_ME = re.compile(r"\b(?:tell me|let me know|like to know)\b", re.IGNORECASE)
"""What is to be told of a result: no part of what is to be done."""
_PART = re.compile(r", | and |; |: ")
_IS = re.compile(r"^(.*?)\s(?:is|are)\s(.+)$")
_VALUE = re.compile(
    r"\x00\d+\x00|\S+@\S+|[+-]?\d[\w.:+-]*(?: [A-Z\d%][\w.%/-]*)*"
    r"|(?:[A-Z]+-?\d[\w-]*|[A-Z][\w'.-]*)(?: [A-Z\d][\w'.-]*)*"
)
_WORD = re.compile(r"[a-z]+|%")
_ID = re.compile(r"^[A-Z]+(?:-[A-Z]+)*[-_]?\d+\w*$")
_SUCH_AS = re.compile(r'\bsuch as "?(.+?)"?(?:[.;,](?:\s|$)|$)')
_ORDINAL = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6}
_NO_WORDS = frozenset(
    ["the", "a", "an", "it", "its", "id", "ids", "of", "in", "on", "at", "to", "for", "is", "are"]
) | {"my", "your", "this", "that", "i", "you", "me"}

Tool = Mapping[str, Any]
"""Name, description and parameters: the `function` of a declaration."""

Schemas = Mapping[str, Mapping[str, Any]]
"""By name of the parameter, which is their title."""

RETURNS = re.compile(r"\bReturns?\b")


class Fact(NamedTuple):
    """A value in the user's words, with the words that it stands behind."""

    label: frozenset[str]
    value: str
    nth: int = 0
    """Of several alike; 0 where the words do not count them."""


def stem(word: str) -> str:
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + rest
    return word


@lru_cache(4096)
def stems(text: str) -> frozenset[str]:
    return frozenset(stem(w) for w in _WORD.findall(text.lower()) if w not in _NO_WORDS)


def plain_text(text: str) -> str:
    """Dates and times in ISO's form, and without words of courtesy that stand between others."""
    for pattern in _DATES:
        text = pattern.sub(_iso, text)
    return _PLEASE.sub(" ", _CLOCK.sub(lambda m: f"{m[1]}T{m[2]}{m[3] or ':00'}", text))


def _iso(found: re.Match[str]) -> str:
    month = _MONTHS.index(found["m"].lower()) + 1
    return f"{found['y']}-{month:02}-{int(found['d']):02}"


def read(text: str) -> tuple[str, list[Fact]]:
    """What is wished, without values, and the facts that stand with it."""
    quotes: list[str] = []

    def keep(found: re.Match[str]) -> str:
        quotes.append(found[1])
        return f"\x00{len(quotes) - 1}\x00"

    def whole(value: str) -> str:
        return re.sub(r"\x00(\d+)\x00", lambda m: quotes[int(m[1])], value).strip(" .?!\"'")

    facts: list[Fact] = []
    wished: list[str] = []
    for sentence in sentences(_QUOTED.sub(keep, plain_text(text))):
        if _TELL_ME.search(sentence):
            continue
        parts = _PART.split(sentence.strip().rstrip(".?!"))
        for at, part in enumerate(parts):
            label, value = _halves(part, opens=at == 0)
            if not value and at and part.strip() and re.fullmatch(r"yes|no|[\w-]+", part.strip()):
                label, value = parts[at - 1], part  # "refundable: yes"
            if value:
                nth = next((_ORDINAL[w] for w in label.lower().split() if w in _ORDINAL), 0)
                known = stems(label.partition(" in ")[0]) - {stem(w) for w in _ORDINAL}
                if label.endswith(" for") or len(label.split()) > 8:
                    known, nth = frozenset[str](), 0
                    wished.append(label)
                facts.append(Fact(known, whole(value), nth))
            else:
                wished.append(part)
    return " ".join(wished), facts


def _halves(part: str, *, opens: bool) -> tuple[str, str]:
    """Label and value; no value where the part has none."""
    if (found := _IS.match(part)) and len(found[1].split()) <= 7:
        return found[1], found[2]
    for found in _VALUE.finditer(part):
        if found.start() > 0 and found[0] not in ("I", "I'd", "ID"):
            return part[: found.start()].strip(), part[found.start() :]
    return (part, "") if opens or not part.startswith("\x00") else ("", part)


def _written(value: Any) -> str:
    return str(value).lower().replace("-", "_").replace(" ", "_")


def converted(value: str, schema: Mapping[str, Any]) -> Any:
    """The value as the schema wants it; None where it cannot be that."""
    if options := schema.get("enum"):
        meant = _written(value)
        return next((option for option in options if _written(option) == meant), None)
    kind = schema.get("type")
    if kind == "boolean":
        return {"yes": True, "true": True, "no": False, "false": False}.get(value.lower())
    if kind in ("integer", "number"):
        found = re.match(r"^[+-]?\d+(?:\.\d+)?(?=$|[ %])", value)
        number = None if found is None else float(found[0])
        return None if number is None else int(number) if number == int(number) else number
    if kind != "string":
        return None
    if schema.get("format") == "date":
        return value[:10] if re.match(r"\d{4}-\d\d-\d\d", value) else None
    example = example_of(schema)
    if wants_id(schema):
        alike = prefix(value) == prefix(example) if _ID.match(example) else not example
        return value if _ID.match(value) and alike else None
    if re.match(r"\d{4}-\d\d-\d\dT", example) and not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    return None if (p := schema.get("pattern")) and not re.search(p, value) else value


def example_of(schema: Mapping[str, Any]) -> str:
    found = _SUCH_AS.search(schema.get("description") or "")
    return found[1] if found else ""


def wants_id(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter is called an id; its name is the schema's title."""
    return bool(re.search(r"(?:^|_)ids?$|[a-z]Ids?$", schema.get("title") or ""))


def prefix(value: str) -> str:
    return re.split(r"[-_\d]", value, maxsplit=1)[0]


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text.strip()) if part]


def spoken(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


def described(tool: Tool) -> frozenset[str]:
    """Words of the name and of what the tool does; not of what it returns."""
    doing = RETURNS.split(tool.get("description") or "")[0]
    return stems(f"{spoken(tool['name'])} {doing}")


def properties(schema: Mapping[str, Any]) -> Schemas:
    given = schema.get("properties") or {}
    return {name: {**inner, "title": name} for name, inner in given.items()}
