"""The simulated user: a language model that plays a persona with user goals and limited knowledge.

The field's known weakness is a user that spoils the run, so each turn is checked before the agent
sees it (`synth.episode.users.faults`). A turn that fails is asked for again, with what was wrong;
when that does not help, the episode ends as the user's error and never as the agent's. A turn that
is only doubtful is asked for once more and then stands. Every fault and doubt is written down, the
mended ones too.

A user may own tools over the same state as the agent's. It calls them between its words, the
environment runs them, and the agent learns of them only what the user says.
"""

import itertools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from records.errors import ItemError, SynthError
from records.tables.schemas import Row
from synth.episode.tools.calls import CallRecord, openai_tool
from synth.episode.tools.executors import in_short
from synth.episode.users.acts import was_spoken_of
from synth.episode.users.facts import invented
from synth.episode.users.faults import (
    WORDS_KEPT,
    TurnFault,
    UserFault,
    UserTalk,
    repeat_fault,
    spoken_fault,
)
from synth.episode.users.form import word_runs
from synth.episode.users.wishes import REPEATED_GOAL, goal_again, may_stop, stop_fault
from synth.llm.client import LLM, Completion
from synth.prompts.templates import render

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

_KNOWN = (
    "name", "background", "communication_style", "age", "household", "occupation", "place",
    "country", "mood", "language", "sample",
)  # fmt: skip
"""Columns of the persona that the user may speak of."""

_BRANCHES = (("none", "some", "expert"), ("native", "fluent", "learner"))
"""Knowledge and level of the language, for each of which the prompt has words of its own."""

MAX_ACTS = 3
"""Answers with calls of the user's own tools before it has to say something."""

MAX_CALLS = 4
"""Calls of one such answer; further ones are left out."""


def cast_in(persona: Row, brief: Mapping[str, Any]) -> Row:
    """The persona under the name that it has in this matter. Where that is the name of one of its
    records, what is told of the persona by its own name is left out."""
    name = brief.get("person") or persona["name"]
    return persona | {"name": name} | ({} if name == persona["name"] else {"background": ""})


def known_texts(persona: Row, brief: Mapping[str, Any]) -> list[str]:
    """What the person may speak of, of its own and of the matter."""
    facts = [f"{fact['label']}: {fact['value']}" for fact in brief["facts"]]
    known = [str(persona[column]) for column in _KNOWN if persona[column] is not None]
    known += [brief.get("relation", ""), brief.get("situation", "")]
    return [*known, *persona["preferences"], *persona["habits"], *brief["wishes"], *facts]


class UserError(SynthError):
    """The simulated user could not be brought to say something usable."""


class UserTurn(NamedTuple):
    message: str
    """Empty only when the user is done."""
    done: bool


class UserCall(NamedTuple):
    """A call of the user's own tool, as it may be asked for."""

    tool_call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""

    def wire(self) -> dict[str, Any]:
        """In the form of a chat message's call."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.tool_call_id, "type": "function", "function": function}


@dataclass(frozen=True)
class Scene:
    """What a user has before it when it is its turn."""

    messages: Sequence[Mapping[str, Any]]
    """The conversation as the agent sees it, its words at the end."""
    goal_open: Callable[[], Awaitable[bool | None]]
    """Whether the task is still open as far as code can tell; None where it cannot be solved.
    Looks at the whole rubric: asked only when it matters."""
    turn: int
    """Messages of the agent so far, in all conversations of the episode."""
    calls: Sequence[CallRecord]
    """Calls that this user has made so far."""
    act: Callable[[Sequence[UserCall]], Awaitable[Sequence[CallRecord]]]
    """Makes calls of the user's own tools."""
    note: Callable[[UserFault], None]
    """Writes down what was wrong with a turn."""
    turns_before: int = 0
    """Messages of the agent in the conversations before this one."""


class User(Protocol):
    async def reply(self, scene: Scene) -> UserTurn:
        """The next turn after the agent's words at the end of the messages. Raises UserError."""
        ...


