"""Arguments from words: which value of the wish belongs to which parameter of a tool."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from synth.offline.reading import Mention, mentions, shape
from synth.offline.toolbox import Param, Tool
from synth.offline.words import plain, split, stem, stems, table

_GENERIC = frozenset(
    map(stem, table("date day time at on when number amount value name id text title"))
)
"""Parameter words that any value of the right type may stand for."""
_KIND_WORDS = {
    "email": {"email", "mail"},
    "url": {"url", "uri", "link", "website"},
    "path": {"path", "fil", "directori", "folder", "repo", "repositori", "branch", "dir"},
    "zone": {"timezon", "zon", "tz"},
}
_NAMING = frozenset(map(stem, table("name title label code id")))
"""Words for how a thing is called, which say nothing of which thing it is."""
PLACES = frozenset({"repo", "repositori", "directori", "dir", "root", "workspac"})
"""Parameter words for where something lies, which holds for a whole conversation."""
_TEXTS = frozenset(table("quoted name path id word"))
_MASKED = frozenset(table("quoted name email path url id"))
_YES = re.compile(r"\b(?:yes|true|on|enabled?|with|include|including)\b", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|not|false|off|disabled?|without|exclude|excluding)\b", re.IGNORECASE)


class Filled(NamedTuple):
    values: dict[str, Any]
    used: dict[str, list[Mention]]
    """The mentions that the values were taken from, by parameter."""


@dataclass(frozen=True)
class Words:
    """What a person said about one wish, and what day it is there."""

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


def fill(tool: Tool, words: Words, *, lookup: bool) -> dict[str, Any]:
    """The values of `assign`."""
    return assign(tool, words, lookup=lookup).values


def assign(
    tool: Tool, words: Words, *, lookup: bool, prefer: Callable[[Mention], float] = lambda _: 1.0
) -> Filled:
    """Values for the parameters that the words give. In a look-up a value must be labelled for an
    optional parameter, because a wrong filter hides what is looked for; `prefer` weighs the
    mentions by how much they are about the thing that is looked for."""
    filled: dict[str, Any] = {}
    texts = [p for p in tool.params if p.is_text]
    alone = texts[0] if len(texts) == 1 else None
    pairs: list[tuple[float, int, int]] = []
    for i, param in enumerate(tool.params):
        if param.is_cursor or param.parts:
            continue
        if param.enum or param.kind == "boolean":
            strict = lookup and not param.required
            if strict and param.kind == "boolean":
                continue  # an adjective in passing is no filter
            value = _choice(param, words, strict=strict)
            if value is not None:
                filled[param.name] = value
            continue
        strict = lookup and not param.required
        least = 0.55 if lookup else 0.75 if param.required else 0.95
        for j, mention in enumerate(words.mentions):
            loose = mention.kind in ("name", "quoted") and (
                alone is param or (mention.kind == "name" and "nam" in param.name_words)
            )
            score = prefer(mention) * fit(
                param, mention, strict=strict and not loose, counted=tool.head_words
            )
            score *= 0.3 if _belongs_elsewhere(param, tool, mention) else 1.0
            if score >= least:
                pairs.append((score, i, j))
    used: dict[str, list[Mention]] = {}
    gone: set[int] = set()
    for _, i, j in sorted(pairs, key=lambda p: (-p[0], p[2], p[1])):
        param, mention = tool.params[i], words.mentions[j]
        if j in gone or (param.name in filled and param.kind != "array"):
            continue
        if param.kind == "string" and typed(param, mention) in filled.values():
            continue  # the same value said twice fills one parameter
        gone.add(j)
        used.setdefault(param.name, []).append(mention)
        value = typed(param, mention)
        if param.kind != "array":
            filled[param.name] = value
        elif value not in filled.setdefault(param.name, []):
            filled[param.name].append(value)
    for param in tool.params:
        if param.name not in filled and (said := _after_label(param, words)):
            filled[param.name] = said
    open_ones = [p for p in tool.required if p.name not in filled and not p.name_words & PLACES]
    if (
        not lookup
        and len(open_ones) == 1
        and open_ones[0].is_text
        and not any(p.is_id for p in tool.params)
    ):
        taken = [str(value) for value in filled.values()]
        left = [m for m in words.mentions if m.text not in taken and m.kind in _TEXTS]
        whole = {m.text for m in left if not any(m.text in o.text != m.text for o in left)}
        if len(whole) == 1:  # one value for the one parameter that is open
            filled[open_ones[0].name], used[open_ones[0].name] = whole.pop(), left
    return Filled(filled, used)


def _belongs_elsewhere(param: Param, tool: Tool, mention: Mention) -> bool:
    """The words before the mention name what another parameter identifies."""
    near = set(mention.left)
    if any(p.parts and p is not param and near & p.name_words for p in tool.params):
        return True
    if param.is_id or near & (param.name_words - _NAMING):
        return False
    return any(p.is_id and near & (p.nouns - param.words) for p in tool.params)


def fit(
    param: Param, mention: Mention, *, strict: bool = False, counted: frozenset[str] = frozenset()
) -> float:
    """How well a mention suits a parameter: its type, its spelling and the words before it.
    `counted`: what the tool deals in, which the word after a number may name."""
    base = _type_fit(param, mention)
    if base <= 0:
        return 0.0
    near = mention.left[-4:]
    labelled = sum(1.0 for word in param.name_words if word in near)
    described = sum(0.25 for word in param.words - param.name_words if word in near)
    unit = 0.0
    if mention.kind == "number" and mention.right:
        unit = 0.5 if mention.right[0] in param.words else 0.3 * (mention.right[0] in counted)
    special = param.name_words - _GENERIC
    if param.kind in ("number", "integer") and not (param.required or labelled or unit):
        return 0.0
    if strict and special and not (special & set(near)) and not unit and base < 1.5:
        return 0.0
    return base + min(labelled, 2.0) * 0.8 + min(described, 0.75) + unit


def _type_fit(param: Param, mention: Mention) -> float:
    kind = mention.kind
    if param.is_id:
        return _id_fit(param, mention)
    if param.kind in ("number", "integer"):
        whole = param.kind == "number" or "." not in mention.text
        return 0.8 if kind == "number" and whole else 0.0
    if param.form == "date":
        return {"date": 1.0, "datetime": 0.7}.get(kind, 0.0)
    if param.form == "datetime":
        return {"datetime": 1.0, "date": 0.2}.get(kind, 0.0)
    if param.form == "time":
        return {"time": 1.0, "datetime": 0.6}.get(kind, 0.0)
    if param.kind not in ("string", "array"):
        return 0.0
    return _text_fit(param, mention)


def _id_fit(param: Param, mention: Mention) -> float:
    if mention.kind not in ("id", "number", "quoted") or (
        mention.kind == "number" and param.kind != "integer"
    ):
        return 0.0
    if param.prefix:
        return 2.0 if mention.text.startswith(param.prefix) else 0.0
    if param.example:
        return 1.5 if shape(mention.text) == param.example_shape else 0.3
    return 0.9 if mention.kind == "id" or param.nouns & set(mention.left[-3:]) else 0.3


def _text_fit(param: Param, mention: Mention) -> float:
    like = 0.6 if param.example and shape(mention.text) == param.example_shape else 0.0
    if param.name_words & PLACES and not mention.text.startswith(("/", "~", ".")):
        return 0.0
    for kind, words in _KIND_WORDS.items():
        wanted = bool(words & param.name_words)
        if mention.kind == kind:
            return 1.6 if wanted or like else 0.25
        if wanted and (kind != "path" or " " in mention.text):
            return 0.0
    base = {
        "quoted": 0.75,
        "name": 0.6,
        "word": 0.5,
        "id": 0.3,
        "number": 0.1,
        "date": 0.2,
        "time": 0.2,
    }
    return base.get(mention.kind, 0.0) + like


def typed(param: Param, mention: Mention) -> Any:
    text = mention.text
    if param.kind == "integer" or (param.kind == "number" and "." not in text):
        return int(float(text)) if mention.kind == "number" else text
    if param.kind == "number":
        return float(text)
    if param.form == "date":
        return text[:10]
    if param.form == "time" and mention.kind == "datetime":
        return text[11:16]
    return text


def _choice(param: Param, words: Words, *, strict: bool) -> Any:
    """The fixed value that the words name, the one nearest behind the parameter's own name;
    `strict` takes only values that stand behind it."""
    if param.kind == "boolean":
        return _switch(param, words.text)
    for mention in words.mentions:
        same = [e for e in param.enum if plain(str(e)).lower() == plain(mention.text).lower()]
        if same and mention.kind in _MASKED and (not mention.left or fit_label(param, mention)):
            return [same[0]] if param.kind == "array" else same[0]
    tokens, said = words.tokens
    hits: list[tuple[float, int, Any]] = []
    for value in param.enum:
        wanted = split(plain(str(value)))
        for at in range(len(said) - len(wanted) + 1):
            if not wanted or tokens[at : at + len(wanted)] != wanted:
                continue
            label = any(word in param.name_words for word in said[max(0, at - 4) : at])
            if label or not strict:
                hits.append((len(wanted) + (2.0 if label else 0.0) + at / 1000, at, value))
    if param.kind == "array":
        return list(dict.fromkeys(v for _, _, v in sorted(hits, key=lambda h: h[1]))) or None
    if not hits or (max(hits)[0] < 2.0 and len({str(h[2]) for h in hits}) > 1):
        return None  # nothing, or several in passing: the words do not choose
    return max(hits, key=lambda h: h[0])[2]


def fit_label(param: Param, mention: Mention) -> bool:
    return any(word in param.name_words for word in mention.left)


def _switch(param: Param, text: str) -> bool | None:
    for sentence in re.split(r"[.;,!?]\s|\band\b", text):
        if param.name_words and param.name_words <= set(stems(sentence)):
            if _NO.search(sentence):
                return False
            if _YES.search(sentence) or not param.required:
                return True
    return None


def _after_label(param: Param, words: Words) -> Any:
    """`the reason is a broken lamp`: free words after the parameter's own name."""
    if param.kind != "string" or param.is_id or param.enum or param.form != "plain":
        return None
    label = plain(param.name).lower()
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
    values = [
        v for value in filled.values() for v in (value if isinstance(value, list) else [value])
    ]
    taken = [str(value) for value in values]
    return [m for m in words.mentions if m.text not in taken and not _is_start(m.text, taken)]


def _is_start(text: str, taken: list[str]) -> bool:
    """A date and time of which the date was taken, or a number spelled otherwise."""
    return any(len(t) >= 10 and text.startswith(t) for t in taken) or any(
        text.rstrip("0").rstrip(".") == t for t in taken if "." in text
    )
