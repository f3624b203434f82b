"""Generator, job `brief`: puts a proved task into the words of the person who brings it.

The action comes from the description of each step's tool, the particulars from the known values;
identifiers that the person does not know never show up, because only `known` is read.
"""

import re
from random import Random
from typing import Any

from offline_llm.reading.sections import json_of, sections
from offline_llm.reading.wording import definite, labelled, legible, phrase_of, said_label
from offline_llm.reading.words import joined
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_LEADS = {
    "formal": ("I would like you to", "Could you please", "I should like to ask you to"),
    "hurried": ("Need to", "Please", "I have to"),
    "short": ("please", "need to", "i want to"),
    "plain": ("I need to", "I'd like to", "Please", "Could you", "I want to", "Can you"),
}
_NEXT = ("Also, {}", "Next, {}", "One more thing: {}", "After that, {}", "Then {}", "{}")
_HEAR = ("Please tell me {}.", "I'd like to know {}.", "Let me know {}.", "Then tell me {}.")
_OTHERWISE = {
    "a": "one", "an": "one", "the": "that", "of": "belonging to",
    "to": "over to", "from": "out of", "in": "within", "with": "along with", "by": "through",
    "and": "plus", "its": "the own", "at": "right at", "or": "or else",
}  # fmt: skip
_RUN = 4
_GREETINGS = {
    "formal": ("Good morning.", "Good afternoon."),
    "hurried": ("",),
    "short": ("",),
    "plain": ("Hello!", "Hi there.", "Hi,", "Good morning,", "Hey,", ""),
}


def write_brief(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    found = sections(request)
    steps = [step for step in json_of(found, "steps", []) if isinstance(step, dict)]
    rng = rng_of(request.key, "brief")
    persona = json_of(found, "persona", {})
    manner = manner_of(str(persona))
    goals: list[str] = []
    for index, step in enumerate(steps):
        said = _user_goal(step, index, manner, rng)
        if step.get("after") and goals:
            goals[-1] += f" {said}"
        else:
            goals.append(said)
    together = re.search(r"the first (\d+) wishes, all", request.messages[-1]["content"])
    first = " ".join(goals[: int(together[1]) if together else 1]) or "I need some help."
    greeting = rng.choice(_GREETINGS[manner])
    opening = f"{greeting} {_lowered(first) if greeting.endswith(',') else first}".strip()
    asks = [said_result(str(label)) for step in steps for label in step.get("result") or []]
    return {
        "person": str(persona.get("name")),
        "relation": "the one whose own affair it is",
        "implausible": "",
        "situation": "Something has come up, and it has to be settled today.",
        "opening": opening,
        "wishes": goals,
        "asks": asks,
    }


def read_brief(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    """What the words mean: the choice that has most words in common with them."""
    questions = json_of(sections(request), "questions", [])
    return {"answers": [{"why": "These are its words.", "choice": _nearest(q)} for q in questions]}


def _nearest(question: dict[str, Any]) -> str:
    said = _words(question["said"])
    choices = {letter: _words(text) for letter, text in question["choices"].items()}
    return max(choices, key=lambda at: len(said & choices[at]) / len(said | choices[at]))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def manner_of(persona: str) -> str:
    """Which of the tables suits the persona's style."""
    for manner, word in (("formal", "formal"), ("hurried", "hurried"), ("short", "lower case")):
        if word in persona:
            return manner
    return "plain"


def _known(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [fact for fact in step.get("known") or [] if isinstance(fact, dict)]


def _style(rng: Random) -> int:
    return rng.choice((0, 0, 1, 2))


def _user_goal(step: dict[str, Any], index: int, manner: str, rng: Random) -> str:
    description = str(step.get("description") or "")
    told = [fact for fact in _known(step) if fact.get("when", "opening") == "opening"]
    if step.get("form"):
        text = _with_particulars(own_words(str(step.get("wish"))).rstrip("."), told, rng)
        return f"{text} {_asking(step, rng)}".strip()
    lead = rng.choice(_LEADS[manner])
    phrase = phrase_of(str(step.get("tool")), description)
    rest = definite(phrase.rest) if rng.random() < 0.5 else phrase.rest
    asked = own_words(f"{phrase.verb} {rest}".strip())
    text = _with_particulars(f"{lead} {asked}", told, rng)
    if text.startswith(("Could", "Can")) and text.endswith(".") and ". " not in text:
        text = text[:-1] + "?"
    waits = bool(step.get("after"))
    if waits or (index and manner != "short"):
        text = rng.choice(("Second, {}",) if waits else _NEXT).format(_lowered(text))
    text = text if manner == "short" else text[:1].upper() + text[1:]
    text = f"{text} {_asking(step, rng)}".strip()
    if step.get("once"):
        text += f" It may have to wait. What it waits for: {step['once']}"
    return f"{text} Do it only once the first is done." if waits else text


def _asking(step: dict[str, Any], rng: Random) -> str:
    """Asks for what the person wants to hear at the end."""
    labels = [said_result(str(label)) for label in step.get("result") or []]
    return rng.choice(_HEAR).format(joined(labels)) if labels else ""


def said_result(label: str) -> str:
    return label if label.startswith(("its ", "the ")) else f"the {label}"


def own_words(asked: str) -> str:
    """No more than five words of a description in a row: a small word is put otherwise."""
    words, run = asked.split(), 0
    if len(words) <= _RUN + 1:
        return asked
    for at, word in enumerate(words):
        run += 1
        if run > 2 and word in _OTHERWISE:
            words[at] = _OTHERWISE[word]
            run = int(words[at].endswith(f" {word}"))
        elif run > _RUN:
            words[at], run = f"{word}, please,", 0
    return " ".join(words).removesuffix(",")


def _with_particulars(asked: str, told: list[dict[str, Any]], rng: Random) -> str:
    """The request with what is known: in a sentence of its own, after a colon, or run on."""
    if not told:
        return f"{asked}."
    style, form = _style(rng), rng.random()
    names = [fact for fact in told if _is_name(fact)]
    if form < 0.35 and len(names) == 1:
        others = [fact for fact in told if fact is not names[0]]
        asked = f"{asked} for {legible(names[0]['value'])}"
        if not others:
            return f"{asked}."
        told = others
    parts = [labelled(str(fact.get("label")), fact.get("value"), style) for fact in told]
    if form < 0.75 or any(str(fact.get("value")).islower() for fact in told):
        return f"{asked}. {_sentence(joined(parts))}"
    listed = [f"{said_label(str(f.get('label')))} {legible(f.get('value'), style)}" for f in told]
    return f"{asked}: {', '.join(listed)}."


def _is_name(fact: dict[str, Any]) -> bool:
    value = fact.get("value")
    if not isinstance(value, str) or not str(fact.get("label", "")).endswith("name"):
        return False
    return bool(re.fullmatch(r"[A-Z][a-z'\-]+(?: [A-Z][a-z'\-]+)+", value))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _lowered(text: str) -> str:
    """Fit to follow other words; `I` and names keep their capital."""
    return text if re.match(r"I\b|I'", text) else text[:1].lower() + text[1:]
