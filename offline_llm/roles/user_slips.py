"""The simulated user's own faults: what spoils a turn, at declared rates, one kind a turn at most.

Each kind takes several forms, some of which no rule is likely to see: the rates at which faults are
found would say nothing otherwise.
"""

import re
from random import Random
from typing import Any

from offline_llm.reading.conversation import question_in
from offline_llm.reading.sections import sections
from offline_llm.server.request import ChatRequest
from offline_llm.settings.rates import UserErrors
from records.seeds import rng_of

_SERVES = (
    "How can I help you today?",
    "Let me check that for you, one moment.",
    "I'd be happy to help with that.",
    "I have updated your details. Is there anything else I can do for you?",
    "One moment, I am looking at the screen now.",
    "Certainly. Your request is being handled, please hold the line.",
)
_STRANGERS = ("Halvorsen", "Okonjo", "Bellweather", "Dragomir", "Satterthwaite", "Pemberly")
_MONTHS = ("January", "March", "May", "August", "November")
_AGAIN = ("Also, {}", "And please, {}", "Once more: {}", "{}")


def drawn(request: ChatRequest, errors: UserErrors, factor: float) -> str | None:
    """Which fault this turn has, by the name of its rate, if it has the occasion for it; the same
    for the same request."""
    for kind, rate in errors:
        if kind != "wrong_fact" and rng_of(request.key, f"user:{kind}").random() < rate * factor:
            return kind
    return None


def spoiled(
    kind: str, turn: dict[str, Any], request: ChatRequest, *, brought: int, goals: list[str]
) -> dict[str, Any] | None:
    """The turn with a fault of the kind; None where there is no occasion for it. `brought`: how
    many of the goals were brought up."""
    rng = rng_of(request.key, "spoiled")
    own = [m["content"] for m in request.messages if m["role"] == "assistant" and m["content"]]
    heard = [m["content"] for m in request.messages if m["role"] == "user"]
    if not own or (turn["done"] and kind != "wishes_again"):
        return None
    if kind == "ends_early":
        early = brought < len(goals) or bool(question_in(heard[-1]))
        return {"message": "Thanks, that's all.", "done": True} if early else None
    if kind == "repeats":
        return _says(rng.choice((own[-1], own[-1], f"I said: {own[-1]}")))
    if kind == "wishes_again":
        dealt = brought - (0 if turn["done"] else 1)
        if dealt < 1 or heard[-1].rstrip().endswith("?"):
            return None
        return _says(_goal_again(goals[rng.randrange(dealt)], rng))
    if kind == "leaks":
        return _says(_leak(request, rng))
    if kind == "plays_agent":
        return _says(rng.choice((*_SERVES, heard[-1])))
    return _says(f"{turn['message']} {_invention(rng)}")


def _says(message: str) -> dict[str, Any]:
    return {"message": message, "done": False}


def _goal_again(goal: str, rng: Random) -> str:
    return rng.choice(_AGAIN).format(goal[:1].lower() + goal[1:])


def _leak(request: ChatRequest, rng: Random) -> str:
    """A rule word for word, the mark of a fact, or the same in the user's own words."""
    read = sections(request)
    rules = re.sub(r"\s+", " ", read.get("rules", "")).split("- ")
    rule = rng.choice([text for text in rules if len(text.split()) > 9] or ["stay in the part"])
    marks = re.findall(r"^- (.+?):", read.get("what you know", ""), re.MULTILINE) or ["rest"]
    return rng.choice(
        (
            f"My rules are: {rule.strip()}",
            f"The {rng.choice(marks)} I give only when asked.",
            f"I was told to keep the {rng.choice(marks)} to myself at first.",
            "As the simulated user I have no opinion on that.",
        )
    )


def _invention(rng: Random) -> str:
    """A fact that nobody has given this person."""
    number = rng.randint(2111, 9888)
    return rng.choice(
        (
            f"My reference is {rng.choice('QXZ')}K-{number}.",
            f"It was on {rng.randint(13, 28)} {rng.choice(_MONTHS)}, I think.",
            f"I spoke to {rng.choice(_STRANGERS)} about it.",
            f"The number is {number}.",
            f"Please mind that there are {rng.randint(13, 60)} of us.",
        )
    )


def slip(value: str, rng: Random) -> str:
    """One digit of a value, or failing that its last letter, is another."""
    places = [i for i, c in enumerate(value) if c.isdigit()]
    if not places:
        return value[:-1] + ("a" if value.endswith("e") else "e")
    i = rng.choice(places)
    return value[:i] + str((int(value[i]) + rng.randint(1, 9)) % 10) + value[i + 1 :]
