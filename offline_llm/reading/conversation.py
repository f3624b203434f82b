"""A conversation read back into goals: what the user asked for, and what was done about it.

The offline model keeps no state between requests, so everything is read anew from the messages.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from offline_llm.reading.matching import action_of, request_of
from offline_llm.reading.results import PastCall, error_of, garbled
from offline_llm.reading.unclear import hear
from offline_llm.reading.words import STOP, sentences, split, stem_set
from offline_llm.server.request import RequestMessage

_PARTING = re.compile(
    r"\b(?:thanks|thank you|cheers|bye|goodbye|that's all|that is all|that was all|nothing else"
    r"|that'll be all|all set|have a (?:nice|good|great))\b",
    re.IGNORECASE,
)
_WANTS = re.compile(r"\?|\b(?:need|want|please|could|can|would|also|next|then)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"\b(?:don't|do not|didn't|not) (?:know|have|remember|recall)|\bno idea\b|\bnot sure\b"
    r"|\bcan't (?:say|tell)|\bcannot say\b",
    re.IGNORECASE,
)
_MORE = re.compile(r"\b(?:else|further|more i can|help you with)\b", re.IGNORECASE)
_SPLIT = re.compile(r"^\W*(?:also|additionally|in addition|besides|and also|second(?:ly)?)\b", re.I)


@dataclass
class UserGoal:
    """One thing that the user wants, in the user's words over all turns about it."""

    index: int
    """0 for the first goal of the conversation."""
    texts: list[str]
    first: int = 0  # index of the first goal of the same message
    calls: list[PastCall] = field(default_factory=list)
    """Calls made since the goal was said."""
    asked: list[str] = field(default_factory=list)
    """Questions that the agent asked about it."""
    unknown: bool = False
    """The user could not answer the last question."""

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


@dataclass(frozen=True)
class Dialogue:
    goals: list[UserGoal]
    calls: list[PastCall]
    system: str
    last_role: str


def read(messages: list[RequestMessage]) -> Dialogue:
    goals: list[UserGoal] = []
    calls: list[PastCall] = []
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    question = ""
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "user" and question and goals:
            for goal in goals[goals[-1].first :]:
                hear(goal.texts, text, question)
                goal.unknown = bool(_UNKNOWN.search(text))
        elif role == "user":
            parts, at = parts_of(text), len(goals)
            goals += [UserGoal(at + i, [part], first=at) for i, part in enumerate(parts)]
        elif role == "assistant":
            made = [_call(call, results) for call in message.get("tool_calls") or []]
            calls += [call._replace(number=len(calls) + i) for i, call in enumerate(made)]
            for goal in goals:
                goal.calls += calls[len(calls) - len(made) :]
            question = "" if made else question_in(text)
            for goal in goals[goals[-1].first :] if question and goals else ():
                goal.asked.append(question)
        question = "" if role == "user" else question
    system = "\n\n".join(m["content"] for m in messages if m["role"] in ("system", "developer"))
    return Dialogue(goals, calls, system, messages[-1]["role"])


def parts_of(text: str) -> list[str]:
    """A message cut where a new sentence begins with `also` or the like and asks for something, as
    what stands before it does: thanks are no goal."""
    parts: list[str] = [""]
    for sentence in sentences(text):
        both = (parts[-1], sentence)
        if _SPLIT.match(sentence) and all(action_of(request_of(part)) for part in both):
            parts.append("")
        parts[-1] = f"{parts[-1]} {sentence}".strip()
    return [part for part in parts if part] or [text]


def question_in(text: str) -> str:
    """The last question of a message, unless it is the offer of more help."""
    asked = [s for s in sentences(text) if s.endswith("?")]
    return asked[-1] if asked and not _MORE.search(asked[-1]) else ""


def _call(call: dict[str, Any], results: dict[str, str]) -> PastCall:
    function, result = call["function"], results.get(call["id"], "")
    try:
        given = json.loads(function["arguments"])
    except ValueError:
        given = None
    error = error_of(result) or ("malformed result, try again" if garbled(result) else "")
    return PastCall(0, function["name"], given if isinstance(given, dict) else {}, result, error)


def is_parting(text: str) -> bool:
    """Words that end a conversation and ask for nothing."""
    rest = stem_set(_PARTING.sub(" ", text))
    return bool(_PARTING.search(text)) and len(rest) <= 4 and not _WANTS.search(text)


def is_small_talk(text: str) -> bool:
    """A greeting or a word of agreement: nothing to act on."""
    return not [w for w in split(text) if w not in STOP and len(w) > 2]
