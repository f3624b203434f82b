"""How far a simulated user is with what it wants: which wishes come again and
whether it may leave.

That a wish was brought up is told from words it shares with what was said, which proves nothing in
any language: what is found here is doubtful unless values decide it.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from synth.episode.users.faults import TurnFault, UserTalk
from synth.episode.users.form import asks, tokens
from synth.rubrics.reading.locales import CODES, locale
from synth.rubrics.values import mentions

SAID = 0.8
"""Share of a wish's words that a message holds when it says the wish again."""

BROUGHT = 0.34
"""Share of a wish's words below which nobody has brought it up, however freely it was put."""

TELLING = 4
"""Characters from which a value tells which wish is meant."""

REPEATED_GOAL = TurnFault(
    "repeated_wish",
    "That wish was dealt with. Go on to the next one, or end if none is left.",
    is_sure=False,
)

_ENDING = re.compile(r"(?:ing|ed|(?<![aeiou])(?:ies|y)|es|s|en|e)$")
_SMALL = frozenset(
    re.findall(
        r"\w+",
        "any could her his him how me need out please should some tell them then want what when "
        "which who would yes",
    )
).union(*(locale(code).function_words for code in CODES))
"""Words that say nothing about which user goal is meant."""


def goal_again(message: str, talk: UserTalk) -> bool | None:
    """Whether a later user goal was brought up since one that the message says again without being
    asked; None where it brings nothing up again."""
    if asks(talk.heard[-1]):
        return None
    said = [[_says(goal, text) for text in talk.own] for goal in talk.user_goals]
    together = talk.opening_goals
    for number, goal in enumerate(talk.user_goals):
        brought = number < together or any(said[number])
        others = (other for i, other in enumerate(talk.user_goals) if i != number)
        if brought and _says(goal, message) and not any(_says(o, message) for o in others):
            # what came in the same message is no later one
            since = 1 if number < together else 0
            return any(any(later[since:]) for later in said[number + 1 :])
    return None


def stop_fault(talk: UserTalk, *, goal_open: bool | None) -> TurnFault | None:
    """Why the user may not end here. `goal_open` None: the task cannot be solved."""
    if not talk.patient or goal_open is False:
        return None
    left = [n for n in range(len(talk.user_goals)) if not _brought(n, talk)]
    if left:
        words = f"You have not brought this up yet: {talk.user_goals[left[0]]}"
        early = len(talk.heard) - 1 <= talk.patience
        unsaid = [n for n in left if _no_value_said(n, talk)]
        return TurnFault("premature_stop", words, bool(goal_open and early and unsaid))
    if goal_open and asks(talk.heard[-1]):
        words = "You were asked a question and your wish is not done yet. Answer it."
        return TurnFault("premature_stop", words, is_sure=False)
    return None


def may_stop(talk: UserTalk) -> bool:
    """Whether ending is fine whatever the state of the task: spares looking at it."""
    everything = all(_brought(number, talk) for number in range(len(talk.user_goals)))
    return not talk.patient or (everything and not asks(talk.heard[-1]))


def _brought(number: int, talk: UserTalk) -> bool:
    """Whether the user goal was brought up: by one of its values, or some of the words that no
    other user goal has. The opening brings the first user goals, however they are put."""
    if number < talk.opening_goals:
        return True
    texts = talk.own[1:]
    if any(mentions(text, value) for value in _telling(number, talk) for text in texts):
        return True
    others = " ".join(goal for i, goal in enumerate(talk.user_goals) if i != number)
    every = content(talk.user_goals[number])
    wanted = every - content(others) or every
    return any(len(wanted & content(text)) >= BROUGHT * len(wanted) for text in talk.own)


def _no_value_said(number: int, talk: UserTalk) -> bool:
    """Whether the user goal has values of its own and nobody has said one of them, nor so much as
    a word of its own."""
    values = _telling(number, talk)
    texts: Sequence[str] = [*talk.own, *talk.heard[1:]]
    others = " ".join(goal for i, goal in enumerate(talk.user_goals) if i != number)
    words = content(talk.user_goals[number]) - content(others)
    if not values or any(words & content(text) for text in talk.own):
        return False
    return not any(mentions(text, value) for value in values for text in texts)


def _telling(number: int, talk: UserTalk) -> list[str]:
    """Values of the user goal that no other one holds."""
    others = " ".join(goal for i, goal in enumerate(talk.user_goals) if i != number).casefold()
    values = [str(fact["value"]) for fact in talk.facts if fact.get("goal") == number]
    return [v for v in values if len(v) >= TELLING and v.casefold() not in others]


def content(text: str) -> frozenset[str]:
    """The words that carry the meaning, without the commonest endings; pairs of characters of a
    script without spaces."""
    words = [word for word in tokens(text) if word not in _SMALL]
    pairs = {a + b for a, b in pairwise(words) if not (a + b).isascii()}
    whole = {_ENDING.sub("", w) or w for w in words if len(w) > 1}
    return frozenset(whole | {pair for pair in pairs if len(pair) == 2})


def _says(goal: str, text: str) -> bool:
    wanted = content(goal)
    return bool(wanted) and len(wanted & content(text)) >= SAID * len(wanted)
