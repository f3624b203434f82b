"""Which tool a goal means: the words of the goal against the words of each tool.

The action must be named by the tool, not only the thing: a person who wants something cancelled is
not served by a tool that lists it. When no tool names the action, none fits.
"""

import math
import re
from collections import Counter

from offline_llm.reading.filling import PLACES, Words, fill
from offline_llm.reading.toolbox import READ_VERBS, Tool
from offline_llm.reading.words import STOP, alike, found, sentences, split, stem, stems

_LEAD = re.compile(
    r"^(?:\W*\b(?:hi|hello|hey|good (?:morning|afternoon|evening)|there|please|also|then|next|and"
    r"|now|so|well|ok(?:ay)?|good|all right|first|second|third|finally|after that|besides"
    r"|one more thing|another thing|in addition|additionally|thanks|thank you|great|sorry|perfect"
    r"|alright|(?:i|we)(?:'d| would| should| just| also)* (?:need|want|like|love|have|wish|hope)"
    r"(?: (?:your|some))?(?: help)?|need|want|have|ask|know|tell|hear|see|you|someone|help|me|to"
    r"|i(?:'m| am| was) (?:trying|looking|hoping|calling|writing|here)(?: because i need| about)?"
    r"|(?:can|could|would|will) (?:you|i|we)(?: be able| mind)?|(?:is it|would it be) possible"
    r"|it would be (?:great|good) if you could|let's|let us|what i need is"
    r"|my (?:first|second|next|other) (?:request|wish|point) is)\b[\s,:]*)+",
    re.IGNORECASE,
)
_ASKS = re.compile(r"^\W*(?:what|which|who|when|where|how|is|are|does|do|has|have)\b", re.I)
_NOUN_PHRASE = re.compile(r"^(?:an?|the|my|our|all|every\w*|both|two|some|any)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[.:;,?!(]|\b(?:of|for|in|to|with|by|from|on|at|that|as|about|if|when|while|who|whose|which"
    r"|until|unless|before|after)\b"
)
_READING = stem("show")


def action_of(text: str) -> str:
    """The stem of the main verb: the first word after the polite beginning."""
    rest = _LEAD.sub("", text)
    words = [word for word in split(rest) if word not in STOP]
    return _READING if _ASKS.match(rest) else stem(words[0]) if words else ""


def object_of(text: str) -> tuple[str, ...]:
    """Stems of what the verb acts on: up to the first preposition, mark or clause."""
    return stems(_CLAUSE.split(_LEAD.sub("", text))[0])[1:]


def request_of(text: str) -> str:
    """The sentence that asks for something: the first with a polite beginning, else the first."""
    parts = sentences(text) or [""]
    asking = (p for p in parts if _LEAD.match(p) and action_of(p) and len(split(p)) > 2)
    return next(asking, parts[0])


def ranked(words: Words, tools: list[Tool]) -> list[Tool]:
    """Tools that name the goal's action and its thing, the best first."""
    request = request_of(words.text)
    action, bare = action_of(request), _LEAD.sub("", request)
    asked = dict.fromkeys(stems(request), 1.0)
    for word in (*stems(words.text), *(stem(f"{m.kind}") for m in words.mentions)):
        asked.setdefault({"zon": "timezon"}.get(word, word), 0.35)
    spread = Counter(word for tool in tools for word in {*tool.name_words, *tool.head_words})
    rare = {word: math.log(1 + len(tools) / (1 + spread[word])) for word in asked}
    scores: list[tuple[float, str, Tool]] = []
    for tool in tools:
        if action == _READING or _NOUN_PHRASE.match(bare):  # no verb: the values must suit
            verbs = [action] if action == _READING else list(stems(request))
            verbs = verbs if tool.reads else [stem("new")] * ("new" in split(request))
            score = max((_score(tool, verb, None, asked, rare) for verb in verbs), default=0.0)
            score += _suits(tool, words) if score else 0.0
        else:
            thing = object_of(request)
            score = _covers(tool, bare) and _score(tool, action, thing, asked, rare)
        scores.append((-score, tool.name, tool))
    return [tool for score, _, tool in sorted(scores, key=lambda s: s[:2]) if score < 0]


def _covers(tool: Tool, request: str) -> bool:
    """The tool speaks of most of what the request says before it comes to values."""
    words = stems(" ".join(Words(request.split(":")[0], "").tokens[0]))
    return sum(found(word, tool.words) for word in words) >= 0.45 * len(words)


def _suits(tool: Tool, words: Words) -> float:
    """Parameters that the values fill, less required ones that they leave open."""
    values = fill(tool, words, lookup=False)
    needed = [p for p in tool.required if not p.name_words & PLACES]
    optional = [p for p in tool.params if not p.required and p.name in values]
    return sum(1.2 if p.name in values else -1.2 for p in needed) + 0.4 * len(optional)


def _acts(tool: Tool, action: str) -> float:
    """How far the tool is one that does this, in [0, 1]."""
    acts = 1.0 if action in tool.verbs else 0.0
    acts = acts or 0.6 * any(alike(action, verb) for verb in tool.verbs)
    acts = acts or 0.5 * (action in (*tool.name_words, *tool.head_words))
    acts = acts or 0.5 * (action == _READING and tool.reads)
    # who wants something done is not served by being shown it
    return 0.4 * acts if tool.reads and action not in READ_VERBS else acts


def _score(
    tool: Tool,
    action: str,
    thing: tuple[str, ...] | None,
    asked: dict[str, float],
    rare: dict[str, float],
) -> float:
    """0 when the tool does not name action and thing; `thing` is None where no verb was said."""
    acts = _acts(tool, action)
    things = total = 0.0
    for word, weight in asked.items() if acts else ():
        if word != action or thing is None:
            in_name, in_head = found(word, tool.name_words), found(word, tool.head_words)
            things += weight * max(in_name, in_head)
            in_tail = 0.5 * found(word, tool.tail_words)
            total += weight * rare[word] * max(2.0 * in_name, 1.4 * in_head, in_tail)
    if not acts or (things < 0.3 and len(tool.name_words) > 1):
        return 0.0
    covered = sum(w in asked for w in tool.name_words) / max(1, len(tool.name_words))
    said = sum(asked.get(w, 0) == 1.0 for w in tool.head_words) / max(1, len(tool.head_words))
    nouns = frozenset(tool.name_words) - {action}
    hits = [max(found(w, nouns), 0.6 * found(w, tool.head_words)) for w in thing or ()]
    direct = sum(hits) / max(1, len(hits))
    return 3.0 * acts + total + 2.0 * covered + 2.0 * said + 3.0 * direct
