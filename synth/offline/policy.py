"""Rules that a system prompt states, and whether a call would break one.

Only plain prohibitions are understood ("Never ...", "Do not ..."). A rule with a condition is
held against what is known of the things the call is about; a condition that the words leave open
forbids nothing.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from synth.offline.results import Item, Scalar
from synth.offline.toolbox import Tool
from synth.offline.words import alike, plain, stem_set, stems

_FORBIDS = re.compile(r"\b(?:never|do not|don't|must not|may not|cannot)\s+(.+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(more than|over|above|exceeds?|exceeding|greater than|at least|less than|under|below"
    r"|fewer than|longer than|older than|at most)\s+(\d[\d,.]*)",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:same day|on the day|today|day it takes place)\b", re.IGNORECASE)
_MONEY = stem_set("amount balance total cost price sum debt value")
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
    """The first rule that this call would break, seen with the items that it is about."""
    for rule in rules_in(system):
        if _is_meant(rule, tool, tools) and _holds(rule, tool, arguments, about, today):
            return rule
    return None


def _is_meant(rule: Rule, tool: Tool, tools: list[Tool]) -> bool:
    """The rule is about this tool, and no other tool has more of its words."""
    if not _names(rule, tool):
        return False
    words = set(stems(rule.ban))
    shares = {t.name: _share(words, t) for t in tools if _names(rule, t)}
    return shares[tool.name] >= max(shares.values())


def _share(words: set[str], tool: Tool) -> float:
    return 2.0 * len(words & set(tool.name_words)) + len(words & tool.head_words)


def _names(rule: Rule, tool: Tool) -> bool:
    """The rule's verb is the tool's, and it speaks of the tool's thing."""
    words = stems(rule.ban)
    if not words or tool.reads:
        return False
    named = set(tool.name_words) - tool.verbs
    told = set(tool.head_words) - tool.verbs
    if words[0] in tool.verbs:
        return bool((named | told) & set(words[1:]))
    return any(alike(words[0], verb) for verb in tool.verbs) and bool(named & set(words[1:]))


def _holds(
    rule: Rule, tool: Tool, arguments: dict[str, Any], about: list[Item], today: str
) -> bool:
    """Whether the rule's condition is met: what it says beyond the tool's own words."""
    fields = _fields(arguments, about)
    if limit := _LIMIT.search(rule.ban):
        return _over(limit, rule.ban, fields, today)
    if _TODAY.search(rule.ban):
        return any(today and str(value)[:10] == today for _, value in fields)
    extra = set(stems(rule.ban)) - tool.verbs - set(tool.head_words) - set(tool.name_words)
    if not extra:
        return True
    telling = [(k, v) for k, v in fields if isinstance(v, str) and _is_word(v)]
    if any(set(stems(plain(value))) <= extra for _, value in telling):
        return True
    known = any(extra & set(stems(plain(name))) for name, _ in telling)
    return rule.strict and not known


def _is_word(value: str) -> bool:
    return 0 < len(stems(plain(value))) <= 3 and not any(c.isdigit() for c in value)


def _fields(arguments: dict[str, Any], about: list[Item]) -> list[tuple[str, Scalar]]:
    pairs = [(k, v) for k, v in arguments.items() if isinstance(v, str | int | float)]
    for item in about:
        pairs += list(item.fields.items())
    return pairs


def _over(limit: re.Match[str], clause: str, fields: list[tuple[str, Scalar]], today: str) -> bool:
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
