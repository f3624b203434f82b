"""Rules that a system prompt states, and whether a call would break one.

Only plain prohibitions are understood ("Never ...", "Do not ..."). A rule with a condition is
held against what is known of the things the call is about; a condition that the words leave open
forbids nothing.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from synth.offline.matching import object_of
from synth.offline.reading import NUMBERS
from synth.offline.results import Item, Scalar
from synth.offline.toolbox import Tool
from synth.offline.words import alike, plain, split, stem, stem_set, stems

_FORBIDS = re.compile(r"\b(?:never|do not|don't|must not|may not|cannot)\s+(.+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(more than|over|above|exceeds?|exceeding|greater than|at least|less than|under|below"
    r"|fewer than|longer than|older than|at most)\s+(\d[\d,.]*)",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:same day|on the day|today|day it takes place)\b", re.IGNORECASE)
_COMPARES = re.compile(
    r"\b(?P<how>younger|older|below|above|less|more|lower|higher)(?: than)?"
    rf"(?: (?P<times>{'|'.join(NUMBERS)}) times)?(?: (?:the|its|their))? (?P<what>[a-z].*)",
    re.IGNORECASE,
)
_SHIFTS = stem_set("raise increase lower decrease reduce")
"""Verbs for which a tool that sets a value is meant."""
_MONEY = stem_set("amount balance total cost price sum debt value")
Fields = list[tuple[str, Scalar]]
_LOW = ("less", "under", "below", "fewer", "at most")


@dataclass(frozen=True)
class Rule:
    text: str
    ban: str
    """What comes after `never` or `do not`, up to the first full stop or semicolon."""
    strict: bool
    """It says `never`: a condition that cannot be seen counts as met."""


def rules_in(system: str) -> list[Rule]:
    rules = []
    for line in re.split(r"\n+|(?<=[.;])\s+", system):
        found = _FORBIDS.search(line)
        if found:
            rules.append(
                Rule(
                    line.strip(" -*;."),
                    re.split(r"[.;]", found.group(1))[0],
                    found.group().lower().startswith("never"),
                )
            )
    return rules


def broken_rule(
    tool: Tool,
    tools: list[Tool],
    arguments: dict[str, Any],
    about: list[Item],
    *,
    system: str,
    today: str,
) -> Rule | None:
    """The first rule that this call would break. `about`: the rows that it is about, those that
    its arguments identify before those that these refer to."""
    values = [str(v) for v in arguments.values()]
    direct = [row for row in about if any(str(v) in values for v in row.fields.values())]
    for rule in rules_in(system):
        if not _is_meant(rule, tool, tools):
            continue
        nouns = {p.name for p in tool.params if p.nouns & set(stems(rule.ban))}
        meant = {str(arguments[name]) for name in nouns if name in arguments}
        named = [row for row in direct if any(str(v) in meant for v in row.fields.values())]
        near = _fields(arguments, named or direct)
        if _holds(rule, tool, near, _fields({}, about), today):
            return rule
    return None


def _is_meant(rule: Rule, tool: Tool, tools: list[Tool]) -> bool:
    """The rule is about this tool, and no other tool has more of its words."""
    if not _names(rule, tool):
        return False
    words = set(stems(rule.ban)[1:])
    shares = {t.name: _share(words, t) for t in tools if _names(rule, t)}
    return shares[tool.name] >= max(shares.values())


def _share(words: set[str], tool: Tool) -> float:
    return 2.0 * len(words & set(tool.name_words)) + len(words & tool.head_words)


def _names(rule: Rule, tool: Tool) -> bool:
    """The rule's verb is the tool's, and what it must not be done to is the tool's thing."""
    words, thing = stems(rule.ban), set(object_of(rule.ban))
    if not words or tool.reads:
        return False
    named = set(tool.name_words) - {words[0]}
    told = set(tool.head_words) - {words[0]}
    if words[0] in tool.verbs:
        nouns = {noun for p in tool.params for noun in p.nouns}
        return bool((named | told | nouns) & (thing or set(words[1:])))
    verb = stem("set") if words[0] in _SHIFTS else words[0]
    return any(alike(verb, other) for other in tool.verbs) and bool(named & thing)


