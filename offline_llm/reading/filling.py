"""Arguments from words: which value of the goal belongs to which parameter of a tool."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from offline_llm.reading.reading import Mention, mentions, shape
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.words import plain, split, stem, stems, table

_NAMING = frozenset(map(stem, table("name title label code id")))
"""Words for how a thing is called, which say nothing of which thing it is."""
_GENERIC = _NAMING | frozenset(
    map(stem, table("date day time at on when number amount value text"))
)
"""Parameter words that any value of the right type may stand for."""
_KIND_WORDS = {
    "email": {"email", "mail"},
    "url": {"url", "uri", "link", "website"},
    "path": {"path", "fil", "directori", "folder", "repo", "repositori", "branch", "dir"},
    "zone": {"timezon", "zon", "tz"},
}
PLACES = frozenset({"repo", "repositori", "directori", "dir", "root", "workspac"})
"""Parameter words for where something lies, which holds for a whole conversation."""
_BASE = {
    "string": {"quoted": 0.75, "name": 0.6, "word": 0.5, "id": 0.3, "number": 0.1, "date": 0.2},
    "number": {"number": 0.8},
    "date": {"date": 1.0, "datetime": 0.7},
    "datetime": {"datetime": 1.0, "date": 0.2},
    "time": {"time": 1.0, "datetime": 0.6},
}
"""How well the kinds of mentions suit a form of value, labels apart."""
_TEXTS = frozenset(table("quoted name path id word"))
_MASKED = frozenset(table("quoted name email path url id"))
_YES = re.compile(r"\b(?:yes|true|on|enabled?|with|include|including)\b", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|not|false|off|disabled?|without|exclude|excluding)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Words:
    """What a person said about one goal, and what day it is there."""

    text: str
    today: str
    starts: frozenset[int] | None = None
    """Where the mentions begin that count; None: all of them."""

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        found = mentions(self.text, self.today)
        return found if self.starts is None else tuple(m for m in found if m.start in self.starts)

    @cached_property
    def tokens(self) -> tuple[list[str], list[str]]:
        """Words and their stems, without those of names and quotations, which are no choices."""
        text = self.text
        for mention in reversed(mentions(self.text, self.today)):
            if mention.kind in _MASKED:
                text = f"{text[: mention.start]} - {text[mention.end :]}"
        words = split(text)
        return words, [stem(word) for word in words]

    def only(self, chosen: Iterable[Mention]) -> "Words":
        return Words(self.text, self.today, frozenset(m.start for m in chosen))


def fill(
    tool: Tool, words: Words, *, lookup: bool, prefer: Callable[[Mention], float] = lambda _: 1.0
) -> dict[str, Any]:
    """Values for the parameters that the words give. In a look-up a value must be labelled for an
    optional parameter, because a wrong filter hides what is looked for; `prefer` weighs the
    mentions by how much they are about the thing that is looked for."""
    filled: dict[str, Any] = {}
    texts = [p for p in tool.params if p.is_text]
    pairs: list[tuple[float, int, int]] = []
    for i, param in enumerate(tool.params):
        strict = lookup and not param.required
        if param.enum or param.kind == "boolean":
            # in a look-up an adjective in passing is no filter
            choice = None if strict and not param.enum else _choice(param, words, strict=strict)
            filled |= {} if choice is None else {param.name: choice}
        elif not (param.is_cursor or param.parts):
            least = 0.55 if lookup else 0.75 if param.required else 0.95
            for j, mention in enumerate(words.mentions):
                is_name = mention.kind == "name" and "nam" in param.name_words
                loose = is_name or (mention.kind == "quoted" and texts == [param])
                score = prefer(mention) * fit(param, mention, tool, strict=strict and not loose)
                if score >= least:
                    pairs.append((score, i, j))
    gone: set[int] = set()
    for _, i, j in sorted(pairs, key=lambda p: (-p[0], p[2], p[1])):
        param, value = tool.params[i], typed(tool.params[i], words.mentions[j])
        if j in gone or (param.name in filled and param.kind != "array"):
            continue
        if param.kind == "string" and value in filled.values():
            continue  # the same value said twice fills one parameter
        gone.add(j)
        if param.kind != "array":
            filled[param.name] = value
        elif value not in filled.setdefault(param.name, []):
            filled[param.name].append(value)
    for param in tool.params:
        if param.name not in filled and (said := _after_label(param, words)):
            filled[param.name] = said
    return filled if lookup else filled | _the_last(tool, words, filled)


def _the_last(tool: Tool, words: Words, filled: dict[str, Any]) -> dict[str, Any]:
    """One text is open and one value is left over: they belong together."""
    needed = [p for p in tool.required if p.name not in filled and not p.name_words & PLACES]
    if len(needed) != 1 or not needed[0].is_text or any(p.is_id for p in tool.params):
        return {}
    left = [m.text for m in leftover(filled, words) if m.kind in _TEXTS]
    whole = {text for text in left if not any(text in other != text for other in left)}
    return {needed[0].name: whole.pop()} if len(whole) == 1 else {}


def fit(param: Param, mention: Mention, tool: Tool, *, strict: bool = False) -> float:
    """How well a mention suits a parameter: its type, its spelling and the words before it."""
    base, near = _base(param, mention), set(mention.left)
    if base <= 0:
        return 0.0
    labelled = len(param.name_words & near)
    described = 0.25 * len((param.words - param.name_words) & near)
    unit = 0.0
    if mention.kind == "number" and mention.right:
        in_words, in_head = mention.right[0] in param.words, mention.right[0] in tool.head_words
        unit = 0.5 if in_words else 0.3 * in_head
    special = param.name_words - _GENERIC
    if param.kind in ("number", "integer") and not (param.required or labelled or unit):
        return 0.0
    if strict and special and not (special & near or unit or base >= 1.5):
        return 0.0
    nearest = 0.05 * bool(param.name_words.intersection(mention.left[-1:]))
    score = base + 0.8 * min(labelled, 2) + min(described, 0.75) + unit + nearest
    return 0.3 * score if _belongs_elsewhere(param, tool, near) else score


def _belongs_elsewhere(param: Param, tool: Tool, near: set[str]) -> bool:
    """The words before the mention name what another parameter identifies or holds."""
    if any(p.parts and p is not param and near & p.name_words for p in tool.params):
        return True
    if param.is_id or near & (param.name_words - _NAMING):
        return False
    return any(p.is_id and near & (p.nouns - param.words) for p in tool.params)


def _base(param: Param, mention: Mention) -> float:
    kind, text = mention.kind, mention.text
    if param.is_id:
        if kind not in ("id", "quoted") and (kind, param.kind) != ("number", "integer"):
            return 0.0
        if param.prefix:
            return 2.0 if text.startswith(param.prefix) else 0.0
        if param.example:
            return 1.5 if shape(text) == param.example_shape else 0.3
        return 0.9 if kind == "id" or param.nouns & set(mention.left) else 0.3
    if param.kind in ("number", "integer"):
        return 0.0 if param.kind == "integer" and "." in text else _BASE["number"].get(kind, 0.0)
    if param.form != "plain":
        return _BASE[param.form].get(kind, 0.0)
    if param.kind not in ("string", "array"):
        return 0.0
    if param.name_words & PLACES and not text.startswith(("/", "~", ".")):
        return 0.0
    like = 0.6 if param.example and shape(text) == param.example_shape else 0.0
    for known, words in _KIND_WORDS.items():
        wanted = bool(words & param.name_words)
        if kind == known:
            return 1.6 if wanted or like else 0.25
        if wanted and (known != "path" or " " in text):
            return 0.0
    return _BASE["string"].get(kind, 0.0) + like


def typed(param: Param, mention: Mention) -> Any:
    text = mention.text
    if param.kind in ("integer", "number") and mention.kind == "number":
        return float(text) if param.kind == "number" and "." in text else int(float(text))
    if param.form == "date":
        return text[:10]
    return text[11:16] if param.form == "time" and mention.kind == "datetime" else text


def _choice(param: Param, words: Words, *, strict: bool) -> Any:
    """The fixed value that the words name, the one nearest behind the parameter's own name;
    `strict` takes only values that stand behind it."""
    if param.kind == "boolean":
        return _switch(param, words.text)
    many = param.kind == "array"
    for mention in words.mentions:
        same = [e for e in param.enum if plain(str(e)).lower() == plain(mention.text).lower()]
        named = not mention.left or param.name_words & set(mention.left)
        if same and mention.kind in _MASKED and named:
            return same[:1] if many else same[0]
    tokens, said = words.tokens
    hits: list[tuple[float, int, Any]] = []
    for value in param.enum:
        wanted = split(plain(str(value)))
        for at in range(len(said) - len(wanted) + 1) if wanted and wanted[0] in tokens else ():
            label = bool(param.name_words & set(said[max(0, at - 4) : at]))
            if tokens[at : at + len(wanted)] == wanted and (label or not strict):
                hits.append((len(wanted) + 2.0 * label + at / 1000, at, value))
    if many:
        return list(dict.fromkeys(v for _, _, v in sorted(hits, key=lambda h: h[1]))) or None
    if not hits or (max(hits)[0] < 2.0 and len({str(h[2]) for h in hits}) > 1):
        return None  # nothing, or several in passing: the words do not choose
    return max(hits, key=lambda h: h[0])[2]


def _switch(param: Param, text: str) -> bool | None:
    for sentence in re.split(r"[.;,!?]\s|\band\b", text):
        if param.name_words and param.name_words <= set(stems(sentence)):
            if _NO.search(sentence):
                return False
            if _YES.search(sentence) or not param.required:
                return True
    return None


def _after_label(param: Param, words: Words) -> str | None:
    """`the reason is a broken lamp`: free words after the parameter's own name."""
    label = plain(param.name).lower()
    if not param.is_text or label not in words.text.lower():
        return None
    found = re.search(
        rf"\b{re.escape(label)}(?:\s+(?:is|should be|to|reads?|says?)|:|\s*=)\s+"
        r"([^.;:,!?\n]{1,200}?)(?=\s+and\s|[.;:,!?\n]|$)",
        words.text,
        re.IGNORECASE,
    )
    if not found or any(m.start <= found.start(1) + 1 < m.end for m in words.mentions):
        return None  # a value of its own, which has found its place
    return found.group(1).strip()


def label_of(param: Param) -> str:
    """The parameter in words, to ask a person for it."""
    words = plain(param.name).lower()
    return re.sub(r"\s+ids?$", "", words) if param.is_id else words


def leftover(filled: dict[str, Any], words: Words) -> list[Mention]:
    """Mentions that no argument took: they describe what has to be looked up."""
    taken = [
        str(v) for part in filled.values() for v in (part if isinstance(part, list) else [part])
    ]

    def is_free(text: str) -> bool:
        if text in taken or any(len(t) >= 10 and text.startswith(t) for t in taken):
            return False  # as it stands, or the date of a date and time
        return "." not in text or text.rstrip("0").rstrip(".") not in taken

    return [mention for mention in words.mentions if is_free(mention.text)]