class LlmUser:
    """The user model behind one episode. Stateless: all it knows is in the scene."""

    def __init__(
        self,
        llm: LLM,
        *,
        item: str,
        persona: Row,
        brief: Mapping[str, Any],
        tools: Sequence[Row] = (),
        retries: int = 2,
        on_answer: Callable[[Completion], None] | None = None,
    ) -> None:
        """`tools`: rows of those that the user owns."""
        self._llm = llm
        self._on_answer = on_answer or (lambda _: None)
        self._item = item
        self._retries = retries
        self._persona, self._brief = cast_in(persona, brief), brief
        self._tools = {tool["name"]: tool for tool in tools}
        prompt = render(
            PROMPT,
            persona=self._persona,
            relation=brief.get("relation", ""),
            situation=brief.get("situation", ""),
            wishes=brief["wishes"],
            facts=brief["facts"],
            own_tools=[in_short(tool) for tool in tools],
            earlier=brief.get("earlier", ()),
            opening_goals=brief.get("opening_goals", 1),
        )
        self._conversation = f"{brief['session']}." if brief.get("session") else ""
        self._system: str = prompt.messages[0]["content"]
        self._instructions = _rules()

    async def reply(self, scene: Scene) -> UserTurn:
        acted = await self._act(scene) if self._tools else []
        calls = [*scene.calls, *acted]
        messages = conversation_for_user(scene.messages, calls, scene.turns_before)
        talk = self._talk(scene.messages, calls)
        turn = len(talk.own)
        system, words, doubted = self._system, "", False
        for attempt in range(self._retries + 1):
            step = f"user-{self._conversation}{turn}" + (f"-again-{attempt}" if attempt else "")
            said = await self._ask(
                [{"role": "system", "content": system}, *messages], step, scene, attempt
            )
            fault = await self._fault(said, talk, scene)
            if fault is None:
                return said
            kept = said.message[:WORDS_KEPT]
            scene.note(UserFault(scene.turn, fault.kind, attempt, kept, fault.is_sure))
            if not fault.is_sure and (doubted or attempt == self._retries):
                return said
            doubted, words = doubted or not fault.is_sure, fault.complaint
            system = f"{self._system}\n\n## Not usable\n{_complaint(attempt + 1, said, fault)}"
        raise UserError(f"user turn {turn} still wrong after {self._retries} retries: {words}")

    async def _ask(
        self, messages: Sequence[dict[str, Any]], step: str, scene: Scene, attempt: int
    ) -> UserTurn:
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
            scene.note(UserFault(scene.turn, "invalid_output", attempt, str(error)[:WORDS_KEPT]))
            raise UserError(str(error)) from error
        return UserTurn(answer["message"].strip(), answer["done"])

    def _talk(self, messages: Sequence[Mapping[str, Any]], calls: Sequence[CallRecord]) -> UserTalk:
        heard = [m["content"] for m in conversation_for_user(messages) if m["role"] == "user"]
        persona, brief = self._persona, self._brief
        return UserTalk(
            own=[m.get("content") or "" for m in messages if m["role"] == "user"],
            heard=heard,
            user_goals=brief["wishes"],
            opening_goals=brief.get("opening_goals", 1),
            facts=brief["facts"],
            patience=persona["patience"],
            known=[*known_texts(persona, brief), *(call.observation for call in calls)],
        )

    async def _fault(self, said: UserTurn, talk: UserTalk, scene: Scene) -> TurnFault | None:
        """What is wrong with the turn; None when it is fine."""
        if not said.message and not said.done:
            return TurnFault("empty", "The message is empty.")
        fault = spoken_fault(said.message, talk, self._instructions) if said.message else None
        if fault is not None:
            return fault
        if said.done:
            fine = may_stop(talk)
            return None if fine else stop_fault(talk, goal_open=await scene.goal_open())
        if fault := repeat_fault(said.message, talk):
            return fault
        later = goal_again(said.message, talk)
        if later or (later is False and await scene.goal_open() is not True):
            return REPEATED_GOAL
        return None

    async def _act(self, scene: Scene) -> list[CallRecord]:
        """Calls that the user makes of its own tools before it speaks."""
        made: list[CallRecord] = []
        offered = [openai_tool(tool) for tool in self._tools.values()]
        for number in range(MAX_ACTS):
            calls = [*scene.calls, *made]
            messages = conversation_for_user(scene.messages, calls, scene.turns_before)
            answer = await self._llm.chat(
                "user",
                [{"role": "system", "content": self._system}, *messages],
                item=self._item,
                step=f"user-{scene.turn}-act-{number}",
                tools=offered,
            )
            self._on_answer(answer)
            first = len(scene.calls) + len(made)
            calls = [
                UserCall(f"own_{first + i}", c["function"]["name"], c["function"]["arguments"])
                for i, c in enumerate(answer.tool_calls[:MAX_CALLS])
            ]
            talk = self._talk(scene.messages, [*scene.calls, *made])
            if not calls or not self._may_act(calls, talk, scene, number):
                break
            made += await scene.act(calls)
        return made

    def _may_act(
        self, calls: Sequence[UserCall], talk: UserTalk, scene: Scene, number: int
    ) -> bool:
        """Whether every call is of something that was spoken of, with values that are known. Else
        none is made, and the user goes on with words."""
        for call in calls:
            tool = self._tools.get(call.name)
            spoken = tool and was_spoken_of(tool, call.arguments, talk.heard)
            kind = "unasked_act" if not spoken else "invented_fact"
            made_up = invented(call.arguments, talk.grounds, answering=True, acting=True)
            if not spoken or any(invention.is_sure for invention in made_up):
                words = f"{call.name} {call.arguments}"[:WORDS_KEPT]
                scene.note(UserFault(scene.turn, kind, number, words))
                return False
        return True