def _holds(rule: Rule, tool: Tool, near: Fields, far: Fields, today: str) -> bool:
    """Whether the rule's condition is met: what it says beyond the tool's own words."""
    said = set(split(rule.ban))
    if any(k in said and isinstance(v, str) and not set(split(v)) & said for k, v in near):
        return False  # the rule names another value of that field
    if limit := _LIMIT.search(rule.ban):
        return _over(limit, rule.ban, near, today)
    if compared := _COMPARES.search(rule.ban):
        return _compares(compared, near + far)
    if _TODAY.search(rule.ban):
        return any(today and str(value)[:10] == today for _, value in near + far)
    ban, _, unless = rule.ban.partition(" unless ")
    extra = set(stems(ban)) - tool.verbs - tool.head_words - set(tool.name_words)
    if not extra:
        return True
    telling = [(k, v) for k, v in near + far if isinstance(v, str) and _is_word(v)]
    if unless and any(set(stems(plain(v))) <= set(stems(unless)) for _, v in telling):
        return False
    named = [value for name, value in telling if extra & set(stems(plain(name)))]
    if named:
        return all(set(stems(plain(value))) <= extra for value in named)
    if any(set(stems(plain(value))) <= extra for _, value in telling):
        return True
    states = [_state(rule, name, value, extra, today) for name, value in near]
    if any(state is not None for state in states):
        return True in states
    return rule.strict


def _state(rule: Rule, name: str, value: Scalar, extra: set[str], today: str) -> bool | None:
    """Whether a field that the rule names is on: true (or false after `not`), more than 0, or
    a date that has not passed. None when the rule does not name it."""
    words = [w for w in stems(plain(name)) if w not in ("until", "id")]
    said = stems(rule.ban)
    if not extra & set(words) or not all(word in said for word in words):
        return None
    if isinstance(value, bool):
        return value != bool(re.search(rf"\bnot {plain(name).split()[0]}", rule.ban))
    if isinstance(value, int | float):
        return value > 0
    is_date = bool(today) and re.match(r"\d{4}-\d\d-\d\d", value) is not None
    return value[:10] >= today if is_date else None


def _compares(found: re.Match[str], fields: Fields) -> bool:
    """`younger than the minimum age`: a field against another, times a number in words."""
    sign = -1 if found["how"].lower() in ("younger", "below", "less", "lower") else 1
    right, before = stem_set(found["what"]), stem_set(found.string[: found.start()])
    times = NUMBERS.index(found["times"].lower()) if found["times"] else 1
    numbers = [(stem_set(plain(k)), v) for k, v in fields if isinstance(v, int | float)]
    bounds = sorted((w, v) for w, v in numbers if w <= right)
    if not bounds:
        return False
    words, bound = max(bounds, key=lambda pair: len(pair[0]))
    values = [v for w, v in numbers if w <= before or w < words]
    return any(sign * (value - times * bound) > 0 for value in values)


def _is_word(value: str) -> bool:
    return 0 < len(stems(plain(value))) <= 3 and not any(c.isdigit() for c in value)


def _fields(arguments: dict[str, Any], about: list[Item]) -> Fields:
    pairs = [(k, v) for k, v in arguments.items() if isinstance(v, str | int | float)]
    for item in about:
        pairs += list(item.fields.items())
    return pairs


def _over(limit: re.Match[str], clause: str, fields: Fields, today: str) -> bool:
    """Whether a number that the rule speaks of lies on the forbidden side: a field of the rule's
    words, one of money where the limit is in a currency, or an age in days."""
    bound = float(limit.group(2).replace(",", "").rstrip("."))
    low = limit.group(1).lower().startswith(_LOW)
    numbers = [(k, float(v)) for k, v in fields if isinstance(v, int | float) and v is not True]
    if today and re.match(r"\s*days? old", clause[limit.end() :]):
        days = [str(v)[:10] for _, v in fields if re.match(r"\d{4}-\d\d-\d\d", str(v))]
        ages = [(date.fromisoformat(today) - date.fromisoformat(day)).days for day in days]
        return any(age > bound for age in ages)
    said = stem_set(clause)
    if re.match(r"\s*[A-Z]{3}\b", clause[limit.end() :]):
        said |= _MONEY
    return any((v < bound if low else v > bound) for k, v in numbers if stem_set(plain(k)) & said)
