"""What a simulated user does wrong, told by code from its words and what it could know.

Each kind is looked for by rules that would rather miss an oddity than blame a good turn: a retry
costs a request, and a turn that stays faulty costs the trajectory. What a rule cannot see is left
to the reader of the trajectory.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from synth.episode.users.facts import Grounds, invented

UserFaultKind = Literal[
    "empty",
    "invalid_output",
    "leak",
    "agent_part",
    "repeat",
    "repeated_wish",
    "premature_stop",
    "invented_fact",
    "unasked_act",
]
"""empty: nothing said and not done. invalid_output: no turn in the schema's form, after repairs.
leak: shows its instructions. agent_part: speaks as the assistant. repeat: says the same again.
repeated_wish: brings up a user goal that is done or was refused. premature_stop: ends with user
goals left or a question open. invented_fact: a name, number, date or id from nowhere. unasked_act:
uses a tool of its own that nobody spoke of."""

WORDS_KEPT = 500
"""Characters of a faulty turn that are written down."""

RULE_WORDS = 8
"""So many words in a row shared with the instructions are no coincidence."""

SHORT_WORDS = 6
"""Messages of fewer words may be said twice."""

SAID = 0.8
"""Share of a user goal's words that a message holds when it says the user goal again."""

BROUGHT = 0.34
"""Share of a user goal's words below which nobody has brought it up, however freely it was put."""


TELLING = 4
"""Characters from which a value tells which user goal is meant."""


class UserFault(NamedTuple):
    turn: int
    """Of the agent: how many messages it had written."""
    kind: UserFaultKind
    attempt: int
    """0 for the first try at this turn."""
    words: str
    """What the user would have said, or done."""


class TurnFault(NamedTuple):
    kind: UserFaultKind
    complaint: str
    """For the model that plays the user."""


class UserTalk(NamedTuple):
    """What is known of a conversation when the user's turn is looked at."""

    own: list[str]
    """What the user has said so far, the opening first."""
    heard: list[str]
    """What it has heard, the greeting first."""
    user_goals: Sequence[str]
    facts: Sequence[Mapping[str, Any]]
    patience: int
    known: Iterable[str]
    """Texts that the user may speak of: brief, persona, what its own tools have shown."""

    @property
    def patient(self) -> bool:
        return sum(map(asks, self.heard[1:])) <= self.patience


def spoken_fault(
    message: str, talk: UserTalk, instructions: frozenset[tuple[str, ...]]
) -> TurnFault | None:
    """What is wrong with the words alone, whether or not they are the last."""
    if leaks(message, instructions):
        return TurnFault("leak", "The message shows your instructions. Speak only as the person.")
    if plays_agent(message) or _repeats(message, talk.heard[-1]):
        return TurnFault("agent_part", "That is what the assistant says. You are the customer.")
    grounds = Grounds([*talk.known, *talk.own, *talk.heard])
    if found := invented(message, grounds, answering=asks(talk.heard[-1])):
        shown = ", ".join(found)
        return TurnFault("invented_fact", f"You do not know this: {shown}. Say only what you know.")
    return None


def repeat_fault(message: str, talk: UserTalk) -> TurnFault | None:
    """The same message as before, though something else was said to the user since."""
    if _repeats(message, talk.own[-1]) and not _same(*talk.heard[-2:]):
        return TurnFault(
            "repeat", "You said exactly this before. Answer what was said to you last."
        )
    earlier = any(_holds(message, text) for text in talk.own)
    if earlier and not asks(talk.heard[-1]):
        return TurnFault("repeat", "You said exactly this before. Go on from what was said last.")
    return None


