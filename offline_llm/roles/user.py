"""The simulated user: one message in the part that the system prompt gives.

Brings the goals in order, answers questions from what it knows, says so when it does not know,
and ends when every goal was dealt with. It sees what a person would: the agent's words.
"""

import re
from random import Random
from typing import Any, NamedTuple

from offline_llm.generator.brief import manner_of
from offline_llm.reading.conversation import question_in
from offline_llm.reading.sections import sections
from offline_llm.reading.wording import labelled
from offline_llm.reading.words import found, plain, stem_set, stems
from offline_llm.roles.dual_control import outcome
from offline_llm.roles.user_slips import drawn, slip, spoiled
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_FACT = re.compile(r"^-\s*(.+?):\s*(.*?)\s*\((say it at once|only when asked)\)\s*$", re.MULTILINE)
_USER_GOAL = re.compile(r"^\d+\.\s+(.*\S)\s*$", re.MULTILINE)
_CONFIRM = re.compile(
    r"\b(?:(?:shall|should) i|do you want me|would you like me|is that (?:right|correct|ok)"
    r"|go ahead|proceed|confirm)\b",
    re.IGNORECASE,
)
_WHICH = re.compile(r"\bwhich\b.*\b(?:mean|meant|one)\b", re.IGNORECASE)
_THANKS = {
    "formal": ("Thank you for your assistance. That is all.", "Many thanks, that will be all."),
    "hurried": ("Thanks, that's all.", "Great, bye."),
    "short": ("thanks, that's all", "ok thanks, bye"),
    "plain": (
        "Thank you, that's all I needed.",
        "Great, thanks for your help. That's everything.",
        "Perfect, thank you! Goodbye.",
        "Thanks a lot, that was all.",
    ),
}
_GIVE_UP = ("Never mind, I'll leave it at that. Bye.", "This isn't getting anywhere. Goodbye.")
_IGNORANT = (
    "I don't know that, sorry.",
    "I'm afraid I don't have that.",
    "No idea, I don't know that one.",
    "I don't remember, sorry.",
)
_AGAIN = ("As I said:", "Once more:", "I can only repeat it:", "I can only say what I know:")
_SAME = "The same one as just now."
_YES = ("Yes, please.", "Yes, go ahead.", "Yes, that's right.")
_ACKNOWLEDGE = ("", "", "Thanks.", "Good.", "All right.", "Great, thank you.", "OK.")
_SOURCES = {"from": "sourc", "to": "target"}


class KnownFact(NamedTuple):
    label: str
    value: str
    at_once: bool

    def is_in(self, text: str) -> bool:
        if self.value.lower() not in text.lower():
            return False
        said = rf"(?<![\w-]){re.escape(self.value)}(?![\w-])"
        return bool(re.search(said, text, re.IGNORECASE))

    def relevance(self, asked: frozenset[str]) -> float:
        """Share of the label's words that were asked for; its unit does not count."""
        words = stems(plain(self.label.partition(" in ")[0]))
        words += tuple(_SOURCES[end] for end in self.label.split()[:1] if end in _SOURCES)
        return sum(found(word, asked) for word in words) / max(1, len(words))


class PlayedPart(NamedTuple):
    """What the system prompt says about the person who is played, and how far the talk is."""

    goals: list[str]
    facts: list[KnownFact]
    manner: str
    patience: int
    own: list[str]
    """What the person said so far."""

    @property
    def brought(self) -> int:
        """How many goals were brought up: the opening brings the first, however it is put, and a
        later message the next one where it holds its words."""
        number = min(1, len(self.own), len(self.goals))
        for text in self.own[1:]:
            number += number < len(self.goals) and self.says(number, text)
        return number

    def says(self, goal: int, text: str) -> bool:
        return self.goals[goal].casefold() in text.casefold()


