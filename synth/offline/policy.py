"""Rules that a system prompt states, and whether a call would break one.

Only plain prohibitions are understood ("Never ...", "Do not ..."). A rule with a condition is
held against what is known of the things the call is about; a condition that the words leave open
forbids nothing.
"""

import re
from dataclasses import dataclass
from typing import Any

from synth.offline.results import Item, Scalar
from synth.offline.toolbox import Tool
from synth.offline.words import alike, plain, stem, stem_set, stems

_FORBIDS = re.compile(r"\b(?:never|do not|don't|must not|may not|cannot)\s+(.+)", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(more than|over|above|exceeds?|exceeding|greater than|at least|less than|under|below"
    r"|fewer than|longer than|older than|at most)\s+(\d[\d,.]*)",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:same day|on the day|today|day it takes place)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|when|unless|until|without|while|who|which|that|with|whose|before|after|more than|over"
    r"|on the day|same day|less than|under|outside|another|longer than)\b",
    re.IGNORECASE,
)
_LOW = ("less", "under", "below", "fewer", "at most")


@dataclass(frozen=True)
class Rule:
    text: str
    ban: str
    """What comes after `never` or `do not`, up to the first full stop or semicolon."""


def rules_in(system: str) -> list[Rule]:
    rules = []
    for line in re.split(r"\n+|(?<=[.;])\s+", system):
        found = _FORBIDS.search(line)
        if found:
            rules.append(Rule(line.strip(" -*;."), re.split(r"[.;]", found.group(1))[0]))
    return rules


def broken_rule(
    tool: Tool, arguments: dict[str, Any], about: list[Item], *, system: str, today: str, text: str
) -> Rule | None:
    """The first rule that this call would break, seen with the items that it is about."""
    for rule in rules_in(system):
        if _names(rule, tool) and _holds(rule, tool, arguments, about, today, text):
            return rule
    return None


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
    rule: Rule, tool: Tool, arguments: dict[str, Any], about: list[Item], today: str, text: str
) -> bool:
    condition = _CONDITION.search(rule.ban)
    if not condition:
        return True
    clause = rule.ban[condition.start() :]
    fields = _fields(arguments, about)
    if limit := _LIMIT.search(clause):
        return _over(limit, clause, fields)
    if _TODAY.search(clause):
        return any(today and str(value)[:10] == today for _, value in fields)
    wanted = set(stems(clause))
    known = set(tool.head_words) | set(tool.name_words)
    return any(
        isinstance(value, str)
        and 0 < len(stems(plain(value))) <= 3
        and not any(c.isdigit() for c in value)
        and set(stems(plain(value))) <= wanted - known
        for _, value in fields
    )


def _fields(arguments: dict[str, Any], about: list[Item]) -> list[tuple[str, Scalar]]:
    pairs = [(k, v) for k, v in arguments.items() if isinstance(v, str | int | float)]
    for item in about:
        pairs += list(item.fields.items())
    return pairs


def _over(limit: re.Match[str], clause: str, fields: list[tuple[str, Scalar]]) -> bool:
    """Whether a number that the clause speaks of lies on the forbidden side.

    A debt is a balance and a size is a quantity: with no field of the clause's own words, every
    number that is not an identifier counts.
    """
    bound = float(limit.group(2).replace(",", "").rstrip("."))
    low = limit.group(1).lower().startswith(_LOW)
    numbers = [(k, float(v)) for k, v in fields if isinstance(v, int | float) and v is not True]
    said = stem_set(clause)
    named = [n for n in numbers if stem_set(plain(n[0])) & said]
    hits = [v < bound if low else v > bound for k, v in named or numbers if stem(k) != "id"]
    return any(hits)