@lru_cache(maxsize=1)
def _rules() -> frozenset[tuple[str, ...]]:
    """Word runs of the prompt without user goals and facts, which the user may well quote."""
    persona = dict.fromkeys((*_KNOWN, "patience", "message_length"), "")
    persona |= {"preferences": [], "habits": []}
    everything: dict[str, Any] = {"own_tools": [""], "earlier": [""], "opening_goals": 2}
    nothing = {"relation": "", "situation": "", "wishes": [], "facts": []}
    runs: set[tuple[str, ...]] = set()
    for knowledge, level in itertools.product(*_BRANCHES):
        shown = persona | {"age": 1, "knowledge": knowledge, "language_level": level}
        prompt = render(PROMPT, persona=shown, **nothing, **everything)
        runs |= word_runs(prompt.messages[0]["content"])
    return frozenset(runs)


def conversation_for_user(
    messages: Sequence[Mapping[str, Any]],
    calls: Sequence[CallRecord] = (),
    turns_before: int = 0,
) -> list[dict[str, Any]]:
    """The conversation from the other side: what was said aloud, the roles changed over, and the
    user's own calls before the words that followed them. `turns_before`: messages of the agent
    before those."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": GREETING}]
    by_turn: dict[int, list[CallRecord]] = {}
    for call in calls:
        by_turn.setdefault(call.turn, []).append(call)
    turn = turns_before
    for message in messages:
        content = message.get("content") or ""
        if message["role"] == "user":
            talk += _own_calls(by_turn.pop(turn, ()))
            talk.append({"role": "assistant", "content": content})
        elif message["role"] == "assistant":
            turn += 1
            if not content.strip():
                continue
            if talk[-1]["role"] == "user":  # words beside a tool call, then the answer itself
                talk[-1] = {"role": "user", "content": f"{talk[-1]['content']}\n\n{content}"}
            else:
                talk.append({"role": "user", "content": content})
    return talk + _own_calls(by_turn.pop(turn, ()))


def _own_calls(calls: Sequence[CallRecord]) -> list[dict[str, Any]]:
    """One message with a call and one with its result for each."""
    messages: list[dict[str, Any]] = []
    for call in calls:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": call.name, "arguments": text}
        shown = {"id": call.tool_call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [shown]})
        result = {"role": "tool", "tool_call_id": call.tool_call_id, "content": call.observation}
        messages.append(result)
    return messages


def _complaint(number: int, said: UserTurn, fault: TurnFault) -> str:
    """What was refused and why, for the system prompt: the conversation itself stays as it was.

    The number makes each request another one, which a model without sampling needs.
    """
    words = json.dumps(said.message, ensure_ascii=False)
    done = json.dumps(said.done)
    doubt = "" if fault.is_sure else " If it is right nevertheless, say it again."
    return f"Try {number} at this turn was {words}, done = {done}. {fault.complaint}{doubt}"
