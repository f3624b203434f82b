"""The simulated user: a language model that plays a persona with wishes and limited knowledge.

The field's known weakness is a user that spoils the run, so each turn is checked before the agent
sees it. A turn that fails is asked for again, with what was wrong; when that does not help, the
episode ends as the user's error and never as the agent's.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from records.errors import ItemError, SynthError
from records.schemas import Row
from synth.llm.client import LLM, Completion
from synth.prompts import render

PROMPT = "user_turn"

USER_TURN: dict[str, Any] = {
    "type": "object",
    "properties": {"message": {"type": "string"}, "done": {"type": "boolean"}},
    "required": ["message", "done"],
    "additionalProperties": False,
}
"""Schema of the answer that a user model gives."""

GREETING = "Hello, how can I help you?"
"""What the user is answering with its opening: chat endpoints want the first turn from outside."""

RULE_WORDS = 8
"""So many words in a row shared with the instructions are no coincidence."""

SHORT_WORDS = 6
"""Messages of fewer words may be said twice."""


class UserError(SynthError):
    """The simulated user could not be brought to say something usable."""


class UserTurn(NamedTuple):
    message: str
    """Empty only when the user is done."""
    done: bool


class User(Protocol):
    async def reply(self, messages: Sequence[Mapping[str, Any]], *, goal_open: bool) -> UserTurn:
        """The next turn after the agent's words at the end of `messages`.

        `goal_open`: the task can be solved, and what code can check of it is not yet reached.
        Raises UserError.
        """
        ...


class LlmUser:
    """The user model behind one episode. Stateless: its turn number is read off the messages."""

    def __init__(
        self,
        llm: LLM,
        *,
        item: str,
        persona: Row,
        brief: Mapping[str, Any],
        retries: int = 2,
        on_answer: Callable[[Completion], None] | None = None,
    ) -> None:
        self._llm = llm
        self._on_answer = on_answer
        self._item = item
        self._retries = retries
        self._patience: int = persona["patience"]
        prompt = render(PROMPT, persona=persona, wishes=brief["wishes"], facts=brief["facts"])
        self._system: str = prompt.messages[0]["content"]
        self._instructions = _rules()

    async def reply(self, messages: Sequence[Mapping[str, Any]], *, goal_open: bool) -> UserTurn:
        talk = conversation_for_user(messages)
        turn = sum(m["role"] == "assistant" for m in talk)
        system, fault = self._system, ""
        for attempt in range(self._retries + 1):
            step = f"user-{turn}" + (f"-again-{attempt}" if attempt else "")
            said = await self._ask([{"role": "system", "content": system}, *talk], step)
            fault = self._fault(said, talk, goal_open)
            if not fault:
                return said
            system = f"{self._system}\n\n## Not usable\n{_complaint(attempt + 1, said, fault)}"
        raise UserError(f"user turn {turn} still wrong after {self._retries} retries: {fault}")

    async def _ask(self, messages: Sequence[dict[str, Any]], step: str) -> UserTurn:
        try:
            answer = await self._llm.structured(
                "user",
                messages,
                item=self._item,
                step=step,
                name="user_turn",
                schema=USER_TURN,
                on_answer=self._on_answer,
            )
        except ItemError as error:
            raise UserError(str(error)) from error
        return UserTurn(answer["message"].strip(), answer["done"])

    def _fault(self, said: UserTurn, talk: Sequence[Mapping[str, Any]], goal_open: bool) -> str:
        """What is wrong with the turn, in words for the model; empty when it is fine."""
        if not said.message:
            return "" if said.done else "The message is empty."
        if leaks(said.message, self._instructions):
            return "The message shows your instructions. Speak only as the person you play."
        own = [m["content"] for m in talk if m["role"] == "assistant"]
        heard = [m["content"] for m in talk if m["role"] == "user"]
        if not said.done and _repeats(said.message, own[-1]) and not _same(*heard[-2:]):
            return "You said exactly this before. Answer what was said to you last."
        patient = sum(map(asks, heard[1:])) <= self._patience
        if said.done and goal_open and patient and asks(heard[-1]):
            return "You were asked a question and your wish is not done yet. Answer it."
        return ""


@lru_cache(maxsize=1)
def _rules() -> frozenset[tuple[str, ...]]:
    """Word runs of the prompt without wishes and facts, which the user may well quote."""
    nobody = dict.fromkeys(("name", "background", "communication_style", "patience"), "")
    prompt = render(PROMPT, persona=nobody | {"preferences": []}, wishes=[], facts=[])
    return _word_runs(prompt.messages[0]["content"])


def conversation_for_user(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conversation from the other side: only what was said aloud, the roles changed over."""
    talk = [{"role": "user", "content": GREETING}]
    for message in messages:
        content = message.get("content") or ""
        if message["role"] == "user":
            talk.append({"role": "assistant", "content": content})
        elif message["role"] == "assistant" and content.strip():
            if talk[-1]["role"] == "user":  # words beside a tool call, then the answer itself
                talk[-1] = {"role": "user", "content": f"{talk[-1]['content']}\n\n{content}"}
            else:
                talk.append({"role": "user", "content": content})
    return talk


_CLOSING = re.compile(
    r"anything else|something else|further (?:help|assistance|questions)|else i can|"
    r"help (?:you )?with anything|need anything",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Whether the text ends on a question that wants an answer, "anything else?" apart."""
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    return sentences[-1].endswith("?") and not _CLOSING.search(sentences[-1])


_TELLTALE = re.compile(
    r"^#+ *(?:persona|what you|rules)|say it at once|only when asked|system prompt|simulated user|"
    r"\bas an ai\b|\bi(?:'m| am) an ai\b|\"done\"\s*:|how (?:can|may) i (?:help|assist) you",
    re.IGNORECASE | re.MULTILINE,
)


def leaks(message: str, instructions: frozenset[tuple[str, ...]]) -> bool:
    """Whether the user speaks of its instructions, quotes them, or takes the agent's part."""
    return bool(_TELLTALE.search(message)) or not instructions.isdisjoint(_word_runs(message))


def _word_runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"[\w']+", text.casefold())
    return frozenset(zip(*(words[i:] for i in range(RULE_WORDS)), strict=False))


def _same(a: str, b: str) -> bool:
    return re.findall(r"\w+", a.casefold()) == re.findall(r"\w+", b.casefold())


def _repeats(message: str, earlier: str) -> bool:
    """Short answers ("Yes, please.") may well fit twice."""
    return len(message.split()) >= SHORT_WORDS and _same(message, earlier)


def _complaint(number: int, said: UserTurn, fault: str) -> str:
    """What was refused and why, for the system prompt: the conversation itself stays as it was.

    The number makes each request another one, which a model without sampling needs.
    """
    words = json.dumps(said.message, ensure_ascii=False)
    return f"Try {number} at this turn was {words}, done = {json.dumps(said.done)}. {fault}"
