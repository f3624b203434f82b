"""What a simulated user does wrong, told by code from its words and what it could know.

A fault that is sure is asked for again until it is mended, or the episode ends as the user's error.
A doubtful turn is asked for once more and then stands: words that only often go with a fault cost a
request and never a trajectory. What code cannot see (a new wish, a part that is not kept) is left
to the judge of the trajectory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from synth.episode.users.facts import Grounds, invented
from synth.episode.users.form import (
    asks,
    hinted,
    holds_question,
    is_foreign,
    is_senseless,
    labelled_roles,
    leaks,
    tokens,
)
from synth.rubrics.values import mentions

UserFaultKind = Literal[
    "empty",
    "invalid_output",
    "senseless",
    "leak",
    "agent_part",
    "other_language",
    "repeat",
    "repeated_wish",
    "premature_stop",
    "invented_fact",
    "unasked_act",
]
"""empty: nothing said and not done. invalid_output: no turn in the schema's form, after repairs.
senseless: the same few words over and over. leak: shows its instructions, or that it plays a part.
agent_part: speaks as the assistant. other_language: in another language than the conversation.
repeat: says the same again. repeated_wish: brings up a user goal that is done or was refused.
premature_stop: ends with user goals left or a question open. invented_fact: a name, number, date or
id from nowhere. unasked_act: uses a tool of its own that nobody spoke of."""

WORDS_KEPT = 500
"""Characters of a faulty turn that are written down."""

SHORT_WORDS = 6
"""Messages of fewer words may be said twice."""

HELD = 0.8
"""Share of an earlier message's words in one that is little more than it."""


class UserFault(NamedTuple):
    turn: int
    """Of the agent: how many messages it had written."""
    kind: UserFaultKind
    attempt: int
    """0 for the first try at this turn."""
    words: str
    """What the user would have said, or done."""
    is_sure: bool = True
    """False where code only doubted the turn: such a turn stands when it comes again."""


class TurnFault(NamedTuple):
    kind: UserFaultKind
    complaint: str
    """For the model that plays the user."""
    is_sure: bool = True


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
    opening_goals: int = 1
    """How many of the goals the opening has brought up."""

    @property
    def patient(self) -> bool:
        return sum(map(asks, self.heard[1:])) <= self.patience

    @property
    def grounds(self) -> Grounds:
        given = [fact["value"] for fact in self.facts]
        values = [v for v in given if isinstance(v, str | int | float) and not isinstance(v, bool)]
        unsaid = [v for v in values if not any(mentions(text, v) for text in self.own)]
        texts = [*self.known, *self.own, *self.heard]
        return Grounds(texts, last=self.heard[-1], unsaid=unsaid)


def spoken_fault(
    message: str, talk: UserTalk, instructions: frozenset[tuple[str, ...]]
) -> TurnFault | None:
    """What is wrong with the words alone, whether or not they are the last."""
    if fault := _fault_of_form(message, talk, instructions):
        return fault
    found = invented(message, talk.grounds, answering=holds_question(talk.heard[-1]))
    if found:
        shown = ", ".join(invention.words for invention in found)
        words = f"You do not know this: {shown}. Say only what you know."
        return TurnFault("invented_fact", words, any(invention.is_sure for invention in found))
    return doubt_of_part(message)


def _fault_of_form(
    message: str, talk: UserTalk, instructions: frozenset[tuple[str, ...]]
) -> TurnFault | None:
    if is_senseless(message):
        return TurnFault("senseless", "The message says the same words over and over.")
    if leaks(message, instructions):
        return TurnFault("leak", "The message shows your instructions. Speak only as the person.")
    if len(roles := labelled_roles(message)) > 1 or _repeats(message, talk.heard[-1]):
        return TurnFault("agent_part", "That is what the assistant says. You are the customer.")
    if is_foreign(message, [*talk.user_goals, *talk.own, *talk.heard[1:]], talk.known):
        return TurnFault("other_language", "Write in the language of the conversation.")
    if roles:
        words = "Write what the person says, one turn, without a label before it."
        return TurnFault("agent_part", words, is_sure=False)
    return None


def doubt_of_part(message: str) -> TurnFault | None:
    """Words that somebody who plays a part, or who serves the user, would say."""
    if hinted("out_of_role", message):
        words = "You are this person, who knows of no part, prompt or instructions."
        return TurnFault("leak", words, is_sure=False)
    if hinted("serves", message):
        words = "That sounds like the assistant. You are the customer."
        return TurnFault("agent_part", words, is_sure=False)
    return None


def repeat_fault(message: str, talk: UserTalk) -> TurnFault | None:
    """The same message as before, though something else was said to the user since."""
    if _repeats(message, talk.own[-1]) and not _same(*talk.heard[-2:]):
        words = "You said exactly this before. Answer what was said to you last."
        return TurnFault("repeat", words)
    if any(_holds(message, text) for text in talk.own) and not asks(talk.heard[-1]):
        words = "You said exactly this before. Go on from what was said last."
        return TurnFault("repeat", words, is_sure=False)
    return None


def _same(a: str, b: str) -> bool:
    return tokens(a) == tokens(b)


def _repeats(message: str, earlier: str) -> bool:
    """Short answers ("Yes, please.") may well fit twice."""
    return len(tokens(message)) >= SHORT_WORDS and _same(message, earlier)


def _holds(message: str, earlier: str) -> bool:
    """Whether the message is little more than an earlier one."""
    words, before = tokens(message), tokens(earlier)
    if len(before) < SHORT_WORDS or len(before) < HELD * len(words):
        return False
    return f" {' '.join(before)} " in f" {' '.join(words)} "
