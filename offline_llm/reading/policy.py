"""Rules that a system prompt states, and whether a call would break one.

Only plain prohibitions are understood ("Never ...", "Do not ..."). A rule with a condition is
held against what is known of the things the call is about; a condition that the words leave open
forbids nothing, unless the rule says never.
"""

import re
from datetime import date
from typing import Any, NamedTuple

from offline_llm.reading.matching import object_of
from offline_llm.reading.reading import NUMBERS
from offline_llm.reading.results import PastCall, ResultItem, Scalar, items_of
from offline_llm.reading.toolbox import Tool
from offline_llm.reading.words import alike, plain, split, stem, stem_set, stems

_FORBIDS = re.compile(r"\b(never|do not|don't|must not|may not|cannot)\s+([^.;]+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:more|over|above|exceed\w*|greater|longer|older|(?P<low>less|under|below|fewer))"
    r"(?: than)?\s+(?P<bound>\d[\d,.]*)(?P<age>\s+days? old)?(?P<money>\s+[A-Z]{3}\b)?"
)
_COMPARES = re.compile(
    r"\b(?:older|above|more|higher|(?P<low>younger|below|less|lower))(?: than)?"
    rf"(?: (?P<times>{'|'.join(NUMBERS)}) times)?(?: (?:the|its|their))? (?P<what>[a-z].*)"
)
_TODAY = re.compile(r"\b(?:same day|on the day|today|day it takes place)\b", re.IGNORECASE)
_BEGUN = re.compile(r"\b(?:already|has begun|has started)\b", re.IGNORECASE)
_SHIFTS = stem_set("raise increase lower decrease reduce")
"""Verbs for which a tool that sets a value is meant."""
_MONEY = stem_set("amount balance total cost price sum debt value")
Fields = list[tuple[str, Scalar]]


class Rule(NamedTuple):
    text: str
    ban: str
    """What comes after `never` or `do not`, up to the first full stop or semicolon."""
    strict: bool
    """It says `never`: a condition that cannot be seen counts as met."""


class Case(NamedTuple):
    """A call that is about to be made."""

    tool: Tool
    given: dict[str, Scalar]
    rows: dict[str, ResultItem]
    """The newest rows that the arguments identify, by parameter."""
    further: list[ResultItem]
    """Those that these rows refer to."""
    today: str

    @classmethod
    def of(cls, tool: Tool, arguments: dict[str, Any], calls: list[PastCall], today: str) -> "Case":
        known = {item.key: item for call in calls for item in items_of(call)}
        given = {k: v for k, v in arguments.items() if isinstance(v, str | int | float)}
        rows = {name: known[str(v)] for name, v in given.items() if str(v) in known}
        ids = [v for row in rows.values() for v in row.refers if v in known and v != row.key]
        return cls(tool, given, rows, [known[v] for v in ids], today)


def rules_in(system: str) -> list[Rule]:
    lines = re.split(r"\n+|(?<=[.;])\s+", system)
    found = [(line, _FORBIDS.search(line)) for line in lines]
    return [
        Rule(line.strip(" -*;."), ban[2], ban[1].lower() == "never") for line, ban in found if ban
    ]


def broken_rule(case: Case, tools: list[Tool], system: str, *, complete: bool) -> Rule | None:
    """The first rule that this call would break; while values are missing, only one that needs
    no look at them."""
    for rule in rules_in(system):
        named = [t for t in tools if _names(rule, t)]
        if case.tool not in named or not (complete or rule.strict):
            continue
        words = set(stems(rule.ban)[1:])
        share = max(_share(words, tool) for tool in named)
        if _share(words, case.tool) == share and _holds(rule, case):
            return rule
    return None


def _share(words: set[str], tool: Tool) -> float:
    return 2.0 * len(words & set(tool.name_words)) + len(words & tool.head_words)


def _names(rule: Rule, tool: Tool) -> bool:
    """The rule's verb is the tool's, and what it must not be done to is the tool's thing."""
    words, thing = stems(rule.ban), set(object_of(rule.ban))
    if not words or tool.reads:
        return False
    named = set(tool.name_words) - {words[0]}
    if words[0] in tool.verbs:
        told = tool.head_words | {noun for p in tool.params for noun in p.nouns}
        return bool((named | told - {words[0]}) & (thing or set(words[1:])))
    verb = stem("set") if words[0] in _SHIFTS else words[0]
    return any(alike(verb, other) for other in tool.verbs) and bool(named & thing)


