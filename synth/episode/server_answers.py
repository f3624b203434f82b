"""Who answers what a server asks in the middle of a call: the simulated user fills in its forms,
the agent's model writes its texts.

Each is a request like any other of the episode, paid from the run's budget and kept under its
place, so that a run that died asks for nothing twice.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from records.digest import digest
from records.errors import ItemError
from records.tables.schemas import Row
from sandboxes.mcp.protocol.questions import ServerAnswer, ServerQuestion, refused
from synth.episode.tools.calls import CallRecord
from synth.episode.tools.mcp_executor import CallPlace
from synth.episode.users.elicitation import fill_form
from synth.llm.client import LLM, Completion
from synth.llm.wire.request import Message

CHARS_OF_TOKEN = 4
"""Bytes for which a server may have one token of text: the project's count of tokens."""


class AskedScene(NamedTuple):
    """The moment of an episode in which a server asks."""

    place: CallPlace
    persona: Row
    brief: Mapping[str, Any]
    """Of the conversation that is going on."""
    messages: Sequence[Message]
    """That conversation, the call's message at its end."""
    calls: Sequence[CallRecord]
    """Those that the user has made itself."""


class ServerAnswers(Protocol):
    async def answer(
        self, scene: AskedScene, question: ServerQuestion, number: int
    ) -> ServerAnswer:
        """`number`: of the question in its call, from 0. What it raises ends the call."""
        ...


class LlmServerAnswers:
    """The models behind one episode."""

    def __init__(
        self,
        llm: LLM,
        *,
        item: str,
        on_answer: Callable[[str, Completion], None] = lambda role, answer: None,
    ) -> None:
        """`on_answer` is given every answer with the role that gave it."""
        self._llm, self._item, self._on_answer = llm, item, on_answer
        self.filled_in = False
        """Whether the user was asked at all."""

    async def answer(
        self, scene: AskedScene, question: ServerQuestion, number: int
    ) -> ServerAnswer:
        place = scene.place
        made = digest(place.tool, place.arguments, length=8)
        step = f"server-{place.number}-{made}-{number}"
        if question.method == "sampling/createMessage":
            return await self._text(question, step)
        self.filled_in = True
        return await fill_form(
            self._llm,
            question,
            item=self._item,
            step=step,
            persona=scene.persona,
            brief=scene.brief,
            messages=scene.messages,
            calls=scene.calls,
            on_answer=lambda answer: self._on_answer("user", answer),
        )

    async def _text(self, question: ServerQuestion, step: str) -> ServerAnswer:
        """The model and its settings are the agent's, whatever the server would prefer."""
        messages = messages_of(question.params)
        if messages is None:
            return refused(question, "the model is given text, and no images or sound")
        try:
            answer = await self._llm.chat("agent", messages, item=self._item, step=step)
        except ItemError as error:
            return refused(question, f"the model gave none ({error.reason})")
        self._on_answer("agent", answer)
        text, most = answer.content.encode(), CHARS_OF_TOKEN * question.params["maxTokens"]
        return ServerAnswer(
            {
                "role": "assistant",
                "content": {"type": "text", "text": text[:most].decode(errors="ignore")},
                "model": answer.model,
                "stopReason": "maxTokens" if len(text) > most else "endTurn",
            }
        )


def messages_of(params: Mapping[str, Any]) -> list[Message] | None:
    """The conversation that a server wants continued, None where it holds more than text."""
    system = params.get("systemPrompt")
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    for message in params["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else [content]
        if any(block["type"] != "text" for block in blocks):
            return None
        text = "\n".join(block["text"] for block in blocks)
        messages.append({"role": message["role"], "content": text})
    return messages
