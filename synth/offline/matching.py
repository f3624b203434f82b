"""Which tool a wish means: the words of the wish against the words of each tool.

The action must be named by the tool, not only the thing: a person who wants something cancelled is
not served by a tool that lists it. When no tool names the action, none fits.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass

from synth.offline.filling import PLACES, Words, fill
from synth.offline.toolbox import READ_VERBS, Tool
from synth.offline.words import STOP, alike, found, sentences, split, stem, stems

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
_ASKS = re.compile(
    r"^\W*(?:what|which|who|when|where|how|is|are|does|do|has|have)\b", re.IGNORECASE
)
_NOUN_PHRASE = re.compile(
    r"^(?:an?|the|my|our|what|all|every\w*|both|two|some|any)\b", re.IGNORECASE
)
_TOLD = re.compile(r"\b(?:was|were|is|are|been)\s+(?:last\s+)?\w+ed\b", re.IGNORECASE)
_READING = stem("show")


@dataclass(frozen=True)
class Match:
    tool: Tool
    score: float


def action_of(text: str) -> str:
    """The stem of the main verb: the first word after the polite beginning."""
    rest = _LEAD.sub("", text)
    words = [word for word in split(rest) if word not in STOP]
    if _ASKS.match(rest) and not re.search(r"\blike what\b", text):
        return _READING
    return stem(words[0]) if words else ""


def object_of(text: str) -> tuple[str, ...]:
    """Stems of what the verb acts on: up to the first preposition, mark or clause."""
    rest = _LEAD.sub("", text)
    direct = re.split(
        r"[.:;,?!(]|\b(?:of|for|in|to|with|by|from|on|at|that|as|about"
        r"|if|when|while|who|whose|which|until|unless|before|after)\b",
        rest,
    )[0]
    return stems(direct)[1:]


def request_of(text: str) -> str:
    """The sentence that asks for something: the first with a polite beginning, else the first."""
    parts = sentences(text)
    for part in parts:
        if _LEAD.match(part) and action_of(part) and len(split(part)) > 2:
            return part
    return parts[0] if parts else ""


def ranked(text: str, tools: list[Tool]) -> list[Match]:
    """Tools that name the wish's action and its thing, the best first."""
    request = request_of(text)
    action = action_of(request)
    asked = dict.fromkeys(stems(request), 1.0)
    for word in stems(text):
        asked.setdefault(word, 0.35)
    spread = Counter(word for tool in tools for word in {*tool.name_words, *tool.head_words})
    rare = {w: math.log(1 + len(tools) / (1 + spread[w])) for w in asked}
    thing = object_of(request)
    if action != _READING and not _names_a_thing(request):
        matches = [
            Match(tool, _score(tool, action, thing, asked, rare))
            for tool in tools
            if _covers(tool, request)
        ]
    else:  # no verb says what to do: any word may, and the values must suit
        words = Words(text, "")
        for mention in words.mentions:
            asked.setdefault(stem(mention.kind.replace("zone", "timezone")), 0.35)
        rare = {w: rare.get(w, 1.0) for w in asked}
        shown = [action] if action == _READING else list(stems(request))
        done = [
            stem(w)
            for w in split(_TOLD.sub("", request))
            if w == "new" or re.fullmatch(r"\w{3,}ed", w)
        ]
        scores = {
            tool.name: max((_score(tool, a, None, asked, rare) for a in shown), default=0.0)
            if tool.reads
            else max((_score(tool, a, None, asked, rare) for a in done), default=0.0)
            for tool in tools  # a change is wished for as done, or as something new
        }
        matches = [
            Match(tool, scores[tool.name] + _suits(tool, words))
            for tool in tools
            if scores[tool.name]
        ]
    return sorted((m for m in matches if m.score > 0), key=lambda m: (-m.score, m.tool.name))


def _covers(tool: Tool, request: str) -> bool:
    """The tool speaks of most of what the request says before it comes to values."""
    said = Words(_LEAD.sub("", request).split(":")[0], "").tokens[0]
    words = stems(" ".join(said))
    among = {*tool.name_words, *tool.head_words, *tool.tail_words}
    return sum(found(word, among) for word in words) >= 0.45 * len(words)


def _names_a_thing(request: str) -> bool:
    """The request is a noun phrase, as in `I'd like a room`, not a verb."""
    return bool(_NOUN_PHRASE.match(_LEAD.sub("", request)))


def _suits(tool: Tool, words: Words) -> float:
    """Parameters that the values fill, less required ones that they leave open."""
    values = fill(tool, words, lookup=False)
    needed = [p for p in tool.required if not p.name_words & PLACES]
    optional = [p for p in tool.params if not p.required and p.name in values]
    return sum(1.2 if p.name in values else -1.2 for p in needed) + 0.4 * len(optional)


def _score(
    tool: Tool,
    action: str,
    thing: tuple[str, ...] | None,
    asked: dict[str, float],
    rare: dict[str, float],
) -> float:
    acts = 1.0 if action in tool.verbs else 0.0
    if not acts and any(alike(action, verb) for verb in tool.verbs):
        acts = 0.6
    if not acts and action in (*tool.name_words, *tool.head_words):
        acts = 0.5
    if not acts and action == _READING and tool.reads:
        acts = 0.5
    if acts and tool.reads and action not in READ_VERBS:
        acts *= 0.4  # who wants something done is not served by being shown it
    if not acts:
        return 0.0
    things = total = 0.0
    for word, weight in asked.items():
        if word == action and thing is not None:
            continue
        in_name, in_head = found(word, tool.name_words), found(word, tool.head_words)
        in_tail = found(word, tool.tail_words)
        things += weight * max(in_name, in_head)
        total += weight * rare[word] * max(2.0 * in_name, 1.4 * in_head, 0.5 * in_tail)
    if things < 0.3 and len(tool.name_words) > 1:
        return 0.0
    named = [w for w in tool.name_words if w in asked]
    covered = len(named) / max(1, len(tool.name_words))
    head = [w for w in tool.head_words if asked.get(w, 0) == 1.0]
    said = len(head) / max(1, len(tool.head_words))
    nouns = set(tool.name_words) - {action}
    hits = [max(found(w, nouns), 0.6 * found(w, tool.head_words)) for w in thing or ()]
    direct = sum(hits) / len(hits) if hits else 0.0
    return 3.0 * acts + total + 2.0 * covered + 2.0 * said + 3.0 * direct


def choose(text: str, tools: list[Tool]) -> Tool | None:
    matches = ranked(text, tools)
    return matches[0].tool if matches else None