def _holds(rule: Rule, case: Case) -> bool:
    """Whether the rule's condition is met: what it says beyond the tool's own words."""
    ban, _, unless = rule.ban.partition(" unless ")
    words, raw = set(stems(ban)), set(split(ban))
    about = [row for name, row in case.rows.items() if _nouns(case.tool, name) & words]
    rows = about or list(case.rows.values())
    given: Fields = list(case.given.items())
    near = given + [pair for row in rows for pair in row.fields.items()]
    far = near + [pair for row in case.further for pair in row.fields.items()]
    texts = [(k, v) for k, v in near if k in raw and isinstance(v, str) and _is_word(v)]
    if texts and not all(set(split(v)) & raw for _, v in texts):
        return False  # the rule names another value of that field
    if limit := _LIMIT.search(ban):
        return _over(limit, words, [given, near], case.today)
    if compared := _COMPARES.search(ban):
        return _compares(compared, far)
    if _TODAY.search(ban):
        return any(case.today and str(value)[:10] == case.today for _, value in far)
    extra = words - case.tool.verbs - case.tool.head_words - set(case.tool.name_words)
    telling = [(k, set(stems(plain(v)))) for k, v in far if isinstance(v, str) and _is_word(v)]
    if not extra:
        return True
    if unless and any(value <= set(stems(unless)) for _, value in telling):
        return False
    named = [value for name, value in telling if extra & set(stems(plain(name)))]
    if named or any(value <= extra for _, value in telling):
        return all(value <= extra for value in named)
    states = [_state(ban, name, value, extra, case.today) for name, value in far]
    return True in states if any(s is not None for s in states) else rule.strict


def _nouns(tool: Tool, name: str) -> frozenset[str]:
    param = tool.param(name)
    return param.nouns if param else frozenset()


def _is_word(value: str) -> bool:
    return 0 < len(stems(plain(value))) <= 3 and not any(c.isdigit() for c in value)


def _state(ban: str, name: str, value: Scalar, extra: set[str], today: str) -> bool | None:
    """Whether a field that the rule names is on: true (or false after `not`), more than 0, or
    a date that has not passed (has, after `already`). None when the rule does not name it."""
    words, said = [w for w in stems(plain(name)) if w not in ("until", "id")], stems(ban)
    said += tuple(w.removeprefix("un") for w in said)  # `not paid` has been read as `unpaid`
    is_date = isinstance(value, str) and bool(re.match(r"\d{4}-\d\d-\d\d", value))
    if is_date and today and _BEGUN.search(ban) and stem(split(name)[0]) in _STARTS:
        return str(value)[:10] <= today
    named = extra & {w for word in words for w in (word, "un" + word)}
    if not named or not all(word in said for word in words):
        return None
    if isinstance(value, bool):
        off = bool(named - set(words)) or bool(re.search(rf"\bnot {split(name)[0]}", ban))
        return value != off
    if isinstance(value, int | float):
        return value > 0
    return str(value)[:10] >= today if is_date and today else None


_STARTS = stem_set("starts begins opens")


def _compares(found: re.Match[str], fields: Fields) -> bool:
    """`younger than the minimum age`: a field against another, times a number in words."""
    right, before = stem_set(found["what"]), stem_set(found.string[: found.start()])
    times = NUMBERS.index(found["times"]) if found["times"] else 1
    numbers = [(stem_set(plain(k)), v) for k, v in fields if isinstance(v, int | float)]
    bounds = [(w, v) for w, v in numbers if w <= right]
    if not bounds:
        return False
    words, bound = max(bounds, key=lambda pair: len(pair[0]))
    values = [v for w, v in numbers if w <= before or w < words]
    return any((v < times * bound) if found["low"] else (v > times * bound) for v in values)


def _over(limit: re.Match[str], words: set[str], levels: list[Fields], today: str) -> bool:
    """Whether a number that the rule speaks of lies on the forbidden side: an argument before a
    field, one of the rule's words, one of money where the limit is in a currency, or an age."""
    bound = float(limit["bound"].replace(",", "").rstrip("."))
    for fields in levels:
        numbers = [(k, v) for k, v in fields if isinstance(v, int | float) and v is not True]
        said = words | _MONEY if limit["money"] else words
        values = [float(v) for k, v in numbers if stem_set(plain(k)) & said]
        if limit["age"] and today:
            days = [str(v)[:10] for _, v in fields if re.match(r"\d{4}-\d\d-\d\d", str(v))]
            values = [(date.fromisoformat(today) - date.fromisoformat(d)).days for d in days]
        if values:
            return any(v < bound if limit["low"] else v > bound for v in values)
    lone = [float(v) for _, v in levels[0] if isinstance(v, int | float)]
    if len(lone) != 1 or limit["money"] or limit["age"]:
        return False
    return lone[0] < bound if limit["low"] else lone[0] > bound  # the one number given is meant