def goal_again(message: str, talk: UserTalk) -> tuple[int, bool] | None:
    """(user goal, whether a later one was brought up since) of a user goal that the message says
    again without being asked; None where it brings nothing up again."""
    if asks(talk.heard[-1]):
        return None
    said = [[_says(user_goal, text) for text in talk.own] for user_goal in talk.user_goals]
    for number, user_goal in enumerate(talk.user_goals):
        brought = number == 0 or any(said[number])
        others = (w for i, w in enumerate(talk.user_goals) if i != number)
        if brought and _says(user_goal, message) and not any(_says(w, message) for w in others):
            later = any(any(said[i]) for i in range(number + 1, len(talk.user_goals)))
            return number, later
    return None


REPEATED_GOAL = TurnFault(
    "repeated_wish", "That wish was dealt with. Go on to the next one, or end if none is left."
)


def refuses(text: str) -> bool:
    """Whether the words say no to something."""
    return bool(_REFUSAL.search(text))


def stop_fault(talk: UserTalk, *, goal_open: bool | None) -> TurnFault | None:
    """Why the user may not end here. `goal_open` None: the task cannot be solved."""
    if not talk.patient or goal_open is False:
        return None
    if goal_open and asks(talk.heard[-1]):
        words = "You were asked a question and your wish is not done yet. Answer it."
        return TurnFault("premature_stop", words)
    loosely = goal_open is None  # nothing else tells then that something is left to do
    user_goals = enumerate(talk.user_goals)
    left = [
        user_goal for number, user_goal in user_goals if not _brought(number, talk, loosely=loosely)
    ]
    if left:
        return TurnFault("premature_stop", f"You have not brought this up yet: {left[0]}")
    return None


def may_stop(talk: UserTalk) -> bool:
    """Whether ending is fine whatever the state of the task: spares looking at it."""
    everything = all(_brought(number, talk) for number in range(len(talk.user_goals)))
    return not talk.patient or (everything and not asks(talk.heard[-1]))


def _brought(number: int, talk: UserTalk, *, loosely: bool = False) -> bool:
    """Whether the user goal was brought up: by some of the words, or values, that no other user
    goal has. `loosely`: by any of its words. The opening brings the first user goal, however it is
    put."""
    if number == 0:
        return True
    others = " ".join(
        user_goal for i, user_goal in enumerate(talk.user_goals) if i != number
    ).casefold()
    values = [str(f["value"]).casefold() for f in talk.facts if f.get("goal") == number]
    telling = [value for value in values if len(value) >= TELLING and value not in others]
    if any(value in text.casefold() for value in telling for text in talk.own[1:]):
        return True
    every = _content(talk.user_goals[number])
    wanted = every if loosely else (every - _content(others) or every)
    return any(len(wanted & _content(text)) >= BROUGHT * len(wanted) for text in talk.own)


_CLOSING = re.compile(
    r"anything else|something else|further (?:help|assistance|questions)|else i can|"
    r"help (?:you )?with anything|need anything",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def asks(text: str) -> bool:
    """Whether the text ends on a question that wants an answer, "anything else?" apart."""
    last = _SENTENCE.split(text.strip())[-1]
    return last.endswith("?") and not _CLOSING.search(last)


_TELLTALE = re.compile(
    r"^#+ *(?:persona|what you|rules)|say it at once|only when asked|system prompt|simulated user|"
    r"\bas an ai\b|\bi(?:'m| am) an ai\b|\"done\"\s*:|</?tool_call|<\|[a-z_]+\|>",
    re.IGNORECASE | re.MULTILINE,
)
_AGENT_PART = re.compile(
    r"how (?:can|may) i (?:help|assist) you|i(?:'d| would) be happy to (?:help|assist)|"
    r"(?:is there )?anything else (?:that )?i can (?:help|assist|do for you)|"
    r"\blet me (?:check|look|pull|find)(?: up)? (?:that|this|it|your \w+)(?: \w+)? (?:up )?for you|"
    r"thank you for (?:contacting|calling|reaching out)|"
    r"\bi(?:'ve| have| will|'ll) (?:now |just |successfully )*(?:cancel|book|updat|process|schedul|"
    r"look|pull|check|chang|creat|reschedul)\w* (?:up )?(?:your|(?:that|this|it) for you)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:cannot|can't|can not|unable|not able|not allowed|may not|no way to|not possible|"
    r"impossible|sorry|won't|will not|refuse)\b",
    re.IGNORECASE,
)


def leaks(message: str, instructions: frozenset[tuple[str, ...]]) -> bool:
    """Whether the user speaks of its instructions or quotes them."""
    return bool(_TELLTALE.search(message)) or not instructions.isdisjoint(word_runs(message))


def plays_agent(message: str) -> bool:
    """Whether the words are those of somebody who serves the user."""
    return bool(_AGENT_PART.search(message.replace("\u2019", "'")))


def word_runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"[\w']+", text.casefold())
    return frozenset(zip(*(words[i:] for i in range(RULE_WORDS)), strict=False))


_SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can could do for from have i in is it its like me my need of "
        "on or please so some tell that the their them then there this to want was what when which "
        "will with would you your",
    )
)
"""Words that say nothing about which user goal is meant."""


_ENDING = re.compile(r"(?:ing|ed|(?<![aeiou])(?:ies|y)|es|s|e)$")


def _content(text: str) -> frozenset[str]:
    """The words that carry the meaning, without the commonest endings."""
    words = re.findall(r"[\w']+", text.casefold())
    return frozenset(_ENDING.sub("", w) or w for w in words if w not in _SMALL)


def _says(user_goal: str, text: str) -> bool:
    wanted = _content(user_goal)
    return bool(wanted) and len(wanted & _content(text)) >= SAID * len(wanted)


def _same(a: str, b: str) -> bool:
    return re.findall(r"\w+", a.casefold()) == re.findall(r"\w+", b.casefold())


def _repeats(message: str, earlier: str) -> bool:
    """Short answers ("Yes, please.") may well fit twice."""
    return len(message.split()) >= SHORT_WORDS and _same(message, earlier)


def _holds(message: str, earlier: str) -> bool:
    """Whether the message is little more than an earlier one."""
    words, before = (re.findall(r"\w+", text.casefold()) for text in (message, earlier))
    if len(before) < SHORT_WORDS or len(before) < SAID * len(words):
        return False
    return f" {' '.join(before)} " in f" {' '.join(words)} "


_FILLING = _content("does not only one ones own also again new")
"""Words of a tool's description that tell nothing of what it is about."""

_PLEA = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|you(?:'ll| will)? (?:need|have|should|must|can))\b",
    re.IGNORECASE,
)


def was_spoken_of(tool: Mapping[str, Any], arguments: str, heard: Sequence[str]) -> bool:
    """Whether the assistant has spoken of what this call of the user's own tool does.

    Two messages in a row must hold the act (the word that the description begins with) and another
    of the tool's words or a value of the call; or most of its other words; or, as people put it
    who say it in words of their own, a plea, another of its words and a value. The object alone
    ("I have found the device") is no word about the act.
    """
    first = tool["description"].split(".")[0]
    act, *_ = [*re.findall(r"[\w']+", first), ""]
    acts = _content(act)
    named = _content(f"{tool['name'].replace('_', ' ')} {first}") - _FILLING
    values = [v.casefold() for v in _values(arguments) if len(v) >= TELLING]
    spoken = heard[1:]
    for pair in zip(["", *spoken], spoken, strict=False):
        said = "\n".join(pair)
        words = _content(said)
        others = (named - acts) & words
        valued = any(value in said.casefold() for value in values)
        asked = valued and bool(others) and bool(_PLEA.search(said))
        most = len(others) >= 2 and 2 * len(others) > len(named - acts)
        if (acts & words and (others or valued)) or asked or most:
            return True
    return False


def _values(arguments: str) -> list[str]:
    """The values of a call, as far as its text is a JSON object of plain ones."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return []
    return [str(value) for value in given.values()] if isinstance(given, dict) else []
