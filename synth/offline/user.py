"""The simulated user: one message in the part that the system prompt gives.

Brings the wishes in order, answers questions from what it knows, says so when it does not know,
and ends when every wish was dealt with. It sees what a person would: the agent's words.
"""

import json
import re
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from synth.offline.conversation import question_in
from synth.offline.generator_brief import manner_of
from synth.offline.sections import sections
from synth.offline.settings import OfflineSettings
from synth.offline.wording import labelled
from synth.offline.words import found, plain, sentences, stem_set, stems
from synth.openai_server.request import ChatRequest

_FACT = re.compile(r"^-\s*(.+?):\s*(.*?)\s*\((say it at once|only when asked)\)\s*$", re.MULTILINE)
_WISH = re.compile(r"^\d+\.\s+(.*\S)\s*$", re.MULTILINE)
_CONFIRM = re.compile(
    r"\b(?:shall i|should i|do you want me|would you like me|is that (?:right|correct|ok)"
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


class Fact(NamedTuple):
    label: str
    value: str
    at_once: bool


class Part(NamedTuple):
    """What the system prompt says about the person who is played."""

    wishes: list[str]
    facts: list[Fact]
    manner: str
    patience: int


def user_turn(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    part = _part(request)
    rng = rng_of(request.key, "user")
    factor = settings.models.get(request.model, 1.0)
    own = [_words(m["content"]) for m in request.messages if m["role"] == "assistant"]
    heard = [m["content"] for m in request.messages if m["role"] == "user"]
    brought = _brought(part.wishes, own)
    early = rng_of(request.key, "ends_early").random()
    if own and brought < len(part.wishes) and early < settings.user_errors.ends_early * factor:
        return {"message": rng.choice(_THANKS[part.manner]), "done": True}
    question = question_in(heard[-1]) if heard else ""
    if own and question:
        if sum(1 for text in own if text in _IGNORANT) >= part.patience:
            return {"message": rng.choice(_GIVE_UP), "done": True}
        wrong = settings.user_errors.wrong_fact * factor
        about = facts_about(part, max(0, brought - 1))
        since = own[_begun(part, brought, own) :]
        answer = _answer(question, about, part.facts, since, rng, wrong)
        return {"message": answer, "done": False}
    if brought < len(part.wishes):
        return {"message": _bring(part, brought, own, rng), "done": False}
    return {"message": rng.choice(_THANKS[part.manner]), "done": True}


def _part(request: ChatRequest) -> Part:
    read = sections(request)
    persona = read.get("persona", "")
    patience = re.search(r"[Pp]atience: after (\d+)", persona)
    return Part(
        wishes=_WISH.findall(read.get("what you want", "")),
        facts=[
            Fact(label, value, when == "say it at once")
            for label, value, when in _FACT.findall(read.get("what you know", ""))
        ],
        manner=manner_of(persona),
        patience=int(patience.group(1)) if patience else 4,
    )


def _words(text: str) -> str:
    """An own earlier turn, which may stand there as the JSON that it was."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return str(value.get("message", text)) if isinstance(value, dict) else text


def _brought(wishes: list[str], own: list[str]) -> int:
    """How many wishes were brought up: the number of the last one that was said."""
    said = [set(stems(text)) for text in own]
    last = 1 if own and wishes else 0  # the opening brings the first, however it is put
    for number, wish in enumerate(wishes, 1):
        wanted = stem_set(wish)
        if any(wanted and len(wanted & words) >= 0.8 * len(wanted) for words in said[1:]):
            last = max(last, number)
    return last


def _begun(part: Part, brought: int, own: list[str]) -> int:
    """Where among the own messages the present wish was brought up."""
    wish = stem_set(part.wishes[brought - 1]) if brought else frozenset()
    places = [i for i, text in enumerate(own) if len(wish & stem_set(text)) >= 0.8 * len(wish)]
    return places[-1] if places else 0


def _bring(part: Part, index: int, own: list[str], rng: Random) -> str:
    wish = part.wishes[index]
    opening = rng.choice(_ACKNOWLEDGE) if own and part.manner != "hurried" else ""
    text = f"{opening} {wish}".strip()
    return text.lower() if part.manner == "short" and wish == wish.lower() else text


def facts_about(part: Part, wish: int) -> list[Fact]:
    """Facts that can belong to a wish: they are listed in the order of the wishes, and those
    that a wish's own words hold show where its part of the list lies. `at_once` then says that
    the fact suits no other wish better."""
    holders = [
        {i for i, text in enumerate(part.wishes) if fact.at_once and _holds(text, fact.value)}
        for fact in part.facts
    ]
    chosen = []
    for place, fact in enumerate(part.facts):
        before = [min(h) for h in holders[: place + 1] if len(h) == 1]
        after = [max(h) for h in holders[place:] if len(h) == 1]
        low, high = max(before, default=0), min(after, default=len(part.wishes) - 1)
        if low <= wish <= high:
            sure = _fits_best(fact, part.wishes[low : high + 1], wish - low)
            chosen.append(fact._replace(at_once=sure))
    return chosen


def _fits_best(fact: Fact, wishes: list[str], here: int) -> bool:
    """The wish speaks of what the fact is about, or none of the others does."""
    shares = [_relevance(fact.label, stem_set(text)) for text in wishes]
    return shares[here] > 0 or max(shares) == 0


def _holds(text: str, value: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text, re.IGNORECASE))


def _answer(
    question: str, facts: list[Fact], every: list[Fact], own: list[str], rng: Random, wrong: float
) -> str:
    """What is known of what was asked, once for each label: the first that was not said yet."""
    asked = stem_set(question)
    said = " ".join(own).lower()
    if _CONFIRM.search(question):
        return rng.choice(_YES)
    by_label: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda fact: fact.value.lower() in said):
        by_label.setdefault(fact.label, fact)
    scored = {label: _relevance(label, asked) for label in by_label}
    fresh = [label for label, f in by_label.items() if f.value.lower() not in said]
    answers = [label for label in fresh if scored[label] >= 0.3] or list(by_label)
    best = max((scored[label] for label in answers), default=0.0)
    chosen = [by_label[label] for label in answers if 0 < scored[label] >= 0.75 * best]
    if _WHICH.search(question):
        rest = [f for f in by_label.values() if f.value.lower() not in said and f.at_once]
        roles = {stems(fact.label)[:1] for fact in chosen} | {(word,) for word in asked}
        chosen += [f for f in rest if f not in chosen and stems(f.label)[:1] in roles]
    if not chosen:  # what was said of another wish may hold for this one
        chosen = [f for f in every if _relevance(f.label, asked) >= 0.5][:1]
    if len(own) > 1 and not fresh and _WHICH.search(question) and _SAME not in own:
        return _SAME
    if not chosen:
        return rng.choice([text for text in _IGNORANT if text not in own] or list(_IGNORANT))
    answer = " ".join(_told(fact, rng, wrong) for fact in chosen[:4])
    return f"{rng.choice(_AGAIN)} {answer}" if answer in own else answer


def _relevance(label: str, asked: frozenset[str]) -> float:
    """Share of the label's words that were asked for."""
    words = stems(plain(label.partition(" in ")[0]))
    ends = {"from": "sourc", "to": "target"}
    words += tuple(stem for end, stem in ends.items() if end in label.split()[:1])
    hits = sum(found(word, asked) for word in words)
    return hits / len(words) if words else 0.0


def _told(fact: Fact, rng: Random, wrong: float) -> str:
    value = _slip(fact.value, rng) if rng.random() < wrong else fact.value
    text = labelled(fact.label, value)
    return text[:1].upper() + text[1:] + "."


def _slip(value: str, rng: Random) -> str:
    """One digit, or failing that one letter, is another."""
    places = [i for i, c in enumerate(value) if c.isdigit()]
    if places:
        i = rng.choice(places)
        return value[:i] + str((int(value[i]) + rng.randint(1, 9)) % 10) + value[i + 1 :]
    return value[:-1] + ("e" if value[-1:] != "e" else "a") if sentences(value) else value