def user_turn(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    part, rng = _part(request), rng_of(request.key, "user")
    heard = [m["content"] for m in request.messages if m["role"] == "user"]
    question = question_in(heard[-1]) if heard and part.own else ""
    errors, factor = settings.user_errors, settings.models.get(request.model, 1.0)
    turn = _turn(part, rng, question, outcome(request), errors.wrong_fact * factor)
    kind = drawn(request, errors, factor)
    spoilt = kind and spoiled(kind, turn, request, brought=part.brought, goals=part.goals)
    return spoilt or turn


def _turn(part: PlayedPart, rng: Random, question: str, done: str, wrong: float) -> dict[str, Any]:
    thanks, left = rng.choice(_THANKS[part.manner]), part.brought < len(part.goals)
    if done:  # it has just used a tool of its own
        return {"message": done, "done": False}
    if question and sum(text in _IGNORANT for text in part.own) >= part.patience:
        return {"message": rng.choice(_GIVE_UP), "done": True}
    if question:
        return {"message": _answer(question, part, rng, wrong), "done": False}
    return {"message": _bring(part, rng) if left else thanks, "done": not left}


def _part(request: ChatRequest) -> PlayedPart:
    read = sections(request)
    persona = read.get("persona", "")
    patience = re.search(r"[Pp]atience: after (\d+)", persona)
    facts = _FACT.findall(read.get("what you know", ""))
    return PlayedPart(
        goals=_USER_GOAL.findall(read.get("what you want", "")),
        facts=[KnownFact(label, value, when == "say it at once") for label, value, when in facts],
        manner=manner_of(persona),
        patience=int(patience.group(1)) if patience else 4,
        own=[m["content"] for m in request.messages if m["role"] == "assistant" and m["content"]],
    )


def _bring(part: PlayedPart, rng: Random) -> str:
    goal = part.goals[part.brought]
    opening = rng.choice(_ACKNOWLEDGE) if part.own and part.manner != "hurried" else ""
    text = f"{opening} {goal}".strip()
    return text.lower() if part.manner == "short" and goal == goal.lower() else text


def facts_about(part: PlayedPart, goal: int) -> list[KnownFact]:
    """Facts that can belong to a goal: they are listed in the order of the goals, and
    those that a goal's own words hold show where its part of the list lies. `at_once` then
    says that the fact suits no other goal better."""
    holders = [
        [i for i, text in enumerate(part.goals) if fact.at_once and fact.is_in(text)]
        for fact in part.facts
    ]
    chosen = []
    for place, fact in enumerate(part.facts):
        low = max((h[0] for h in holders[: place + 1] if len(h) == 1), default=0)
        last = len(part.goals) - 1
        high = min((h[0] for h in holders[place:] if len(h) == 1), default=last)
        if low <= goal <= high:
            shares = [fact.relevance(stem_set(text)) for text in part.goals[low : high + 1]]
            chosen.append(fact._replace(at_once=shares[goal - low] > 0 or max(shares) == 0))
    return chosen


def _answer(question: str, part: PlayedPart, rng: Random, wrong: float) -> str:
    """What is known of what was asked, once for each label: the first that was not said yet."""
    if _CONFIRM.search(question):
        return rng.choice(_YES)
    goal, asked, which = max(0, part.brought - 1), stem_set(question), _WHICH.search(question)
    places = [i for i, text in enumerate(part.own) if part.goals and part.says(goal, text)]
    since = part.own[places[-1] if places else 0 :]
    said = " ".join(since).lower()
    by_label: dict[str, KnownFact] = {}
    for fact in sorted(facts_about(part, goal), key=lambda fact: fact.value.lower() in said):
        by_label.setdefault(fact.label, fact)
    fresh = [fact for fact in by_label.values() if fact.value.lower() not in said]
    answers = [f for f in fresh if f.relevance(asked) >= 0.3] or list(by_label.values())
    best = max((fact.relevance(asked) for fact in answers), default=0.0)
    chosen = [fact for fact in answers if 0 < fact.relevance(asked) >= 0.75 * best]
    if which:
        roles = {stems(fact.label)[:1] for fact in chosen} | {(word,) for word in asked}
        rest = [f for f in fresh if f.at_once and f not in chosen]
        chosen += [f for f in rest if stems(f.label)[:1] in roles]
    # what was said of another goal may hold for this one
    chosen = chosen or [f for f in part.facts if f.relevance(asked) >= 0.5][:1]
    if len(part.own) > 1 and not fresh and which and _SAME not in since:
        return _SAME
    if not chosen:
        return rng.choice([t for t in _IGNORANT if t not in since] or list(_IGNORANT))
    answer = " ".join(_told(fact, rng, wrong) for fact in chosen[:4])
    return f"{rng.choice(_AGAIN)} {answer}" if answer in since else answer


def _told(fact: KnownFact, rng: Random, wrong: float) -> str:
    value = slip(fact.value, rng) if rng.random() < wrong else fact.value
    text = labelled(fact.label, value)
    return text[:1].upper() + text[1:] + "."
